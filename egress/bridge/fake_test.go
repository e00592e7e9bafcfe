package bridge_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/actors/wire"
)

// fake is a broker that answers as a test says and notes what it was asked.
type fake struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string
}

// request is what a test sees of one.
type request struct {
	*http.Request
	body    string
	session string
}

func newFake(t testing.TB, serve func(w http.ResponseWriter, r request)) *fake {
	t.Helper()
	f := &fake{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		req := request{r, string(body), r.Header.Get("Mcp-Session-Id")}
		f.note(fmt.Sprintf("%s %s %s %s", r.Method, req.session, r.Header.Get("Mcp-Protocol-Version"), summary(req.body)))
		serve(w, req)
	}))
	t.Cleanup(f.Close)
	return f
}

// summary is the method and the id of a message.
func summary(body string) string {
	method, _ := wire.Unquote(wire.Member([]byte(body), "method"))
	return fmt.Sprintf("%s %s", method, wire.Member([]byte(body), "id"))
}

func (f *fake) expectSeen(t testing.TB, want ...string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if diff := cmp.Diff(want, f.seen); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// note keeps a line. The stream is left out: it comes when it comes.
func (f *fake) note(line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !strings.HasPrefix(line, http.MethodGet) {
		f.seen = append(f.seen, line)
	}
}

func reply(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, body)
}

// legacy answers the handshake and leaves the rest to serve.
func legacy(serve func(w http.ResponseWriter, r request)) func(http.ResponseWriter, request) {
	return func(w http.ResponseWriter, r request) {
		switch {
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case r.Method == http.MethodDelete:
			w.WriteHeader(http.StatusNoContent)
		case strings.Contains(r.body, `"initialize"`):
			w.Header().Set("Mcp-Session-Id", "one")
			reply(w, welcome)
		case strings.Contains(r.body, "notifications/initialized"):
			w.WriteHeader(http.StatusAccepted)
		default:
			serve(w, r)
		}
	}
}

func result(r request) string {
	return `{"jsonrpc":"2.0","id":` + string(wire.Member([]byte(r.body), "id")) + `,"result":{}}`
}

