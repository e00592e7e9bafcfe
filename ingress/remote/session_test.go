package remote

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"mcpbroker/actors/wire"
)

// 07 rows 1 and 4: a server that has been killed and started again is greeted afresh,
// and the call that found its session gone is answered as if nothing had happened.
func TestRestart(t *testing.T) {
	s := newServer(t)
	s.Config.SetKeepAlivesEnabled(false) // the end of an idle connection is noticed in its own time
	b := connect(t, Config{URL: s.URL})
	b.handshake()
	b.send(request(2, "a"))
	b.expect(response(2, "a"))
	s = s.restart()
	b.send(request(3, "b"))
	b.expect(response(3, "b"))
	for _, want := range []string{"POST session-1 " + request(3, "b"), "POST  " + initialize, "POST session-1 " + initialized, "POST session-1 " + request(3, "b")} {
		s.took(want)
	}
}

// 07 row 2: recovery is not tied to one status.
func TestForgotten(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
	}{
		{404, "no such session"}, {410, ""},
		{400, `{"jsonrpc":"2.0","id":"brk-3","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`},
		{400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Server not initialized"}}`},
	} {
		t.Run(fmt.Sprint(c.status, c.body), func(t *testing.T) {
			s := newServer(t)
			b := connect(t, Config{URL: s.URL})
			s.settled(b)
			b.send(request(2, "a"))
			b.expect(response(2, "a"))
			s.set(func() {
				s.before = func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
					if r.Header.Get(sessionHeader) != "session-1" {
						return false
					}
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, c.body)
					return true
				}
			})
			b.send(request(3, "b"))
			b.expect(response(3, "b"))
		})
	}
}

// Many calls that find the session gone make one handshake.
func TestForgottenByMany(t *testing.T) {
	s := newServer(t)
	b := connect(t, Config{URL: s.URL})
	s.settled(b)
	s.forget()
	const calls = 40
	for i := range calls {
		b.send(request(10+i, "m"))
	}
	got := map[string]bool{}
	for range calls {
		got[b.next()] = true
	}
	for i := range calls {
		if !got[response(10+i, "m")] {
			t.Errorf("call %d was not answered", i)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n != 2 {
		t.Errorf("%d handshakes, want 2", s.n)
	}
}

// What a slot has set up in the old session is set up in the new one, once (07 row 17).
func TestForgottenSubscriptions(t *testing.T) {
	subscribe := func(id int, method, uri string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":"brk-%d","method":"resources/%s","params":{"uri":%q}}`, id, method, uri)
	}
	s := newServer(t)
	b := connect(t, Config{URL: s.URL})
	s.settled(b)
	kept, dropped := subscribe(2, "subscribe", "file:///a"), subscribe(3, "subscribe", "file:///b")
	for i, frame := range []string{kept, dropped, subscribe(4, "unsubscribe", "file:///b")} {
		b.send(frame)
		contains(t, "answer", b.next(), fmt.Sprintf(`"brk-%d"`, i+2))
	}
	for range 3 {
		receive(t, s.log, "message")
	}
	s.forget()
	b.send(request(5, "a"))
	b.expect(response(5, "a"))
	got := map[string]int{}
	for range 5 { // the refused call, initialize, initialized, and side by side the call and the subscription
		got[receive(t, s.log, "message").body]++
	}
	if got[kept] != 1 || got[dropped] != 0 {
		t.Errorf("the server was sent %v", got)
	}
}

// A notification that finds the session gone is sent again; an answer to a request of
// the lost session is not.
func TestForgottenByNotes(t *testing.T) {
	s := newServer(t)
	b := connect(t, Config{URL: s.URL})
	s.settled(b)
	s.forget()
	const note, answer = `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`, `{"jsonrpc":"2.0","id":9,"result":{}}`
	b.send(note)
	for _, want := range []string{"POST session-1 " + note, "POST  " + initialize, "POST session-2 " + initialized, "POST session-2 " + note} {
		s.took(want)
	}
	s.forget()
	b.send(answer, request(2, "a"))
	for _, want := range []string{"POST session-2 " + answer, "POST  " + initialize, "POST session-3 " + initialized, "POST session-3 " + request(2, "a")} {
		s.took(want)
	}
}

// Where no new session can be had the connection ends, and says why.
func TestForgottenForGood(t *testing.T) {
	const lost = "its session was gone, and another one could not be opened: "
	for _, c := range []struct {
		status int
		end    string
		denied bool
		answer *wire.Error
	}{
		{503, lost + "the server answered HTTP 503 Service Unavailable: no", false,
			wire.RemoteUnreachable("far", lost+"the server answered HTTP 503 Service Unavailable: no")},
		{401, lost + "the server answered HTTP 401 Unauthorized: no", true, wire.RemoteDenied("far", "401 Unauthorized")},
	} {
		s := newServer(t)
		b := connect(t, Config{URL: s.URL})
		s.settled(b)
		s.forget()
		s.set(func() {
			s.before = func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
				if r.Header.Get(sessionHeader) == "" {
					http.Error(w, "no", c.status)
				}
				return r.Header.Get(sessionHeader) == ""
			}
		})
		b.send(request(2, "a"))
		b.expect(refusal(2, c.answer))
		b.expectEnd(c.end, c.denied)
	}
}

// Where every client's initialize is relayed, each opens a session of its own, and the
// one before it is ended if nothing is in flight there.
func TestSecondInitialize(t *testing.T) {
	s := newServer(t)
	b := connect(t, Config{URL: s.URL})
	s.settled(b)
	b.send(initialize, request(2, "a"))
	b.expect(welcome, response(2, "a"))
	for _, want := range []string{"POST  " + initialize, "DELETE session-1 ", "POST session-2 " + request(2, "a")} {
		s.took(want)
	}
	s.set(func() {
		s.before = func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
			if r.Header.Get(sessionHeader) == "" {
				http.Error(w, "full", http.StatusServiceUnavailable)
			}
			return r.Header.Get(sessionHeader) == ""
		}
	})
	b.send(initialize, request(3, "a"))
	b.expect(refusal(1, wire.RemoteRefused("far", "503 Service Unavailable", "full")), response(3, "a"))
}

// In a session that is opened again nothing is sent before the server has taken
// notifications/initialized.
func TestRenewedOrder(t *testing.T) {
	s := newServer(t)
	b := connect(t, Config{URL: s.URL})
	s.settled(b)
	s.forget()
	telling, arrived := make(chan struct{}), make(chan string, 4)
	s.set(func() {
		s.before = func(_ http.ResponseWriter, r *http.Request, body []byte) bool {
			switch string(body) {
			case initialized:
				close(telling)
				select {
				case in := <-arrived:
					equal(t, "session of a call that is sent meanwhile", in, "session-1")
				case <-r.Context().Done():
				}
			case request(3, "a"):
				arrived <- r.Header.Get(sessionHeader)
			}
			return false
		}
	})
	b.send(request(2, "a"))
	receive(t, telling, "notifications/initialized")
	b.send(request(3, "a"))
	got := map[string]bool{b.next(): true, b.next(): true}
	if !got[response(2, "a")] || !got[response(3, "a")] {
		t.Errorf("answers %v", got)
	}
}
