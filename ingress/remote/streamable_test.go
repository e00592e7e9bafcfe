package remote

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mcpbroker/actors/wire"
)

// Spec 03 4.2: the session and the negotiated revision go with every request behind the
// handshake, and the session is ended on Stop.
func TestSession(t *testing.T) {
	s := newServer(t)
	b := connect(t, Config{URL: s.URL})
	b.handshake()
	b.send(request(2, "tools/list"))
	b.expect(response(2, "tools/list"))
	hello := s.took("POST  " + initialize)
	equal(t, "Accept", hello.header.Get("Accept"), "application/json, text/event-stream")
	equal(t, "Content-Type", hello.header.Get("Content-Type"), "application/json")
	equal(t, "revision with initialize", hello.version, "")
	equal(t, "revision", s.took("POST session-1 "+initialized).version, "2025-06-18")
	equal(t, "revision", s.took("POST session-1 "+request(2, "tools/list")).version, "2025-06-18")
	b.driver.Stop(patience)
	b.expectEnd("<nil>", false)
	equal(t, "revision", s.took("DELETE session-1 ").version, "2025-06-18")
	if s.known("session-1") {
		t.Error("the session was not deleted")
	}
}

// What is behind initialize waits for its session, and requests wait until the server
// has taken notifications/initialized.
func TestOrder(t *testing.T) {
	s := newServer(t)
	early := make(chan struct{})
	s.before = func(_ http.ResponseWriter, _ *http.Request, body []byte) bool {
		switch string(body) {
		case request(2, "a"):
			close(early)
		case initialized:
			select {
			case <-early:
				t.Error("the request came while the server dealt with the notification")
			case <-time.After(20 * time.Millisecond):
			}
		}
		return false
	}
	b := connect(t, Config{URL: s.URL})
	b.send(initialize, initialized, request(2, "a"))
	b.expect(welcome, response(2, "a"))
	for _, want := range []string{"POST  " + initialize, "POST session-1 " + initialized, "POST session-1 " + request(2, "a")} {
		s.took(want)
	}
}

// 07 row 2: 401 is shown as what it is and never answered with a handshake; other
// failures are the caller's at once, with the server's words.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		status     int
		kind, body string
		want       string
	}{
		{401, "text/plain", "who are you", refusal(2, wire.RemoteDenied("far", "401 Unauthorized"))},
		{403, "application/json", `{"error":"insufficient_scope"}`, refusal(2, wire.RemoteDenied("far", "403 Forbidden"))},
		{503, "text/plain", "come\nback", refusal(2, wire.RemoteRefused("far", "503 Service Unavailable", "come back"))},
		{502, "text/html", "<html>bad gateway</html>", refusal(2, wire.RemoteRefused("far", "502 Bad Gateway", ""))},
		{500, "application/json", `{"error":{"message":"it broke"}}`, refusal(2, wire.RemoteRefused("far", "500 Internal Server Error", "it broke"))},
		{429, "application/json", `{"detail":"slow down"}`, refusal(2, wire.RemoteRefused("far", "429 Too Many Requests", "slow down"))},
		{400, "application/json", `{"jsonrpc":"2.0","id":"brk-2","error":{"code":-32602,"message":"no"}}`, `{"jsonrpc":"2.0","id":"brk-2","error":{"code":-32602,"message":"no"}}`},
		{422, "text/plain", strings.Repeat("é", 300), refusal(2, wire.RemoteRefused("far", "422 Unprocessable Entity", strings.Repeat("é", 200)+"..."))},
	} {
		t.Run(fmt.Sprint(c.status), func(t *testing.T) {
			s := newServer(t)
			s.call = func(w http.ResponseWriter, _ *http.Request, _ *wire.Frame) {
				w.Header().Set("Content-Type", c.kind)
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}
			b := connect(t, Config{URL: s.URL})
			b.handshake()
			b.send(request(2, "a"))
			b.expect(c.want)
			s.set(func() { s.call = nil })
			b.send(request(3, "b"))
			b.expect(response(3, "b"))
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.n != 1 {
				t.Errorf("%d handshakes, want 1", s.n)
			}
		})
	}
}