// Row 20: the session and the revision are kept from the first answer on; the end
// of the input ends the session.
func TestSessionKept(t *testing.T) {
	f := newFake(t, legacy(func(w http.ResponseWriter, r request) { reply(w, result(r)) }))
	h := start(t, f.URL)
	h.send(initialize)
	h.expect(welcome)
	h.send(initialized)
	h.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	h.expect(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	h.send(initialize) // an ordinary message of the session
	h.expect(welcome)
	if err := h.end(); err != nil {
		t.Error(err)
	}
	f.expectSeen(t, "POST   initialize 0", "POST one 2025-11-25 notifications/initialized ", "POST one 2025-11-25 tools/list 1",
		"POST one  initialize 0", "DELETE one 2025-11-25  ")
}

// Rows 7 and 68: every answer that is not the response becomes an error with the
// request's id.
func TestAnswers(t *testing.T) {
	const head = `{"jsonrpc":"2.0","id":1,"error":{"code":`
	lost := func(why string) string {
		return head + `-32000,"message":"The answer from $URL was lost: ` + why + `. The request may have been carried out."}}`
	}
	status := func(code int, body string) func(http.ResponseWriter, request) {
		return func(w http.ResponseWriter, _ request) { w.WriteHeader(code); _, _ = io.WriteString(w, body) }
	}
	stream := func(text string) func(http.ResponseWriter, request) {
		return func(w http.ResponseWriter, _ request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, text)
		}
	}
	const ok = `{"jsonrpc":"2.0","id":1,"result":{}}`
	for _, c := range []struct {
		name  string
		serve func(http.ResponseWriter, request)
		want  []string
	}{
		{"JSON", func(w http.ResponseWriter, r request) { reply(w, "{\n\"jsonrpc\":\"2.0\",\n\"id\":1,\"result\":{}}\n") },
			[]string{`{ "jsonrpc":"2.0", "id":1,"result":{}}`}},
		{"event stream", stream(": open\n\nid: 1\ndata:\n\nevent: message\ndata: {\"method\":\"a\"}\n\ndata: " + ok + "\n\ndata: {\"method\":\"b\"}\n\n"),
			[]string{`{"method":"a"}`, ok}},
		{"event stream, no blank line", stream("data: " + ok), []string{ok}},
		{"event stream, other event", stream("event: x\ndata: {}\n\ndata: " + ok + "\n\n"), []string{ok}},
		{"event stream, junk", stream("data: junk\n\ndata: " + ok + "\n\n"), []string{ok}},
		{"empty event stream", stream(""), []string{lost("it held no response to the request")}},
		{"event stream without the response", stream("data: {\"method\":\"a\"}\n\n"), []string{`{"method":"a"}`, lost("it held no response to the request")}},
		{"nothing", status(202, ""), []string{lost("it held no response to the request")}},
		{"no JSON", func(w http.ResponseWriter, _ request) { reply(w, "") }, []string{lost("not valid JSON: unexpected end at byte 0")}},
		{"a page", func(w http.ResponseWriter, _ request) { w.Header().Set("Content-Type", "text/html"); reply2(w) },
			[]string{lost(`it is \"text/html\", neither JSON nor an event stream`)}},
		{"bad gateway", status(502, "<html>"), []string{head + `-32000,"message":"$URL answered 502 Bad Gateway; is it a broker's?"}}`}},
		{"refused", status(400, `{"error":"missing_session","error_description":"Mcp-Session-Id header is required"}`),
			[]string{head + `-32600,"message":"Mcp-Session-Id header is required"}}`}},
		{"too large", status(413, `{"error":"payload_too_large","error_description":"The message is larger than 7 bytes (maxMessageBytes)"}`),
			[]string{head + `-32600,"message":"The message is larger than 7 bytes (maxMessageBytes)"}}`}},
		{"parse error", status(400, `{"error":"parse_error","error_description":"d"}`), []string{head + `-32700,"message":"d"}}`}},
		{"forbidden", status(403, `{"error":"forbidden","error_description":"d"}`), []string{head + `-32001,"message":"d"}}`}},
		{"stopping", status(503, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Session closed"}}`),
			[]string{head + `-32000,"message":"Session closed"}}`}},
		{"JSON-RPC error without code", status(500, `{"error":{"message":"m"}}`), []string{head + `-32000,"message":"m"}}`}},
		{"cut off", func(w http.ResponseWriter, _ request) {
			w.Header().Set("Content-Length", "100")
			reply(w, "{")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, []string{lost("unexpected EOF")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t, legacy(c.serve))
			h := start(t, f.URL)
			h.send(initialize)
			h.expect(welcome)
			h.send(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
			for _, want := range c.want {
				h.expect(strings.ReplaceAll(want, "$URL", f.URL))
			}
			h.send(initialize)
			h.expect(welcome)
		})
	}
}

func reply2(w http.ResponseWriter) { _, _ = io.WriteString(w, "<html>") }

// A response that breaks the connection before it begins is an error, and is not
// asked for again: the request may have been carried out.
func TestConnectionLost(t *testing.T) {
	f := newFake(t, legacy(func(http.ResponseWriter, request) { panic(http.ErrAbortHandler) }))
	h := start(t, f.URL)
	h.send(initialize)
	h.expect(welcome)
	h.send(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
	h.expect(string(wire.AnswerLost(f.URL, io.EOF).Response([]byte("1"))))
	f.expectSeen(t, "POST   initialize 0", "POST one 2025-11-25 m 1")
}

// sessions is a broker that forgets: only the session of its newest initialize
// is known, and none is after forget.
type sessions struct {
	mu    sync.Mutex
	n     int
	known string
}

func (s *sessions) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = ""
}

func (s *sessions) serve(w http.ResponseWriter, r request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.session == "" && strings.Contains(r.body, `"initialize"`):
		s.n++
		s.known = fmt.Sprint("s", s.n)
		w.Header().Set("Mcp-Session-Id", s.known)
		reply(w, welcome)
	case r.session != s.known:
		w.WriteHeader(http.StatusNotFound)
	case wire.Member([]byte(r.body), "id") == nil:
		w.WriteHeader(http.StatusAccepted)
	default:
		reply(w, result(r))
	}
}

// Row 1: a forgotten session is followed by one other, for all who notice, and
// what was refused is sent once more.
func TestSessionRenewed(t *testing.T) {
	s := &sessions{}
	f := newFake(t, s.serve)
	h := start(t, f.URL)
	h.send(initialize)
	h.expect(welcome)
	s.forget()
	const calls = 8
	for i := range calls {
		h.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"m"}`, i+1))
	}
	answers := map[string]bool{}
	for range calls {
		answers[h.receive()] = true
	}
	for i := range calls {
		if want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, i+1); !answers[want] {
			t.Errorf("no answer %s", want)
		}
	}
	s.forget()
	h.send(`{"jsonrpc":"2.0","method":"notifications/x"}`)
	h.send(`{"jsonrpc":"2.0","id":"last","method":"m"}`)
	h.expect(`{"jsonrpc":"2.0","id":"last","result":{}}`)
	s.forget()
	h.send(initialize)
	h.expect(welcome)
	if s.n != 4 {
		t.Errorf("%d sessions, want 4", s.n)
	}
	h.log.WaitN(t, 2, "[mcp-broker] bridge: the broker did not know the session any more; a new one was opened")
}

// A request that is refused with 404 in the new session too is answered so.
func TestSessionNeverKnown(t *testing.T) {
	f := newFake(t, legacy(func(w http.ResponseWriter, _ request) { w.WriteHeader(http.StatusNotFound) }))
	h := start(t, f.URL)
	h.send(initialize)
	h.expect(welcome)
	h.send(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
	h.expect(string(wire.RefusedHTTP(f.URL, "404 Not Found").Response([]byte("1"))))
	f.expectSeen(t, "POST   initialize 0", "POST one 2025-11-25 m 1", "POST   initialize 0", "POST one 2025-11-25 m 1")
}

// Messages keep their order: a notification has been taken before the request
// behind it is sent.
func TestOrder(t *testing.T) {
	f := newFake(t, legacy(func(w http.ResponseWriter, r request) {
		if wire.Member([]byte(r.body), "id") == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		reply(w, result(r))
	}))
	h := start(t, f.URL)
	h.send(initialize)
	h.expect(welcome)
	want := []string{"POST   initialize 0"}
	for i := range 50 {
		h.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"n%d"}`, i))
		h.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"m"}`, i))
		h.receive()
		want = append(want, fmt.Sprintf("POST one 2025-11-25 n%d ", i), fmt.Sprintf("POST one 2025-11-25 m %d", i))
	}
	f.expectSeen(t, want...)
}

// Spec 01 5.4: the stream is opened once the host is initialized, resumed behind
// its last event, opened again when it ends or the session has changed.
func TestStreamResumed(t *testing.T) {
	opened := make(chan string, 16)
	s := &sessions{}
	f := newFake(t, func(w http.ResponseWriter, r request) {
		if r.Method != http.MethodGet {
			s.serve(w, r)
			return
		}
		select {
		case opened <- r.session + " after " + r.Header.Get("Last-Event-ID"):
		case <-r.Context().Done(): // nobody looks any more
			return
		}
		switch n := len(opened); {
		case r.session != s.knownNow():
			w.WriteHeader(http.StatusNotFound)
		default:
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprintf(w, ": open\n\nid: %d\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/%s\"}\n\n", 7+n, r.session)
		}
	})
	h := start(t, f.URL)
	h.send(initialize)
	h.expect(welcome)
	h.send(initialized)
	if got := receive(t, opened, "stream"); got != "s1 after " {
		t.Errorf("first stream %q", got)
	}
	h.expect(`{"jsonrpc":"2.0","method":"notifications/s1"}`)
	if got := receive(t, opened, "second stream"); !strings.HasPrefix(got, "s1 after ") || got == "s1 after " {
		t.Errorf("second stream %q", got)
	}
	s.forget()
	for got := ""; got != "s2 after "; {
		got = receive(t, opened, "stream of the new session")
	}
	h.log.Wait(t, "a new one was opened")
}

func (s *sessions) knownNow() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}

// Cancelled requests are given up once the broker knows.
func TestCancelled(t *testing.T) {
	begun, left := make(chan struct{}), make(chan struct{})
	f := newFake(t, legacy(func(w http.ResponseWriter, r request) {
		if wire.Member([]byte(r.body), "id") == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		close(begun)
		<-r.Context().Done()
		close(left)
	}))
	h := start(t, f.URL)
	h.send(initialize)
	h.expect(welcome)
	h.send(`{"jsonrpc":"2.0","id":"a","method":"m"}`)
	receive(t, begun, "request")
	h.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`)
	receive(t, left, "end of the request")
	if err := h.end(); err != nil {
		t.Error(err)
	}
	if len(h.lines) > 0 {
		t.Errorf("the host received %q", <-h.lines)
	}
}

// A redirect within the origin is followed with its body; another origin is never
// told the session (row 70).
func TestRedirects(t *testing.T) {
	elsewhere := newFake(t, func(w http.ResponseWriter, r request) { reply(w, result(r)) })
	for target, want := range map[string]string{
		"/there":               welcome,
		elsewhere.URL + "/any": string(wire.RefusedHTTP("$URL", "307 Temporary Redirect").Response([]byte("0"))),
	} {
		f := newFake(t, nil)
		f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/there" {
				http.Redirect(w, r, target, http.StatusTemporaryRedirect)
				return
			}
			body, _ := io.ReadAll(r.Body)
			if string(body) != initialize {
				t.Errorf("body %q", body)
			}
			reply(w, welcome)
		})
		h := start(t, f.URL)
		h.send(initialize)
		h.expect(strings.ReplaceAll(want, "$URL", f.URL))
	}
	elsewhere.expectSeen(t)
}
