//go:build unix

package stdio

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
	"mcpbroker/internal/leak"
)

// asChild names the behaviour of a test binary that was started as a child.
const asChild = "STDIO_TEST_CHILD"

func TestMain(m *testing.M) {
	if behaviour := os.Getenv(asChild); behaviour != "" {
		behave(behaviour, os.Args[1:])
		return
	}
	leak.Main(m)
}

const patience = 30 * time.Second

// await returns the next value of a channel.
func await[T any](t testing.TB, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("no %s came", what)
		panic("unreachable")
	}
}

func equal(t testing.TB, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// inbox is the address of whoever listens on the channel.
type inbox chan any

// Send implements msg.Ref.
func (i inbox) Send(message any) { i <- message }

const room = 1 << 16

// logged is the log of a test.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// house is Children with what a broker puts around them.
type house struct {
	*Children
	log     *logged
	handles int // pipes that were open before
}

// patient gives a busy machine time for what comes at once on others.
func (h *house) patient() {
	h.bounds.exit, h.bounds.killed, h.bounds.drain = patience, patience, patience
}

// unguarded waits until a guard that is ended beside the test has left nothing behind.
func (h *house) unguarded(t testing.TB) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for len(childrenOf(t, os.Getpid())) > 0 || pipeHandles(t) > h.handles {
		<-tick.C
	}
}

// newHouse returns Children that leave neither a process nor a handle behind.
func newHouse(t testing.TB) *house {
	t.Helper()
	handles := pipeHandles(t)
	log := &logged{}
	sys := rt.NewSystem(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	})), nil)
	h := &house{Children: New(sys), log: log, handles: handles}
	h.patient()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := h.Stop(ctx); err != nil {
			t.Error(err)
		}
		sys.Close()
		equal(t, "children left", childrenOf(t, os.Getpid()), []string(nil))
		equal(t, "pipes left", pipeHandles(t), handles)
	})
	return h
}

// self is a configuration that runs the test binary as a child.
func self(t testing.TB, behaviour string, args ...string) Config {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		Name: "s", Command: binary, Args: args, Grace: patience,
		Env: []string{asChild + "=" + behaviour, "PATH=/usr/bin:/bin", "GORACE=atexit_sleep_ms=0"},
	}
}

// running is a child with an owner and a slot played by the test.
type running struct {
	t      testing.TB
	owner  inbox
	slot   inbox
	driver msg.Driver
	pid    int
	cancel func()
}

const slotGen = 7

// start starts a child and attaches it.
func (h *house) start(t testing.TB, cfg Config) *running {
	t.Helper()
	r := &running{t: t, owner: make(inbox, room), slot: make(inbox, room)}
	r.cancel = h.Start(cfg, r.owner, 3)
	switch m := r.next().(type) {
	case *msg.UpstreamOpened:
		if m.Gen != 3 || m.PID <= 0 {
			t.Errorf("opened with gen %d, pid %d", m.Gen, m.PID)
		}
		r.driver, r.pid = m.Driver, m.PID
		r.driver.Attach(r.slot, slotGen)
	case *msg.UpstreamEnded:
		t.Fatalf("ended at once: %v", m.Err)
	}
	return r
}

// next is the next word to the owner that is not about stderr.
func (r *running) next() any {
	r.t.Helper()
	for {
		m := await(r.t, r.owner, "word to the owner")
		if _, said := m.(*msg.UpstreamSaid); !said {
			return m
		}
	}
}

// end returns how the child ended, and checks that it was its last word.
func (r *running) end() *msg.UpstreamEnded {
	r.t.Helper()
	m, ok := r.next().(*msg.UpstreamEnded)
	if !ok || m.Gen != 3 {
		r.t.Fatalf("%+v where the end was expected", m)
	}
	if len(r.owner) > 0 {
		r.t.Errorf("after the end came %+v", <-r.owner)
	}
	return m
}

// stop stops the child in order.
func (r *running) stop() {
	r.t.Helper()
	r.driver.Stop(patience)
	if m := r.end(); m.Err != nil {
		r.t.Errorf("stopped: %v", m.Err)
	}
}

func (r *running) send(frame string) {
	r.t.Helper()
	if !r.driver.Send([]byte(frame), mcp.Required) {
		r.t.Errorf("%.80s was not taken", frame)
	}
}

// hear returns the next message to the slot: a frame as it is, junk as "junk: ...".
func (r *running) hear() string {
	r.t.Helper()
	switch m := await(r.t, r.slot, "message to the slot").(type) {
	case *msg.ProviderFrame:
		m.Credit.Give()
		if m.Gen != slotGen {
			r.t.Errorf("gen %d", m.Gen)
		}
		return string(m.Frame.Bytes)
	case *msg.ProviderJunk:
		m.Credit.Give()
		return "junk: " + string(m.Head)
	default:
		r.t.Fatalf("%T to the slot", m)
		return ""
	}
}

// procfs skips a check that needs /proc.
func procfs(t testing.TB) bool {
	t.Helper()
	_, err := os.Stat("/proc/self/stat")
	return err == nil
}

// childrenOf lists the processes, dead ones too, whose parent is pid.
func childrenOf(t testing.TB, pid int) []string {
	t.Helper()
	if !procfs(t) {
		return nil
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var children []string
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has just ended
		}
		var state string
		var parent int
		_, rest, _ := strings.Cut(string(text), ") ")
		if _, err := fmt.Sscan(rest, &state, &parent); err == nil && parent == pid {
			children = append(children, string(text))
		}
	}
	return children
}

// pipeHandles counts the pipes this process has open.
func pipeHandles(t testing.TB) int {
	t.Helper()
	if !procfs(t) {
		return 0
	}
	names, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, name := range names {
		if target, err := os.Readlink(name); err == nil && strings.HasPrefix(target, "pipe:") {
			n++
		}
	}
	return n
}
