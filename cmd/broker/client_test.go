package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A command is one session: opened, used, and ended with DELETE.
func TestClientSession(t *testing.T) {
	f := newFakeBroker(t)
	f.set("tools/call t", `{"content":[{"type":"text","text":"done"}]}`)
	b := newBench(t)
	b.expect(t, b.do("call", "a/b", "t", "k=<v>", "--url", f.URL), 0, "done\n", "")
	want := `POST /a%2Fb/mcp  {"id":1,"jsonrpc":"2.0","method":"initialize","params":{"capabilities":{},"clientInfo":{"name":"broker-cli","version":"1.2.3"},"protocolVersion":"2025-11-25"}}
POST /a%2Fb/mcp s-0 {"jsonrpc":"2.0","method":"notifications/initialized"}
POST /a%2Fb/mcp s-0 {"id":2,"jsonrpc":"2.0","method":"tools/call","params":{"_meta":{"progressToken":"call"},"arguments":{"k":"<v>"},"name":"t"}}
DELETE /a%2Fb/mcp s-0 `
	if diff := cmp.Diff(want, f.log()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// What is no broker, or none that can be asked, is one line and an exit code.
func TestNoBroker(t *testing.T) {
	const advice = ". Start one with 'broker run', or name another with --url or MCP_BROKER_URL.\n"
	tests := []struct {
		name  string
		serve http.HandlerFunc
		code  int
		want  string // $ stands for the URL
	}{
		{"a page", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
			3, "Cannot reach a broker at $: what answers there is no broker, it sends \"text/html\"" + advice},
		{"another server", http.NotFound,
			3, "Cannot reach a broker at $: $/_broker/mcp answers HTTP 404 Not Found" + advice},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://h/x", http.StatusMovedPermanently)
		},
			3, "Cannot reach a broker at $: $/_broker/mcp answers HTTP 301 Moved Permanently, and redirects to https://h/x" + advice},
		{"broken JSON", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"id":`)
		}, 3, "Cannot reach a broker at $: what answers there is no broker, its JSON is broken" + advice},
		{"no revision", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
		}, 3, "Cannot reach a broker at $: its answer to initialize names no protocol version" + advice},
		{"silence", func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // the server notices a client that leaves from then on
			<-r.Context().Done()
		}, 3, "Cannot reach a broker at $: no answer within 5s (--timeout) to initialize" + advice},
		{"refusal over HTTP", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"error":"invalid_origin","error_description":"This origin may not"}`)
		}, 4, "This origin may not\n"},
		{"refusal in JSON-RPC", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Session closed"}}`)
		}, 4, "Session closed (-32000)\n"},
		{"event stream without response", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, ": nothing\n\n")
		}, 4, "The answer to initialize holds no response\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(tt.serve)
			defer server.Close()
			b := newBench(t)
			timeout := "30s"
			if tt.name == "silence" {
				timeout = "5s"
			}
			code := b.do("get", "slots", "--url", server.URL, "--timeout", timeout)
			b.expect(t, code, tt.code, "", strings.ReplaceAll(tt.want, "$", server.URL))
		})
	}
	t.Run("nothing", func(t *testing.T) {
		b := newBench(t)
		b.environ = []string{envURL + "=http://127.0.0.1:1"}
		b.expect(t, b.do("status"), 3, "", "Cannot reach a broker at http://127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused"+advice)
	})
}

// A provider that does not take part in the handshake is no broker that is away.
func TestUnfitProvider(t *testing.T) {
	for name, tt := range map[string]struct {
		serve http.HandlerFunc
		want  string
	}{
		"no revision": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
		}, "its answer to initialize names no protocol version"},
		"silence": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, "no answer within 5s (--timeout) to initialize"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tt.serve)
			defer server.Close()
			b := newBench(t)
			code := b.do("tools", "x", "--url", server.URL, "--timeout", "5s")
			b.expect(t, code, 4, "", "The provider of slot \"x\" cannot be asked: "+tt.want+"\n")
		})
	}
}

// An answer that does not come in time is not a broker that is away; a signal ends
// the waiting at once.
func TestClientGivesUp(t *testing.T) {
	tests := []struct {
		name, timeout, want string
		signal              bool
		code                int
	}{
		{"timeout", "5s", "no answer within 5s (--timeout)\n", false, 4},
		{"signal", "30s", "interrupted\n", true, 130},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFakeBroker(t)
			b := newBench(t)
			waiting := make(chan struct{})
			inner := f.Config.Handler
			f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost && strings.Count(f.log(), "\n") == 1 { // the call comes third
					_, _ = io.Copy(io.Discard, r.Body)
					close(waiting)
					<-r.Context().Done()
					return
				}
				inner.ServeHTTP(w, r)
			})
			if tt.signal {
				go func() { <-waiting; b.signal <- sigterm }()
			}
			b.expect(t, b.do("call", "s", "t", "--url", f.URL, "--timeout", tt.timeout), tt.code, "", tt.want)
			if !strings.HasSuffix(f.log(), "\nDELETE /s/mcp s-0 ") {
				t.Errorf("the session was not ended:\n%s", f.log())
			}
		})
	}
}

// A session that the broker forgets in the middle is said as such.
func TestClientSessionGone(t *testing.T) {
	f := newFakeBroker(t)
	inner := f.Config.Handler
	f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(w, r)
		if strings.HasSuffix(f.log(), `"notifications/initialized"}`) {
			f.forget()
		}
	})
	b := newBench(t)
	b.expect(t, b.do("tools", "s", "--url", f.URL), 4, "", "The broker has forgotten the session: it was restarted, or ended the session\n")
}
