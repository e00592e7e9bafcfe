package main_test

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Spec 07 row 31: however the broker ends, the processes of its upstreams end with
// it, those included that they have started themselves and that ignore TERM.
func TestNoOrphans(t *testing.T) {
	const family = `trap "" TERM INT HUP; exec 3>"$0"; echo up >&2; (trap "" TERM INT HUP; while :; do sleep 600; done) & while :; do sleep 600; done`
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGKILL} {
		t.Run(s.String(), func(t *testing.T) {
			fifo := filepath.Join(t.TempDir(), "held")
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			// Both ends, so that opening waits for nobody; the one for writing is
			// closed once the family has its own.
			reader, err := os.OpenFile(fifo, os.O_RDONLY|syscall.O_NONBLOCK, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Close()
			writer, err := os.OpenFile(fifo, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			b := configured(t, stdioEntry("family", requireTool(t, "sh"), "-c", family, fifo)+"graceMs = 300\n")
			b.await(b.stderr, `\[family\] up`)
			if err := writer.Close(); err != nil {
				t.Fatal(err)
			}
			b.signal(s)
			b.exit(patience)
			if err := reader.SetReadDeadline(time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
			if rest, err := io.ReadAll(reader); err != nil || len(rest) > 0 {
				t.Errorf("a process outlived the broker: %v", err)
			}
		})
	}
}
