package remote

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// detected waits for the word that the server speaks another transport.
func (b *broker) detected() {
	b.t.Helper()
	m, ok := receive(b.t, b.owner, "UpstreamDetected").(*msg.UpstreamDetected)
	if !ok || m.Gen != ownGen || m.Transport != SSE {
		b.t.Fatalf("the owner was told %+v", m)
	}
}

// The protocol's rule of backwards compatibility: a first initialize that is answered
// 400, 404 or 405 is sent over HTTP+SSE, if a GET of the same URL opens a stream that
// names an endpoint. The server is asked so once in the life of a connection.
func TestFallback(t *testing.T) {
	for _, status := range []int{400, 404, 405} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			s := newOlder(t)
			s.strange = status
			b := connect(t, Config{URL: s.URL + "/mcp", Headers: map[string]string{"X-Key": "k"}})
			b.send(initialize, initialized, request(2, "a"))
			b.detected()
			equal(t, "header", s.took("/messages?session=1 "+initialize).header.Get("X-Key"), "k")
			s.took("/messages?session=1 " + initialized)
			s.took("/messages?session=1 " + request(2, "a"))
			s.out <- event(welcome)
			s.out <- event(response(2, "a"))
			b.expect(welcome, response(2, "a"))
			b.send(initialize)
			s.took("/messages?session=1 " + initialize)
			line := fmt.Sprintf(`level=INFO msg="[broker] upstream \"far\": it speaks the older HTTP+SSE transport (POST was answered HTTP %d %s); with transport = \"sse\" it is dialed so at once"`,
				status, http.StatusText(status))
			if n := strings.Count(b.log.String(), line); n != 1 {
				t.Errorf("logged %d times in %s", n, b.log)
			}
			close(s.out)
			b.expectEnd("its event stream ended: the server closed the connection", false)
		})
	}
}

// A transport that is configured is what the server is spoken to with, and a Stop while
// the stream is open is the end.
func TestNoFallback(t *testing.T) {
	s := newOlder(t)
	s.strange = 405
	b := connect(t, Config{URL: s.URL + "/mcp", Transport: StreamableHTTP})
	b.send(initialize)
	b.expectEnd("it did not take initialize: the server answered HTTP 405 Method Not Allowed: what?; correct url, its path included, or transport", false)

	b = connect(t, Config{URL: s.URL + "/mcp"})
	b.send(initialize)
	b.detected()
	b.driver.Stop(patience)
	b.expectEnd("<nil>", false)
}

// Once there was a session the server is one of Streamable HTTP, whatever it answers to
// another initialize; so is one that is refused in the words of JSON-RPC.
func TestNoFallbackBehindSession(t *testing.T) {
	s := newServer(t)
	s.stream = func(w http.ResponseWriter, _ *http.Request) { events(w, "event: endpoint\ndata: /x\n\n") }
	b := connect(t, Config{URL: s.URL})
	s.settled(b)
	s.set(func() {
		s.before = func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
			if r.Header.Get(sessionHeader) == "" {
				http.Error(w, "full", http.StatusBadRequest)
			}
			return r.Header.Get(sessionHeader) == ""
		}
	})
	b.send(initialize, request(3, "a"))
	b.expect(refusal(1, wire.RemoteRefused("far", "400 Bad Request", "full")), response(3, "a"))

	const no = `{"jsonrpc":"2.0","id":"brk-1","error":{"code":-32602,"message":"Unsupported protocol version"}}`
	s = newServer(t)
	s.before = func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, no)
		return true
	}
	b = connect(t, Config{URL: s.URL})
	b.send(initialize)
	b.expect(no)
	if len(s.gets) != 0 {
		t.Error("a stream was asked for")
	}
}

// Where GET does no better than POST the error has both answers; a GET that is refused
// for the credentials tells that waiting does not help.
func TestFallbackFails(t *testing.T) {
	const lead = "it did not take initialize: the server answered HTTP 405 Method Not Allowed: no POST; nor does it speak the older HTTP+SSE transport: "
	for _, c := range []struct {
		name   string
		get    func(w http.ResponseWriter, r *http.Request)
		want   string
		denied bool
	}{
		{"missing", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no GET", 404) }, "the server answered HTTP 404 Not Found: no GET" + adviceAddress, false},
		{"denied", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, "the server answered HTTP 401 Unauthorized", true},
		{"a page", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
			"the server answered with a web page (text/html), not with JSON or an event stream" + adviceAddress, false},
		{"no endpoint", func(w http.ResponseWriter, _ *http.Request) { events(w, event("{}")) },
			"its event stream ended before it named an endpoint: the server closed the connection" + adviceAddress, false},
		{"silent", func(w http.ResponseWriter, r *http.Request) { events(w); <-r.Context().Done() }, "it named no endpoint within 50ms" + adviceAddress, false},
		{"broken", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "it cannot be reached: the server closed the connection" + adviceAddress, false},
		{"other origin", func(w http.ResponseWriter, _ *http.Request) {
			events(w, "event: endpoint\ndata: http://127.0.0.1:1/x\n\n")
		}, "the endpoint it names is of another origin, http://127.0.0.1:1" + adviceAddress, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t)
			s.before = func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
				if r.Method == http.MethodGet {
					c.get(w, r)
				} else {
					http.Error(w, "no POST", http.StatusMethodNotAllowed)
				}
				return true
			}
			b := newBroker(t)
			if c.name == "silent" {
				b.pace.endpoint = 50 * time.Millisecond
			}
			b.start(Config{URL: s.URL})
			b.attach()
			b.send(initialize)
			b.expectEnd(lead+c.want, c.denied)
		})
	}
}

// The public reference server in its SSE mode, which knows no POST of its stream's path.
func TestReferenceServerOverSSE(t *testing.T) {
	script := filepath.Join(nodeModules(t), "@modelcontextprotocol", "server-everything", "dist", "index.js")
	port := freePort(t)
	startReference(t, script, "sse", port)
	url := fmt.Sprintf("http://127.0.0.1:%d/SSE", port) // a path that does not say so; the server's are the same in capitals
	equal(t, "transport", TransportOf(url), StreamableHTTP)
	b := connect(t, Config{URL: url})
	b.send(initialize)
	b.detected()
	contains(t, "initialize", b.answer("brk-1"), `"serverInfo"`)
	b.send(initialized, `{"jsonrpc":"2.0","id":"brk-2","method":"tools/call","params":{"name":"echo","arguments":{"message":"读é🎉"}}}`)
	contains(t, "tools/call", b.answer("brk-2"), `"content":[{"type":"text","text":"Echo: 读é🎉"}]`)
	contains(t, "log", b.log.String(), "it speaks the older HTTP+SSE transport (POST was answered HTTP 404 Not Found)")
	b.driver.Stop(patience)
	b.expectEnd("<nil>", false)
}
