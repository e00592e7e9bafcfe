package rt

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbroker/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// receive is an actor made of one function.
type receive func(c Context)

func (r receive) Receive(c Context) { r(c) }

// newSystem returns a system that ends with the test, and its log.
func newSystem(t *testing.T, tap Tap) (*System, *testLog) {
	t.Helper()
	log := &testLog{}
	s := NewSystem(slog.New(slog.NewTextHandler(log, nil)), tap)
	t.Cleanup(s.Close)
	return s, log
}

// stop stops an actor and waits for it.
func stop(t *testing.T, s *System, pid *PID) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.StopAndWait(ctx, pid); err != nil {
		t.Fatal(err)
	}
}

const patience = 30 * time.Second

// await returns the next value of a channel.
func await[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// ask is a message an actor of these tests answers.
type ask struct{ reply chan string }

// echo sends an ask and returns its answer.
func echo(t *testing.T, s *System, pid *PID) string {
	t.Helper()
	a := ask{make(chan string, 1)}
	s.Send(pid, a)
	return await(t, a.reply)
}

type testLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *testLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *testLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// list is a slice several goroutines append to.
type list[T any] struct {
	mu    sync.Mutex
	items []T
}

func (l *list[T]) add(item T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.items = append(l.items, item)
}

func (l *list[T]) all() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]T(nil), l.items...)
}
