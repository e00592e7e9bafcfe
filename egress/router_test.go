package egress_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"mcpbroker/egress"
)

// named answers with the slot it was asked for.
type named struct{}

func (named) ServeSlot(w http.ResponseWriter, _ *http.Request, slot string) {
	_, _ = fmt.Fprintf(w, "slot %q", slot)
}

// Spec 01 1.4 steps 2, 5 and 6, F-02: two segments, decoded one by one.
func TestRouter(t *testing.T) {
	router := &egress.Router{MCP: "mcp", Slot: named{}}
	for _, c := range []struct {
		method, target string
		status         int
		body           string
	}{
		{"POST", "/x/mcp", 200, `slot "x"`},
		{"PUT", "/x/mcp", 200, `slot "x"`},
		{"POST", "/x//mcp", 200, `slot "x"`},
		{"POST", "//x/mcp/", 200, `slot "x"`},
		{"POST", "/x/%6dcp?a/b", 200, `slot "x"`},
		{"POST", "/a%2Fb/mcp", 200, `slot "a/b"`},
		{"POST", "/%zz/mcp", 200, `slot "%zz"`},
		{"POST", "/%ff/mcp", 200, `slot "%ff"`},
		{"POST", "//[/mcp", 200, `slot "["`},
		{"POST", "/mcp/mcp", 200, `slot "mcp"`},
		{"POST", "http://host/x/mcp", 200, `slot "x"`},
		{"POST", "/x", 404, ""},
		{"POST", "/x/mcp/mcp", 404, ""},
		{"POST", "/x/Mcp", 404, ""},
		{"POST", "/x/mc%70%20", 404, ""},
		{"POST", "/", 404, ""},
		{"POST", "", 404, ""},
		{"POST", "*", 404, ""},
		{"POST", "http://host", 404, ""},
		{"CONNECT", "host:443", 404, ""},
		{"OPTIONS", "/x/mcp", 204, ""},
		{"OPTIONS", "/nowhere", 204, ""},
	} {
		r := httptest.NewRequest(c.method, "/", nil)
		r.RequestURI = c.target
		w := httptest.NewRecorder()
		router.ServeHTTP(w, r)
		if w.Code != c.status || w.Body.String() != c.body {
			t.Errorf("%s %s: %d %s, want %d %s", c.method, c.target, w.Code, w.Body, c.status, c.body)
		}
		if got := w.Header().Get("Access-Control-Allow-Origin"); got != "*" {
			t.Errorf("%s %s: Access-Control-Allow-Origin %q", c.method, c.target, got)
		}
	}
}

// Spec 01 1.4 step 5: the legacy pair has one method for each suffix; with any
// other the request falls through.
func TestRouterLegacyPair(t *testing.T) {
	says := func(what string) egress.SlotFunc {
		return func(w http.ResponseWriter, _ *http.Request, slot string) { _, _ = fmt.Fprintf(w, "%s %q", what, slot) }
	}
	router := &egress.Router{
		MCP: "mcp", Slot: says("mcp"), SSE: "sse", Stream: says("sse"), Messages: "messages", Post: says("messages"),
	}
	for _, c := range []struct{ method, target, body string }{
		{"GET", "/x/sse", `sse "x"`},
		{"GET", "//a%2Fb/s%73e/?q", `sse "a/b"`},
		{"POST", "/x/messages?sessionId=/y/z", `messages "x"`},
		{"POST", "//[/messages", `messages "["`},
		{"GET", "/sse/mcp", `mcp "sse"`},
		{"POST", "/x/sse", ""},
		{"HEAD", "/x/sse", ""},
		{"DELETE", "/x/sse", ""},
		{"GET", "/x/messages", ""},
		{"PUT", "/x/messages", ""},
	} {
		r := httptest.NewRequest(c.method, "/", nil)
		r.RequestURI = c.target
		w := httptest.NewRecorder()
		router.ServeHTTP(w, r)
		status := http.StatusOK
		if c.body == "" {
			status = http.StatusNotFound
		}
		if w.Code != status || w.Body.String() != c.body {
			t.Errorf("%s %s: %d %s, want %d %s", c.method, c.target, w.Code, w.Body, status, c.body)
		}
	}
}