// A first initialize that fails ends the connection, and 401 and 403 say that waiting
// does not help.
func TestFirstHandshake(t *testing.T) {
	for _, c := range []struct {
		status int
		want   string
		denied bool
	}{
		{401, "the server answered HTTP 401 Unauthorized: no", true},
		{403, "the server answered HTTP 403 Forbidden: no", true},
		{404, "it did not take initialize: the server answered HTTP 404 Not Found: no; nor does it speak the older HTTP+SSE transport: the server answered HTTP 404 Not Found: no; correct url, its path included, or transport", false},
		{503, "it did not take initialize: the server answered HTTP 503 Service Unavailable: no", false},
	} {
		s := newServer(t)
		s.before = func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
			http.Error(w, "no", c.status)
			return true
		}
		b := connect(t, Config{URL: s.URL})
		b.send(initialize)
		b.expectEnd(c.want, c.denied)
	}
}

// A JSON-RPC error in answer to initialize is the server's word and passed on, whatever
// its status.
func TestRefusedInitialize(t *testing.T) {
	const no = `{"jsonrpc":"2.0","id":"brk-1","error":{"code":-32602,"message":"Unsupported protocol version"}}`
	for _, status := range []int{200, 400} {
		s := newServer(t)
		s.before = func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, no)
			return true
		}
		b := connect(t, Config{URL: s.URL})
		b.send(initialize)
		b.expect(no)
	}
}

// 07 row 2: a server that is not there ends the connection; the call is answered first.
func TestRefusedConnection(t *testing.T) {
	s := newServer(t)
	s.Config.SetKeepAlivesEnabled(false) // the end of an idle connection is noticed in its own time
	b := connect(t, Config{URL: s.URL})
	b.handshake()
	s.took("POST  " + initialize)
	s.took("POST session-1 " + initialized)
	address := s.Listener.Addr().String()
	s.kill()
	b.send(request(2, "a"))
	cause := "dial tcp " + address + ": connect: connection refused"
	b.expect(refusal(2, wire.RemoteUnreachable("far", cause)))
	b.expectEnd("it cannot be reached: "+cause, false)
}

// A connection that breaks with the request on it may have cost its effect: the caller
// is told so, and nothing is repeated.
func TestBrokenConnection(t *testing.T) {
	s := newServer(t)
	s.call = func(w http.ResponseWriter, _ *http.Request, _ *wire.Frame) { panic(http.ErrAbortHandler) }
	b := connect(t, Config{URL: s.URL})
	b.handshake()
	s.took("POST  " + initialize)
	s.took("POST session-1 " + initialized)
	b.send(request(2, "a"))
	b.expect(refusal(2, wire.RemoteLost("far", "the server closed the connection")))
	s.took("POST session-1 " + request(2, "a"))
	s.set(func() { s.call = nil })
	b.send(request(3, "b"))
	b.expect(response(3, "b"))
	s.took("POST session-1 " + request(3, "b"))
}

// 07 row 7: an answer without a response is an error, never an empty success.
func TestNoResponse(t *testing.T) {
	other := `{"jsonrpc":"2.0","method":"notifications/x"}`
	for _, c := range []struct {
		name   string
		answer func(w http.ResponseWriter)
		before []string
		why    string
	}{
		{"empty body", func(http.ResponseWriter) {}, nil, "the server answered HTTP 200 OK with an empty body"},
		{"accepted", func(w http.ResponseWriter) { w.WriteHeader(202) }, nil, "the server answered HTTP 202 Accepted with an empty body"},
		{"no content", func(w http.ResponseWriter) { w.WriteHeader(204) }, nil, "the server answered HTTP 204 No Content with an empty body"},
		{"empty stream", func(w http.ResponseWriter) { events(w) }, nil, "the event stream ended: the server's answer held no response to the request"},
		{"stream without the response", func(w http.ResponseWriter) { events(w, event(other)) }, []string{other}, "the event stream ended: the server's answer held no response to the request"},
		{"no JSON", func(w http.ResponseWriter) { respond(w, "<p>hello") }, nil, "the body is not valid JSON"},
		{"another message", func(w http.ResponseWriter) { respond(w, other) }, []string{other}, "the server's answer held no response to the request"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t)
			s.call = func(w http.ResponseWriter, _ *http.Request, _ *wire.Frame) { c.answer(w) }
			b := connect(t, Config{URL: s.URL})
			b.handshake()
			b.send(request(2, "a"))
			b.expect(c.before...)
			got := b.next()
			contains(t, "answer", got, `"id":"brk-2","error":{"code":-32000,"message":"Provider \"far\": the answer was lost: `+c.why)
		})
	}
}

