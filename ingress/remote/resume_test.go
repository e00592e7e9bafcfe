package remote

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mcpbroker/actors/wire"
)

func longText(n int) string { return strings.Repeat("x", n) }

// 07 row 17: a session that is lost before its event stream was opened costs the stream of
// that session only.
func TestEventStreamOfNextSession(t *testing.T) {
	s := newServer(t)
	const open = `{"jsonrpc":"2.0","method":"notifications/open"}`
	forgotten := make(chan struct{})
	s.before = func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		lost := r.Method == http.MethodGet && r.Header.Get(sessionHeader) == "session-1"
		if lost {
			s.forget()
			close(forgotten)
			http.Error(w, "no such session", http.StatusNotFound)
		}
		return lost
	}
	s.stream = func(w http.ResponseWriter, r *http.Request) { events(w, event(open)); <-r.Context().Done() }
	b := connect(t, Config{URL: s.URL})
	b.handshake()
	equal(t, "session", receive(t, s.gets, "GET").session, "session-1")
	receive(t, forgotten, "end of the session")
	b.send(request(2, "a"))
	equal(t, "session", receive(t, s.gets, "GET").session, "session-2")
	got := map[string]bool{b.next(): true, b.next(): true}
	if !got[open] || !got[response(2, "a")] {
		t.Errorf("the slot got %v", got)
	}
}

// An event id that cannot stand in a header does not stop the event stream.
func TestEventStreamUnsendableID(t *testing.T) {
	s := newServer(t)
	s.stream = func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get(eventHeader) {
		case "":
			events(w, "id: a b\n"+event("{}"))
		default:
			events(w, "id: a\x01b\n"+event("{}"))
		}
	}
	b := connect(t, Config{URL: s.URL})
	b.handshake()
	for _, want := range []string{"", "a b", "", "a b"} {
		equal(t, "Last-Event-ID", receive(t, s.gets, "GET").event, want)
	}
}

// A server that does not know the event any more is asked without it.
func TestEventStreamForgottenEvent(t *testing.T) {
	s := newServer(t)
	s.stream = func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(eventHeader) != "" {
			http.Error(w, "unknown event", http.StatusBadRequest)
			return
		}
		events(w, "id: a\n"+event("{}"))
	}
	b := connect(t, Config{URL: s.URL})
	b.handshake()
	for _, want := range []string{"", "a", ""} {
		equal(t, "Last-Event-ID", receive(t, s.gets, "GET").event, want)
	}
}

func TestResumable(t *testing.T) {
	for id, want := range map[string]string{
		"": "", "e1": "e1", "a b": "a b", "é": "é", " a": "", "a ": "", "a\x01b": "", "a\tb": "", "a\x7f": "",
		longText(maxEventID): longText(maxEventID), longText(maxEventID + 1): "",
	} {
		equal(t, fmt.Sprintf("%.10q", id), resumable(id), want)
	}
}

// An answer behind an event id that cannot stand in a header is lost, at once.
func TestUnresumableAnswer(t *testing.T) {
	s := newServer(t)
	s.call = func(w http.ResponseWriter, _ *http.Request, _ *wire.Frame) {
		events(w, "id: e1\ndata:\n\n", "id: a\x01b\ndata:\n\n")
	}
	b := connect(t, Config{URL: s.URL})
	b.handshake()
	b.send(request(2, "a"))
	b.expect(refusal(2, wire.RemoteLost("far", "the event stream ended: the server's answer held no response to the request")))
}

// polled is a server that closes the stream of a call, to be polled every 150 ms, and has
// the answer from the nth poll on.
func polled(t *testing.T, nth int32) (s *server, at chan time.Time) {
	s, at = newServer(t), make(chan time.Time, 64)
	s.call = func(w http.ResponseWriter, _ *http.Request, f *wire.Frame) {
		if string(f.Method) == "now" {
			respond(w, echo(f))
			return
		}
		at <- time.Now()
		events(w, "id: e1\nretry: 150\ndata:\n\n")
	}
	var polls atomic.Int32
	s.stream = func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(eventHeader) == "" {
			<-r.Context().Done()
			return
		}
		at <- time.Now()
		if polls.Add(1) >= nth && nth > 0 {
			events(w, "id: e2\ndata: "+response(2, "late")+"\n\n")
			return
		}
		events(w)
	}
	return s, at
}

// Spec 05 section 6: a stream that names a retry is polled for its answer after exactly
// that time, however often there is nothing new.
func TestRetry(t *testing.T) {
	s, at := polled(t, 4)
	b := connect(t, Config{URL: s.URL})
	b.handshake()
	b.send(request(2, "a"))
	b.expect(response(2, "late"))
	last := receive(t, at, "call")
	for range 4 {
		next := receive(t, at, "poll")
		if waited := next.Sub(last); waited < 100*time.Millisecond {
			t.Errorf("polled after %s, want 150 ms", waited)
		}
		last = next
	}
}

// Polling ends with the call.
func TestRetryEnds(t *testing.T) {
	s, at := polled(t, 0)
	b := connect(t, Config{URL: s.URL})
	b.handshake()
	b.send(request(2, "a"))
	receive(t, at, "call")
	receive(t, at, "poll")
	b.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"brk-2"}}`)
	b.expect(refusal(2, wire.RemoteLost("far", errWithdrawn.Error())))
}

// A call that is answered on the event stream of the session is not polled for any more.
func TestRetryAnsweredElsewhere(t *testing.T) {
	s, at := polled(t, 0)
	poll, answers := s.stream, make(chan string)
	s.stream = func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(eventHeader) != "" {
			poll(w, r)
			return
		}
		select {
		case frame := <-answers:
			events(w, event(frame))
		case <-r.Context().Done():
		}
		<-r.Context().Done()
	}
	b := connect(t, Config{URL: s.URL})
	b.handshake()
	b.send(request(2, "a"))
	receive(t, at, "call")
	receive(t, at, "poll")
	answers <- response(2, "a")
	b.expect(response(2, "a"))
	answered := time.Now()
	deadline := time.After(600 * time.Millisecond) // four times the retry
	for polls := 0; ; {
		select {
		case poll := <-at:
			if poll.After(answered) {
				polls++
			}
			if polls > 1 { // one may have been on its way
				t.Fatal("polled on")
			}
		case <-deadline:
			return
		}
	}
}

// The event stream of the session waits as it is told; that it ends is then no trouble.
func TestEventStreamRetry(t *testing.T) {
	s := newServer(t)
	at := make(chan time.Time, 64)
	s.stream = func(w http.ResponseWriter, _ *http.Request) {
		at <- time.Now()
		events(w, "retry: 150\n\n")
	}
	b := connect(t, Config{URL: s.URL})
	b.handshake()
	first, second := receive(t, at, "GET"), receive(t, at, "GET")
	if waited := second.Sub(first); waited < 100*time.Millisecond {
		t.Errorf("opened again after %s, want 150 ms", waited)
	}
	if strings.Contains(b.log.String(), "event stream") {
		t.Errorf("logged: %s", b.log)
	}
}
