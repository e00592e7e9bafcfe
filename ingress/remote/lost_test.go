package remote

import (
	"io"
	"net/http"
	"testing"
)

// 07 row 2: HTTP 400 is about the session only where it says so. What a tool says of
// sessions of its own is its answer.
func TestLostSession(t *testing.T) {
	for said, want := range map[string]bool{
		"Bad Request: No valid session ID provided":           true,
		"Bad Request: Server not initialized":                 true,
		"Bad Request: Mcp-Session-Id header is required":      true,
		"Invalid or missing session-id":                       true,
		"Unknown sessionId 5f3a":                              true,
		"Invalid session":                                     true,
		"unknown session: 5f3a":                               true,
		"no such session":                                     true,
		"Session not found":                                   true,
		"Session '5f3a' not found":                            true,
		"Error: the session has expired; initialize again":    true,
		"MCP session terminated":                              true,
		"Your session has been terminated.":                   true,
		"Session does not exist":                              true,
		"not initialized":                                     true,
		"The server is not initialized":                       true,
		"":                                                    false,
		"Bad Request":                                         false,
		"Unknown chat session: 42":                            false,
		"Chat session not found":                              false,
		"The yoga session has expired":                        false,
		"no room in session 42":                               false,
		"Session 42 is full":                                  false,
		"The database is not initialized":                     false,
		"The obsession id is wrong":                           false,
		"Server 42 not found":                                 false,
		"cannot start a session: the user's limit is reached": false,
	} {
		if got := (&statusError{code: http.StatusBadRequest, said: said}).gone(); got != want {
			t.Errorf("400 %q: %v", said, got)
		}
		for code, want := range map[int]bool{404: true, 410: true, 401: false, 403: false, 503: false} {
			if got := (&statusError{code: code, said: said}).gone(); got != want {
				t.Errorf("%d %q: %v", code, said, got)
			}
		}
	}
}

// A tool that answers with HTTP 400 and speaks of a session of its own has answered; the
// session goes on.
func TestSessionOfATool(t *testing.T) {
	const own = `{"jsonrpc":"2.0","id":"brk-3","error":{"code":-32602,"message":"Unknown chat session: 42"}}`
	s := newServer(t)
	b := connect(t, Config{URL: s.URL})
	s.settled(b)
	s.set(func() { s.before = badRequest("b", own) })
	b.send(request(3, "b"))
	b.expect(own)
	b.send(request(4, "a"))
	b.expect(response(4, "a"))
	for _, want := range []string{request(3, "b"), request(4, "a")} {
		s.took("POST session-1 " + want)
	}
}

// badRequest answers calls of a method in session-1 with HTTP 400.
func badRequest(method, body string) func(http.ResponseWriter, *http.Request, []byte) bool {
	return func(w http.ResponseWriter, r *http.Request, frame []byte) bool {
		refused := r.Header.Get(sessionHeader) == "session-1" && string(frame) == request(3, method)
		if refused {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, body)
		}
		return refused
	}
}

// A session that is given up for an HTTP 400 may still live: it is ended at the server,
// once the calls under way in it are over.
func TestLostSessionEnded(t *testing.T) {
	s := newServer(t)
	held, release := s.slowly()
	b := connect(t, Config{URL: s.URL})
	s.settled(b)
	s.set(func() { s.before = badRequest("b", "no valid session") })
	b.send(request(2, "slow"))
	receive(t, held, "slow call")
	b.send(request(3, "b"))
	b.expect(response(3, "b"))
	for _, want := range []string{"POST session-1 " + request(2, "slow"), "POST session-1 " + request(3, "b"),
		"POST  " + initialize, "POST session-2 " + initialized, "POST session-2 " + request(3, "b")} {
		s.took(want)
	}
	if !s.known("session-1") {
		t.Error("the session was ended under a call")
	}
	close(release)
	b.expect(response(2, "slow"))
	s.took("DELETE session-1 ")
}

// A session that the server does not know by HTTP 404 needs no end.
func TestForgottenSessionNotEnded(t *testing.T) {
	s := newServer(t)
	b := connect(t, Config{URL: s.URL})
	s.settled(b)
	s.forget()
	b.send(request(2, "a"), request(3, "a"))
	if got := map[string]bool{b.next(): true, b.next(): true}; !got[response(2, "a")] || !got[response(3, "a")] {
		t.Errorf("answers %v", got)
	}
	b.driver.Stop(patience)
	b.expectEnd("<nil>", false)
	for len(s.log) > 0 {
		if got := <-s.log; got.method == http.MethodDelete {
			equal(t, "DELETE", got.session, "session-2")
		}
	}
}