// Spec 01 5.8: what a preflight asks for is echoed, the first header line of it.
func TestPreflightEcho(t *testing.T) {
	for _, c := range []struct {
		asked []string
		want  string
	}{
		{nil, "Content-Type, Accept, Mcp-Session-Id, Mcp-Protocol-Version, Last-Event-ID, Authorization"},
		{[]string{"x-a,X-B"}, "x-a,X-B"},
		{[]string{""}, ""},
		{[]string{"one", "two"}, "one"},
	} {
		r := httptest.NewRequest(http.MethodOptions, "/", nil)
		if c.asked != nil {
			r.Header["Access-Control-Request-Headers"] = c.asked
		}
		w := httptest.NewRecorder()
		(&egress.Router{MCP: "mcp", Slot: named{}}).ServeHTTP(w, r)
		if got := w.Header().Get("Access-Control-Allow-Headers"); got != c.want {
			t.Errorf("asked for %q: allowed %q, want %q", c.asked, got, c.want)
		}
	}
}

// rule is an origin rule of exact values.
type rule []string

func (r rule) IsZero() bool   { return len(r) == 0 }
func (r rule) String() string { return fmt.Sprint([]string(r)) }

func (r rule) Allow(origin string) bool {
	for _, one := range r {
		if one == origin {
			return true
		}
	}
	return false
}

// Spec 01 5.5.
func TestCheckOrigin(t *testing.T) {
	const unset = `Origin "%s" is not allowed on /s/mcp. No origin is allowed by default; pages served by the broker are not exempt. Add the origin to allowedOrigins or MCP_BROKER_ALLOWED_ORIGINS.`
	const set = `Origin "%s" is not allowed on /s/mcp. allowedOrigins (MCP_BROKER_ALLOWED_ORIGINS) is compared verbatim, scheme, port and trailing slash included, and holds: [a b].`
	for _, c := range []struct {
		rule   egress.OriginRule
		header []string
		want   string
	}{
		{nil, nil, ""},
		{rule{}, nil, ""},
		{rule{"a"}, nil, ""},
		{nil, []string{"a"}, fmt.Sprintf(unset, "a")},
		{rule{}, []string{"null"}, fmt.Sprintf(unset, "null")},
		{rule{}, []string{""}, fmt.Sprintf(unset, "")},
		{rule{"a", "b"}, []string{"b"}, ""},
		{rule{"a", "b"}, []string{"c"}, fmt.Sprintf(set, "c")},
		{rule{"a", "b"}, []string{"a/"}, fmt.Sprintf(set, "a/")},
		{rule{"a", "b"}, []string{"a", "a"}, fmt.Sprintf(set, "a, a")},
	} {
		if got := egress.CheckOrigin(c.rule, c.header, "/s/mcp"); got != c.want {
			t.Errorf("%v, %q:\n got %s\nwant %s", c.rule, c.header, got, c.want)
		}
	}
}

// Spec 01 1.4 steps 5 and 6, F-46: an endpoint wins by suffix and method, what is
// left goes to the files.
func TestFallback(t *testing.T) {
	files := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, "file ", r.RequestURI) })
	router := &egress.Router{MCP: "mcp", Slot: named{}, SSE: "sse", Stream: named{}, Messages: "messages", Post: named{}, Fallback: files}
	for _, c := range []struct{ method, target, body string }{
		{"GET", "/docs/mcp", `slot "docs"`},
		{"GET", "/docs/sse", `slot "docs"`},
		{"POST", "/docs/sse", "file /docs/sse"},
		{"POST", "/docs/messages?sessionId=x", `slot "docs"`},
		{"GET", "/docs/messages", "file /docs/messages"},
		{"GET", "/docs/mcp/index.html", "file /docs/mcp/index.html"},
		{"GET", "/docs/../s/mcp", "file /docs/../s/mcp"},
		{"DELETE", "/", "file /"},
		{"OPTIONS", "/", ""},
	} {
		r := httptest.NewRequest(c.method, "/", nil)
		r.RequestURI = c.target
		w := httptest.NewRecorder()
		router.ServeHTTP(w, r)
		if w.Body.String() != c.body {
			t.Errorf("%s %s: %s, want %s", c.method, c.target, w.Body, c.body)
		}
	}
}
