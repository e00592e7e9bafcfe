//go:build unix

package mcpbroker_test

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpbroker"
)

// A start does not wait for a writer of a named pipe in the place of a certificate.
func TestTLSNamedPipe(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "cert.pem")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- local(t, mcpbroker.WithTLS(pipe, pipe)).Start(t.Context()) }()
	select {
	case err := <-done:
		if !errors.As(err, new(*mcpbroker.TLSError)) || !strings.Contains(err.Error(), "it is not a regular file") {
			t.Errorf("start: %v", err)
		}
	case <-time.After(patience):
		t.Fatal("the start waits for the pipe")
	}
}
