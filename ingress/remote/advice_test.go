package remote

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A server that is not what it is taken for: the error says what came, and which key to
// correct.
func TestAdvice(t *testing.T) {
	page := func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<!doctype html><title>Hello</title>")
	}
	text := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "it works") }
	nothing := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMethodNotAllowed) }
	for _, c := range []struct {
		name   string
		serve  http.HandlerFunc
		tls    bool
		scheme string
		cfg    Config
		want   string
	}{
		{"a page", page, false, "http", Config{},
			"it did not take initialize: the server answered with a web page (text/html), not with JSON or an event stream; correct url, its path included, or transport"},
		{"a text", text, false, "http", Config{},
			"it did not take initialize: the server answered with text/plain, not with JSON or an event stream: it works; correct url, its path included, or transport"},
		{"no POST", nothing, false, "http", Config{Transport: StreamableHTTP},
			"it did not take initialize: the server answered HTTP 405 Method Not Allowed; correct url, its path included, or transport"},
		{"no event stream", page, false, "http", Config{Transport: SSE},
			"the server answered with a web page (text/html), not with JSON or an event stream; correct url, its path included, or transport"},
		{"no upgrade", nothing, false, "ws", Config{}, "the server answered HTTP 405 Method Not Allowed; correct url, its path included, or transport"},
		{"https for http", page, false, "https", Config{}, "it cannot be reached: http: server gave HTTP response to HTTPS client; url has to begin with http:// or ws://"},
		{"https for http, SSE", page, false, "https", Config{Transport: SSE}, "it cannot be reached: http: server gave HTTP response to HTTPS client; url has to begin with http:// or ws://"},
		{"http for https", page, true, "http", Config{},
			"it did not take initialize: the server answered HTTP 400 Bad Request: Client sent an HTTP request to an HTTPS server.; " +
				"nor does it speak the older HTTP+SSE transport: the server answered HTTP 400 Bad Request: Client sent an HTTP request to an HTTPS server.; url has to begin with https:// or wss://"},
		{"ws for wss", page, true, "ws", Config{}, "the server answered HTTP 400 Bad Request: Client sent an HTTP request to an HTTPS server.; url has to begin with https:// or wss://"},
		{"header name", page, false, "http", Config{Headers: map[string]string{"X Key": "k"}}, `it cannot be reached: net/http: invalid header field name "X Key"; correct headers`},
		{"header value", page, false, "http", Config{Headers: map[string]string{"X-Key": "a\nb"}}, `it cannot be reached: net/http: invalid header field value for "X-Key"; correct headers`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewUnstartedServer(c.serve)
			s.Config.ErrorLog = log.New(io.Discard, "", 0)
			if c.tls {
				s.StartTLS()
			} else {
				s.Start()
			}
			defer s.Close()
			_, address, _ := strings.Cut(s.URL, "://")
			c.cfg.URL = c.scheme + "://" + address
			b := newBroker(t)
			b.start(c.cfg)
			if c.cfg.Transport != SSE && c.scheme != "ws" {
				b.attach()
				b.send(initialize)
			}
			b.expectEnd(c.want, false)
		})
	}
}

// Headers that cannot be sent are named over WebSocket as well.
func TestAdviceSocketHeader(t *testing.T) {
	s := newFar(t, false)
	b := newBroker(t)
	b.start(Config{URL: s.url, Headers: map[string]string{"X Key": "k"}})
	contains(t, "end", fmt.Sprint(b.ended().Err), `invalid header field name "X Key"; correct headers`)
}
