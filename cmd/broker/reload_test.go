//go:build unix

package main

import (
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// A SIGHUP that comes while the broker is being started does not end the process: the
// configuration is read again once it has started.
func TestHangupDuringStart(t *testing.T) {
	b := newBench(t)
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	b.server.starting = func() {
		// The system delivers the lower of two pending signals first.
		for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGWINCH} {
			if err := syscall.Kill(os.Getpid(), s); err != nil {
				t.Error(err)
			}
		}
		<-resized
	}
	wait := b.start(t)
	const want = "[mcp-broker] SIGHUP received, reading the configuration again\n[mcp-broker] Configuration reloaded: nothing has changed\n"
	for !strings.Contains(b.err.String(), want) {
		select {
		case <-b.err.changed:
		case <-t.Context().Done():
			t.Fatalf("standard error is %q", b.err)
		}
	}
	b.signal <- os.Interrupt
	if code := wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
