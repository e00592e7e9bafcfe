//go:build unix

package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A file that a configuration names, or the configuration itself, may be a named pipe
// that nobody writes to: it is refused, and not waited for.
func TestNamedPipes(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe.toml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	cert := filepath.Join(dir, "cert.pem")
	write(t, cert, "")
	const refusal = "it is not a regular file"
	for name, read := range map[string]func() error{
		"named": func() error {
			_, err := Load(Source{Path: pipe})
			return err
		},
		"in a variable": func() error {
			_, err := Load(Source{Environ: []string{EnvConfig + "=" + pipe}})
			return err
		},
		"secret": func() error {
			_, err := Expand("${file:pipe.toml}", Variables{Dir: dir})
			return err
		},
		"certificate": func() error {
			_, err := TLS{Cert: pipe, Key: cert}.Pair()
			return err
		},
		"key": func() error {
			_, err := TLS{Cert: cert, Key: pipe}.Pair()
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			done := make(chan error, 1)
			go func() { done <- read() }()
			select {
			case err := <-done:
				if err == nil || !strings.Contains(err.Error(), refusal) || !strings.Contains(err.Error(), pipe) {
					t.Errorf("refused with %v", err)
				}
			case <-time.After(30 * time.Second):
				t.Error("it waits for a writer")
				w, err := os.OpenFile(pipe, os.O_WRONLY, 0)
				if err != nil {
					t.Fatal(err)
				}
				w.Close()
				<-done
			}
		})
	}
}

// The bound is of what is read, not of what the file system says before.
func TestReadRegular(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	write(t, file, "12345")
	if data, err := ReadRegular(file, 5); err != nil || string(data) != "12345" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := ReadRegular(file, 4); err == nil || err.Error() != "it is larger than 4 bytes" {
		t.Errorf("too large: %v", err)
	}
	if _, err := ReadRegular(file+"x", 5); !errors.Is(err, fs.ErrNotExist) || err.Error() != syscall.ENOENT.Error() {
		t.Errorf("absent: %v", err)
	}
	if info, err := os.Stat("/proc/self/status"); err != nil || info.Size() != 0 {
		return
	}
	if _, err := ReadRegular("/proc/self/status", 4); err == nil {
		t.Error("a file whose size is not known before is read without a bound")
	}
}
