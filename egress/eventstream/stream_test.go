package eventstream_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/egress/eventstream"
	"mcpbroker/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// open returns a stream whose writer is a goroutine.
func open(w http.ResponseWriter, cfg eventstream.Config) *eventstream.Stream {
	cfg.Run = func(fn func()) { go fn() }
	return eventstream.Open(w, cfg)
}

// The lead comes first even if events were queued before Serve, an event without
// an id still names itself (row 64), and what was queued before End is written.
func TestOrder(t *testing.T) {
	w := httptest.NewRecorder()
	s := open(w, eventstream.Config{Lead: []byte(": open\n\n")})
	s.Event(0, []byte(`{"a":1}`), mcp.Required, "")
	s.Event(7, []byte("{\"b\":\r\n2}"), mcp.Required, "")
	s.End()
	s.Serve(t.Context())
	s.Close()
	want := ": open\n\nevent: message\ndata: {\"a\":1}\n\nevent: message\nid: 7\ndata: {\"b\":  2}\n\n"
	if got := w.Body.String(); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if s.Event(8, []byte("{}"), mcp.Required, "") {
		t.Error("an ended stream took an event")
	}
	s.End() // late: changes nothing
}

// Row 73: the head of a stream.
func TestHead(t *testing.T) {
	w := httptest.NewRecorder()
	s := open(w, eventstream.Config{})
	s.End()
	s.Serve(t.Context())
	s.Close()
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-cache, no-transform", "Connection": "keep-alive", "X-Accel-Buffering": "no",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if w.Code != 200 || w.Body.Len() > 0 {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}

// F-43: one comment for each interval, and none once the client has left.
func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		s := open(w, eventstream.Config{Lead: []byte(": open\n\n"), KeepAlive: time.Second})
		ctx, leave := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer leave()
		s.Serve(ctx)
		s.Close()
		if got, want := w.Body.String(), ": open\n\n"+strings.Repeat(": keep-alive\n\n", 3); got != want {
			t.Errorf("got %q\nwant %q", got, want)
		}
	})
}

// blocked is a client that does not read, until it is released.
type blocked struct {
	*httptest.ResponseRecorder
	release chan struct{}
}

func (b *blocked) Write(p []byte) (int, error) {
	<-b.release
	return b.ResponseRecorder.Write(p)
}

// A client that does not read: progress gives way, a message that must not be
// dropped ends the stream, and Close waits for the write under way.
func TestTooSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &blocked{httptest.NewRecorder(), make(chan struct{})}
		slow := 0
		s := open(w, eventstream.Config{TooSlow: func() { slow++ }})
		served := make(chan struct{})
		go func() { defer close(served); s.Serve(t.Context()) }()
		synctest.Wait() // the writer is stuck
		frame := []byte(strings.Repeat("x", eventstream.Bytes/4))
		for range 10 {
			s.Event(0, frame, mcp.Droppable, "")
		}
		if slow != 0 {
			t.Fatal("progress ended the stream")
		}
		for range 3 {
			s.Event(0, frame, mcp.Required, "")
		}
		if slow != 0 || !s.Event(0, []byte("y"), mcp.Droppable, "") {
			t.Fatal("messages within the bound ended the stream")
		}
		s.Event(0, frame, mcp.Required, "")
		s.Event(0, frame, mcp.Required, "")
		<-served
		if slow != 1 {
			t.Errorf("reported %d times", slow)
		}
		closed := make(chan struct{})
		go func() { defer close(closed); s.Close() }()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("Close returned while the response was being written")
		default:
		}
		close(w.release)
		<-closed
	})
}

// broken is a client whose connection is lost.
type broken struct{ *httptest.ResponseRecorder }

func (broken) Write([]byte) (int, error) { return 0, errors.New("lost") }

// A failed write ends the stream.
func TestLostClient(t *testing.T) {
	s := open(broken{httptest.NewRecorder()}, eventstream.Config{Lead: []byte("x")})
	s.Serve(t.Context())
	s.Close()
}