// An error that names no request, in the place of the answer, is the answer.
func TestUnnamedError(t *testing.T) {
	s := newServer(t)
	s.call = func(w http.ResponseWriter, _ *http.Request, _ *wire.Frame) {
		respond(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no","data":1.50}}`)
	}
	b := connect(t, Config{URL: s.URL})
	b.handshake()
	b.send(request(2, "a"))
	b.expect(`{"jsonrpc":"2.0","id":"brk-2","error":{"code":-32600,"message":"no","data":1.50}}`)
}

// Spec 03 4.2: each element of an array is a message; bytes pass as sent.
func TestArray(t *testing.T) {
	s := newServer(t)
	s.call = func(w http.ResponseWriter, _ *http.Request, _ *wire.Frame) {
		respond(w, ` [ {"jsonrpc":"2.0","method":"notifications/x"}, {"id":"brk-2","x":12345678901234567890,"result":1.0,"jsonrpc":"2.0"} , 5 ]`)
	}
	b := connect(t, Config{URL: s.URL})
	b.handshake()
	b.send(request(2, "a"))
	b.expect(`{"jsonrpc":"2.0","method":"notifications/x"}`, `{"id":"brk-2","x":12345678901234567890,"result":1.0,"jsonrpc":"2.0"}`, `junk 5`)
}

// A body, or an event, over the limit costs its own call only (07 row 56).
func TestTooLarge(t *testing.T) {
	const limit = 1 << 12
	big := func(size int) string {
		const around = `{"jsonrpc":"2.0","id":"brk-2","result":""}`
		return `{"jsonrpc":"2.0","id":"brk-2","result":"` + strings.Repeat("x", size-len(around)) + `"}`
	}
	for _, stream := range []bool{false, true} {
		s := newServer(t)
		var size atomic.Int32
		size.Store(limit)
		s.call = func(w http.ResponseWriter, _ *http.Request, f *wire.Frame) {
			switch {
			case string(f.Method) == "small":
				respond(w, echo(f))
			case stream:
				events(w, event(big(int(size.Load()))))
			default:
				respond(w, big(int(size.Load())))
			}
		}
		b := connect(t, Config{URL: s.URL, Limit: limit})
		b.handshake()
		b.send(request(2, "big"))
		b.expect(big(limit))
		size.Add(1)
		b.send(request(2, "big"))
		b.expect(refusal(2, wire.TooLarge(limit)))
		b.send(request(3, "small"))
		b.expect(response(3, "small"))
	}
}

// A server that does not keep sessions is asked for none, and not for a stream.
func TestStateless(t *testing.T) {
	s := newServer(t)
	s.before = func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		switch f, _ := wire.Scan(body); {
		case r.Method != http.MethodPost:
			t.Errorf("%s of a server without sessions", r.Method)
		case string(body) == initialize:
			respond(w, welcome)
		case f.IsRequest():
			respond(w, echo(&f))
		default:
			w.WriteHeader(http.StatusAccepted)
		}
		return true
	}
	b := connect(t, Config{URL: s.URL})
	b.handshake()
	b.send(request(2, "a"))
	b.expect(response(2, "a"))
	b.driver.Stop(patience)
	b.expectEnd("<nil>", false)
}

// A message without an answer that the server refuses is a line in the log, one for
// many, and costs nothing else.
func TestLostNotes(t *testing.T) {
	s := newServer(t)
	b := connect(t, Config{URL: s.URL})
	s.settled(b)
	s.set(func() {
		s.before = func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
			f, _ := wire.Scan(body)
			if !f.IsRequest() {
				http.Error(w, "no", http.StatusTeapot)
			}
			return !f.IsRequest()
		}
	})
	const note = `{"jsonrpc":"2.0","method":"notifications/x"}`
	b.send(note, note, note, request(2, "a"))
	b.expect(response(2, "a"))
	const line = "a message for it was lost (notifications/x): the server answered HTTP 418 I'm a teapot: no"
	if n := strings.Count(b.log.String(), line); n != 1 {
		t.Errorf("logged %d times: %s", n, b.log)
	}
	b.send(`{"jsonrpc":"2.0","id":9,"result":{}}`, request(3, "a"))
	b.expect(response(3, "a"))
	contains(t, "log", b.log.String(), "a message for it was lost (a response): ")
}
