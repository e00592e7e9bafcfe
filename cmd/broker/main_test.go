package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbroker"
	"mcpbroker/config"
	"mcpbroker/internal/leak"
	"mcpbroker/provider"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) { leak.Main(m) }

// output is a writer that tests can wait on.
type output struct {
	mu      sync.Mutex
	buf     bytes.Buffer
	changed chan struct{}
}

func newOutput() *output { return &output{changed: make(chan struct{}, 1)} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.changed <- struct{}{}:
	default:
	}
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// fakeServer is a broker whose life a test directs.
type fakeServer struct {
	startErr error
	starting func() // nil or called by Start
	reload   func(context.Context, *config.Config) (mcpbroker.Reloaded, error)
	stop     func(context.Context) error
	done     chan error
	attached chan provider.Peer
	sent     chan []byte
	refusal  error
	cfg      *config.Config
	hostGone chan struct{}
	bridged  string // slot of the stdio bridge

	mu      sync.Mutex
	refused []string // reloads
}

func newFakeServer() *fakeServer {
	return &fakeServer{done: make(chan error, 1), attached: make(chan provider.Peer, 1), sent: make(chan []byte, 8), hostGone: make(chan struct{})}
}

func (s *fakeServer) URL() string        { return s.cfg.Scheme() + "://localhost:4711" }
func (s *fakeServer) Done() <-chan error { return s.done }

func (s *fakeServer) Start(context.Context) error {
	if s.starting != nil {
		s.starting()
	}
	return s.startErr
}

func (s *fakeServer) Stop(ctx context.Context) error {
	if s.stop != nil {
		return s.stop(ctx)
	}
	return nil
}

func (s *fakeServer) ReloadRefused(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = append(s.refused, strings.ReplaceAll(err.Error(), "\n", "; "))
}

// refusals are the reloads the broker has been told of since the last time.
func (s *fakeServer) refusals() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	told := s.refused
	s.refused = nil
	return told
}

func (s *fakeServer) Reload(ctx context.Context, cfg *config.Config) (mcpbroker.Reloaded, error) {
	if s.reload != nil {
		return s.reload(ctx, cfg)
	}
	return mcpbroker.Reloaded{}, nil
}

func (s *fakeServer) ServeStdio(_ context.Context, slot string, _ io.Reader, _ io.Writer) (<-chan struct{}, error) {
	s.bridged = slot
	return s.hostGone, s.refusal
}

func (s *fakeServer) AttachLoopback(_ string, _ *bool, p provider.Peer) (provider.Port, error) {
	if s.refusal != nil {
		return nil, s.refusal
	}
	s.attached <- p
	return fakePort{s.sent}, nil
}

type fakePort struct{ sent chan []byte }

func (p fakePort) Send(frame []byte) error { p.sent <- frame; return nil }
func (p fakePort) Close() error            { return nil }

// bench is a program whose surroundings belong to the test, in an empty
// working directory.
type bench struct {
	*program
	out, err *output
	signal   chan os.Signal
	server   *fakeServer
}

func newBench(t *testing.T) *bench {
	t.Helper()
	t.Chdir(t.TempDir())
	b := &bench{out: newOutput(), err: newOutput(), signal: make(chan os.Signal, 2), server: newFakeServer()}
	b.program = &program{
		stdout: b.out, stderr: b.err, version: "1.2.3", farewell: time.Minute,
		newServer: func(cfg *config.Config, _ *slog.Logger, _ string) (server, error) {
			b.server.cfg = cfg
			return b.server, nil
		},
		signals: func() (<-chan os.Signal, func()) { return b.signal, func() {} },
	}
	return b
}

func (b *bench) do(args ...string) int {
	return b.run(context.Background(), append([]string{"broker"}, args...))
}

// expect compares exit code and both outputs.
func (b *bench) expect(t *testing.T, code, wantCode int, out, err string) {
	t.Helper()
	if code != wantCode {
		t.Errorf("exit code %d, want %d", code, wantCode)
	}
	if diff := cmp.Diff(out, b.out.String()); diff != "" {
		t.Errorf("standard output (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(err, b.err.String()); diff != "" {
		t.Errorf("standard error (-want +got):\n%s", diff)
	}
}

// golden compares with a file of testdata. It must be called with the name
// made absolute before the working directory changed.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", filepath.Base(file), diff)
	}
}

func testdata(t *testing.T, name string) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

var sigterm os.Signal = syscall.SIGTERM
