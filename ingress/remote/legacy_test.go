package remote

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbroker/actors/wire"
)

// older is a server of the HTTP+SSE transport.
type older struct {
	*httptest.Server
	t        *testing.T
	endpoint string      // announced
	out      chan string // pieces of the stream; closing it ends the stream
	posted   chan seen

	mu      sync.Mutex
	refuse  int // status of the next POST
	strange int // status of a POST elsewhere than to the endpoint; 0 takes it there as well
}

func newOlder(t *testing.T) *older {
	s := &older{t: t, endpoint: "messages?session=1", out: make(chan string, 64), posted: make(chan seen, 64)}
	s.Server = &httptest.Server{Listener: listen(t), Config: &http.Server{Handler: s}}
	s.Start()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

func (s *older) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	strange := s.strange
	s.mu.Unlock()
	if r.Method == http.MethodPost && strange != 0 && r.URL.Path != "/messages" {
		http.Error(w, "what?", strange)
		return
	}
	if r.Method == http.MethodPost {
		body, _ := io.ReadAll(r.Body)
		s.posted <- seen{method: r.URL.String(), header: r.Header.Clone(), body: string(body)}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.refuse != 0 {
			http.Error(w, "no", s.refuse)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		return
	}
	events(w, "event: endpoint\r\ndata: "+s.endpoint+"\r\n\r\n")
	for {
		select {
		case piece, ok := <-s.out:
			if !ok {
				return
			}
			events(w, piece)
		case <-r.Context().Done():
			return
		}
	}
}

func (s *older) took(want string) seen {
	s.t.Helper()
	got := receive(s.t, s.posted, "POST")
	equal(s.t, "POST", got.method+" "+got.body, want)
	return got
}

// Spec 03 4.2: the connection opens with the endpoint event; answers come on the
// stream, whose end is the end.
func TestLegacy(t *testing.T) {
	s := newOlder(t)
	b := connect(t, Config{URL: s.URL + "/sse", Headers: map[string]string{"X-Key": "k"}})
	b.send(initialize)
	equal(t, "header", s.took("/messages?session=1 "+initialize).header.Get("X-Key"), "k")
	s.out <- event(welcome)
	b.expect(welcome)
	b.send(initialized, request(2, "a"))
	s.took("/messages?session=1 " + initialized)
	s.took("/messages?session=1 " + request(2, "a"))
	s.out <- event("junk")
	s.out <- "data: " + response(2, "a") + "\r\r"
	b.expect("junk junk", response(2, "a"))
	close(s.out)
	b.expectEnd("its event stream ended: the server closed the connection", false)
}

// What the server does not take is an error of that call only.
func TestLegacyRefusal(t *testing.T) {
	s := newOlder(t)
	b := connect(t, Config{URL: s.URL, Transport: SSE})
	s.mu.Lock()
	s.refuse = 503
	s.mu.Unlock()
	b.send(request(2, "a"))
	b.expect(refusal(2, wire.RemoteRefused("far", "503 Service Unavailable", "no")))
	s.mu.Lock()
	s.refuse = 401
	s.mu.Unlock()
	b.send(request(3, "a"))
	b.expect(refusal(3, wire.RemoteDenied("far", "401 Unauthorized")))
	s.mu.Lock()
	s.refuse = 0
	s.mu.Unlock()
	b.send(request(4, "a"))
	s.out <- event(response(4, "a"))
	b.expect(response(4, "a"))
}

// 07 row 56: an answer over the limit costs its own call, the stream lives.
func TestLegacyTooLarge(t *testing.T) {
	const limit = 1 << 10
	s := newOlder(t)
	b := connect(t, Config{URL: s.URL + "/sse", Limit: limit})
	s.out <- event(`{"jsonrpc":"2.0","id":"brk-2","result":"` + strings.Repeat("x", 100<<10) + `"}`)
	s.out <- event(`{"result":"` + strings.Repeat("x", 100<<10) + `","jsonrpc":"2.0","id":"brk-3"}`)
	s.out <- event(response(4, "a"))
	b.expect(refusal(2, wire.TooLarge(limit)), refusal(3, wire.TooLarge(limit)), response(4, "a"))
}

// Attempts that do not come about end with a sentence; an endpoint elsewhere is refused
// (07 row 70).
func TestLegacyFailures(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(w http.ResponseWriter, r *http.Request)
		want   string
		denied bool
	}{
		{"other origin", func(w http.ResponseWriter, _ *http.Request) {
			events(w, "event: endpoint\ndata: http://127.0.0.1:1/x\n\n")
		}, "the endpoint it names is of another origin, http://127.0.0.1:1", false},
		{"no url", func(w http.ResponseWriter, _ *http.Request) { events(w, "event: endpoint\ndata: :\n\n") }, "the endpoint it names is no url", false},
		{"no endpoint", func(w http.ResponseWriter, _ *http.Request) { events(w, event("{}")) }, "its event stream ended before it named an endpoint: the server closed the connection", false},
		{"denied", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, "the server answered HTTP 401 Unauthorized", true},
		{"other transport", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(405) }, "the server answered HTTP 405 Method Not Allowed" + adviceAddress, false},
		{"a page", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
			"the server answered with a web page (text/html), not with JSON or an event stream" + adviceAddress, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(c.answer))
			defer s.Close()
			b := newBroker(t)
			b.start(Config{URL: s.URL + "/sse"})
			b.expectEnd(c.want, c.denied)
		})
	}
}

// A stream that never names its endpoint is given up, by itself or by its owner.
func TestLegacySilent(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { events(w); <-r.Context().Done() }))
	defer s.Close()
	b := newBroker(t)
	b.start(Config{URL: s.URL + "/sse"})
	b.cancel()
	b.expectEnd("<nil>", false)
	b.pace.endpoint = 10 * time.Millisecond
	b.start(Config{URL: s.URL + "/sse"})
	b.expectEnd("it named no endpoint within 10ms", false)
}
