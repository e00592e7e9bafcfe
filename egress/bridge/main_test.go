package bridge_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"mcpbroker/brokertest"
	"mcpbroker/egress/bridge"
	"mcpbroker/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// patience is how long a test waits for what it expects, on a machine that is busy.
const patience = 30 * time.Second

// host is the process at the other end of the pipes.
type host struct {
	t     testing.TB
	in    *io.PipeWriter
	lines chan string
	log   *brokertest.Log
	stop  context.CancelFunc
	done  chan error
}

// start runs a bridge to an endpoint.
func start(t testing.TB, url string) *host {
	t.Helper()
	return startWith(t, bridge.Config{URL: url, Retry: func(int) time.Duration { return 5 * time.Millisecond }})
}

func startWith(t testing.TB, cfg bridge.Config) *host {
	t.Helper()
	inReader, in := io.Pipe()
	out, outWriter := io.Pipe()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	h := &host{t: t, in: in, lines: make(chan string, 4096), log: brokertest.NewLog(t), stop: cancel, done: make(chan error, 1)}
	cfg.Log = slog.New(h.log)
	go func() {
		h.done <- bridge.Run(ctx, cfg, inReader, outWriter)
		close(h.done)
		_ = outWriter.Close()
	}()
	read := make(chan struct{})
	go func() {
		defer close(read)
		for r := bufio.NewReader(out); ; {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			h.lines <- strings.TrimSuffix(line, "\n")
		}
	}()
	t.Cleanup(func() {
		_ = in.Close()
		cancel()
		for range h.done {
		}
		<-read
	})
	return h
}

func (h *host) send(frame string) {
	h.t.Helper()
	if _, err := io.WriteString(h.in, frame+"\n"); err != nil {
		h.t.Fatalf("write to the bridge: %v", err)
	}
}

func (h *host) receive() string {
	h.t.Helper()
	select {
	case line := <-h.lines:
		return line
	case <-time.After(patience):
		h.t.Fatalf("no line within %s", patience)
		return ""
	}
}

func (h *host) expect(want string) {
	h.t.Helper()
	if got := h.receive(); got != want {
		h.t.Errorf("the host received\n got %.400s\nwant %.400s", got, want)
	}
}

// end closes the input and waits for the end of the bridge.
func (h *host) end() error {
	h.t.Helper()
	_ = h.in.Close()
	return h.ended()
}

func (h *host) ended() error {
	h.t.Helper()
	select {
	case err := <-h.done:
		return err
	case <-time.After(patience):
		h.t.Fatalf("the bridge has not ended within %s", patience)
		return nil
	}
}

const (
	initialize  = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"host","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	welcome     = `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}`
)

func receive[T any](t testing.TB, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("no %s within %s", what, patience)
		panic("unreachable")
	}
}
