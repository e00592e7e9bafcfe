package streamable_test

import (
	"net/http"
	"strings"
	"testing"

	"mcpbroker"
	"mcpbroker/brokertest"
	"mcpbroker/config"
)

func failure(code, description string) string {
	return `{"error":"` + code + `","error_description":"` + description + `"}`
}

const unknownSession = `{"error":"unknown_session","error_description":"Session not found or terminated"}`

// Spec 01 5.1: every refusal of the HTTP layer, byte for byte.
func TestChecks(t *testing.T) {
	_, _, c := served(t)
	session := c.Session
	missing := failure("missing_session", "Mcp-Session-Id header is required")
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for _, test := range []struct {
		name, method, session, version, body string
		status                               int
		want                                 string
	}{
		{"unknown version", "POST", session, "2099-01-01", ping, 400, failure("unsupported_protocol_version", "Unsupported MCP-Protocol-Version: 2099-01-01")},
		{"garbage version", "GET", session, "x", "", 400, failure("unsupported_protocol_version", "Unsupported MCP-Protocol-Version: x")},
		{"version before method", "PUT", session, "x", "", 400, failure("unsupported_protocol_version", "Unsupported MCP-Protocol-Version: x")},
		{"PUT", "PUT", session, "", "", 405, failure("method_not_allowed", "Unsupported method: PUT")},
		{"PATCH without session", "PATCH", "", "", "", 405, failure("method_not_allowed", "Unsupported method: PATCH")},
		{"HEAD", "HEAD", "", "", "", 405, ""},
		{"no JSON", "POST", session, "", "{", 400, failure("parse_error", "Body is not valid JSON")},
		{"empty", "POST", session, "", "", 400, failure("parse_error", "Body is not valid JSON")},
		{"two messages", "POST", session, "", ping + ping, 400, failure("parse_error", "Body is not valid JSON")},
		{"invalid UTF-8", "POST", session, "", "\"\xff\"", 400, failure("parse_error", "Body is not valid JSON")},
		{"no JSON before session", "POST", "", "", "x", 400, failure("parse_error", "Body is not valid JSON")},
		{"batch (F-19, row 67)", "POST", session, "", "[" + ping + "]", 400, failure("invalid_request", "JSON-RPC batching is not supported")},
		{"batch without session", "POST", "", "", "[" + ping + "]", 400, failure("invalid_request", "JSON-RPC batching is not supported")},
		{"empty batch (row 67)", "POST", session, "", "[]", 400, failure("invalid_request", "JSON-RPC batching is not supported")},
		{"batch of a scalar (row 67)", "POST", session, "", "[1]", 400, failure("invalid_request", "JSON-RPC batching is not supported")},
		{"null", "POST", session, "", "null", 400, failure("invalid_request", "Body is not a JSON-RPC message")},
		{"scalar", "POST", session, "", "7", 400, failure("invalid_request", "Body is not a JSON-RPC message")},
		{"string without session", "POST", "", "", `"x"`, 400, failure("invalid_request", "Body is not a JSON-RPC message")},
		{"empty object", "POST", session, "", "{}", 400, failure("invalid_request", "Body is not a JSON-RPC message")},
		{"null id (row 40)", "POST", session, "", `{"jsonrpc":"2.0","id":null,"method":"m"}`, 400, failure("invalid_request", "The id of a request must be a string or a number; leave it out to send a notification")},
		{"initialize with a null id", "POST", "", "", `{"jsonrpc":"2.0","id":null,"method":"initialize"}`, 400, failure("invalid_request", "The id of a request must be a string or a number; leave it out to send a notification")},
		{"boolean id", "POST", session, "", `{"jsonrpc":"2.0","id":true,"method":"m"}`, 400, failure("invalid_request", "The id of a request must be a string or a number; leave it out to send a notification")},
		{"duplicate member", "POST", session, "", `{"id":1,"id":2,"method":"m"}`, 400, failure("invalid_request", `Body is not a JSON-RPC message: duplicate member \"id\"`)},
		{"too deep", "POST", session, "", strings.Repeat("[", 200) + strings.Repeat("]", 200), 400, failure("invalid_request", "Body is not a JSON-RPC message: nested deeper than 128 levels")},
		{"POST without session", "POST", "", "", ping, 400, missing},
		{"GET without session (row 71)", "GET", "", "", "", 400, missing},
		{"DELETE without session", "DELETE", "", "", "", 400, missing},
		{"POST unknown session", "POST", "nope", "", ping, 404, unknownSession},
		{"GET unknown session", "GET", "nope", "", "", 404, unknownSession},
		{"DELETE unknown session", "DELETE", "nope", "", "", 404, unknownSession},
		{"initialize on an unknown session", "POST", "nope", "", brokertest.InitializeFrame, 404, unknownSession},
	} {
		t.Run(test.name, func(t *testing.T) {
			c.Session = test.session
			c.Header.Del("Mcp-Protocol-Version")
			if test.version != "" {
				c.Header.Set("Mcp-Protocol-Version", test.version)
			}
			a := c.Do(test.method, test.body)
			brokertest.Is(t, test.method, a, test.status, test.want)
			brokertest.Equal(t, "content type", a.Header.Get("Content-Type"), "application/json; charset=utf-8")
			if test.status == http.StatusMethodNotAllowed {
				brokertest.Equal(t, "Allow", a.Header.Get("Allow"), "GET, POST, DELETE")
			}
		})
	}
}

// Row 79: the revisions of the header; without it nothing is assumed.
func TestProtocolVersionHeader(t *testing.T) {
	_, p, c := served(t)
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		c.Header.Set("Mcp-Protocol-Version", version)
		reply := c.Start(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		brokertest.Respond(p, p.Receive(), "{}")
		brokertest.Is(t, version, c.Await(reply), 200, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	}
}

// Row 79: the broker passes the negotiation through and claims nothing itself.
func TestNegotiationIsTheProviders(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	p := b.Dedicated(t, "s")
	c := brokertest.NewClient(t, b.MCPURL("s"))
	reply := c.Start(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2099-01-01"}}`)
	brokertest.Equal(t, "B>P", stable(p.Receive()), `{"jsonrpc":"2.0","id":"brk-1","method":"initialize","params":{"_meta":{"traceparent":"$TRACE"},"protocolVersion":"2099-01-01"}}`)
	p.Send(`{"jsonrpc":"2.0","id":"brk-1","result":{"protocolVersion":"2024-11-05"}}`)
	brokertest.Equal(t, "B>C", c.Await(reply).Body, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2024-11-05"}}`)
}

// Spec 01 5.5: without configuration every Origin is refused, "null" and the
// broker's own included; no Origin passes; it is checked before everything else.
func TestOriginDefault(t *testing.T) {
	b, _, c := served(t)
	for _, origin := range []string{"https://x.example", "null", b.URL()} {
		c.Header.Set("Origin", origin)
		for _, method := range []string{"POST", "GET", "DELETE", "PUT"} {
			brokertest.Is(t, method+" from "+origin, c.Do(method, ""), 403, failure("invalid_origin", `Origin \"`+origin+`\" is not allowed on /s/mcp. No origin is allowed by default; pages served by the broker are not exempt. Add the origin to allowedOrigins or MCP_BROKER_ALLOWED_ORIGINS.`))
		}
		if a := c.Do("OPTIONS", ""); a.Status != 204 {
			t.Errorf("OPTIONS from %s: %d", origin, a.Status)
		}
	}
}

// Spec 01 5.5: a list is compared verbatim, a pattern is searched, twice with
// the same answer.
func TestOriginAllowed(t *testing.T) {
	pattern, err := config.NewOriginPattern(`^https://[a-z]+\.example$`, "g")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		rule    config.Origins
		allowed []string
		refused []string
	}{
		{"list", config.Origins{List: []string{"https://a.example", "null"}}, []string{"https://a.example", "null"},
			[]string{"https://a.example/", "http://a.example", "https://A.example", "https://a.example:443", ""}},
		{"pattern", pattern, []string{"https://a.example", "https://a.example"}, []string{"https://a1.example", "xhttps://a.example"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := configured(t, func(o *config.Config) { o.AllowedOrigins = c.rule })
			cl := brokertest.NewClient(t, b.MCPURL("s"))
			for _, origin := range c.allowed {
				cl.Header["Origin"] = []string{origin}
				if a := cl.Post(brokertest.InitializeFrame); a.Status != 200 {
					t.Errorf("%q: %d %s", origin, a.Status, a.Body)
				}
			}
			for _, origin := range c.refused {
				cl.Header["Origin"] = []string{origin}
				brokertest.Is(t, origin, cl.Post(brokertest.InitializeFrame), 403, failure("invalid_origin",
					`Origin \"`+origin+`\" is not allowed on /s/mcp. allowedOrigins (MCP_BROKER_ALLOWED_ORIGINS) is compared verbatim, scheme, port and trailing slash included, and holds: `+strings.ReplaceAll(c.rule.String(), `\`, `\\`)+`.`))
			}
			cl.Header["Origin"] = []string{c.allowed[0], c.allowed[0]}
			if a := cl.Post(brokertest.InitializeFrame); a.Status != 403 {
				t.Errorf("two Origin headers: %d", a.Status)
			}
		})
	}
}

// F-30: Content-Type and Accept are not looked at, unless strictHttp is set.
func TestStrictHTTP(t *testing.T) {
	type row struct {
		contentType, accept, method string
		status                      int
		body                        string
	}
	const both = "application/json, text/event-stream"
	strict := []row{
		{"text/plain", both, "POST", 415, failure("unsupported_media_type", "The Content-Type must be application/json")},
		{"", both, "POST", 415, failure("unsupported_media_type", "The Content-Type must be application/json")},
		{"application/json", "application/json", "POST", 406, failure("not_acceptable", "The Accept header must include application/json and text/event-stream")},
		{"", "application/json", "GET", 406, failure("not_acceptable", "The Accept header must include text/event-stream")},
		{"Application/JSON; charset=utf-8", "application/*;q=0.9, TEXT/event-stream", "POST", 202, ""},
		{"application/json", "*/*", "POST", 202, ""},
	}
	for _, mode := range []bool{true, false} {
		b := configured(t, func(c *config.Config) { c.StrictHTTP = mode })
		c := brokertest.NewClient(t, b.MCPURL("s"))
		c.Header.Set("Content-Type", "application/json")
		c.Header.Set("Accept", both)
		c.Initialize()
		for _, r := range strict {
			if r.method == "GET" && !mode {
				continue // it would open the stream
			}
			c.Header = http.Header{"Content-Type": {r.contentType}, "Accept": {r.accept}}
			status, body := r.status, r.body
			if !mode {
				status, body = 202, ""
			}
			brokertest.Is(t, r.method+" "+r.contentType+" accepting "+r.accept, c.Do(r.method, `{"jsonrpc":"2.0","method":"notifications/x"}`), status, body)
		}
	}
	_, _, c := served(t)
	c.Header.Set("Accept", "application/json")
	listen(t, c)
}

// Spec 01 5.8, F-38, row 74: the CORS headers of every response, errors included.
func TestCORS(t *testing.T) {
	b, _, c := served(t)
	lax := func(a brokertest.Answer, what, headers string) {
		t.Helper()
		for name, want := range map[string]string{
			"Access-Control-Allow-Origin":   "*",
			"Access-Control-Allow-Methods":  "GET, POST, DELETE, OPTIONS",
			"Access-Control-Allow-Headers":  headers,
			"Access-Control-Expose-Headers": "Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate",
		} {
			brokertest.Equal(t, what+": "+name, a.Header.Get(name), want)
		}
	}
	const usual = "Content-Type, Accept, Mcp-Session-Id, Mcp-Protocol-Version, Last-Event-ID, Authorization"
	lax(c.Post(`{"jsonrpc":"2.0","method":"m"}`), "202", usual)
	lax(c.Post(`x`), "400", usual)
	lax(c.Do("PUT", ""), "405", usual)
	for _, path := range []string{"/s/mcp", "/", "/nowhere/at/all", "/%zz/mcp"} {
		a := b.Exchange(t, "OPTIONS "+path+" HTTP/1.1\r\nHost: x\r\nAccess-Control-Request-Headers: X-One, x-two\r\nOrigin: https://x\r\n\r\n")
		brokertest.Is(t, "OPTIONS "+path, a, 204, "")
		lax(a, "OPTIONS "+path, "X-One, x-two")
	}
	lax(b.Exchange(t, "GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n"), "404", usual)
	c.Header.Set("Origin", "https://x")
	lax(c.Post(brokertest.InitializeFrame), "403", usual)
}

// Spec 01 1.4, F-02, F-03: which path reaches which slot.
func TestHTTPRouting(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	for _, c := range []struct{ target, slot string }{
		{"/x/mcp", "x"}, {"/x//mcp", "x"}, {"//x/mcp", "x"}, {"/x/mcp/", "x"}, {"/x/%6dcp", "x"}, {"/x/mcp?q=/", "x"},
		{"/a%2Fb/mcp", "a/b"}, {"/%zz/mcp", "%zz"}, {"/%/mcp", "%"}, {"/%ff/mcp", "%ff"}, {"/provider/mcp", "provider"},
		{"/providers/mcp", "providers"}, {"//[/mcp", "["}, {"/%C3%A9/mcp", "é"}, {"/a+b/mcp", "a+b"},
		{"http://elsewhere.example/abs/mcp", "abs"}, {"http://elsewhere.example//abs2/mcp?x", "abs2"},
	} {
		a := post(b, t, c.target, brokertest.InitializeFrame)
		brokertest.Is(t, c.target, a, 200, `{"jsonrpc":"2.0","id":0,"error":{"code":-32000,"message":"Provider \"`+c.slot+`\" not connected"}}`)
	}
	for _, target := range []string{
		"/", "/x", "/mcp", "/x/mcp/y", "/x/MCP", "/x/sse", "/%zz/anything", "/__samples_index__",
		"/.well-known/oauth-protected-resource/x/mcp", "http://elsewhere.example", "/x/%2Fmcp",
	} {
		brokertest.Is(t, target, post(b, t, target, brokertest.InitializeFrame), 404, "")
	}
	if a := post(b, t, "//[/messages", "{}"); a.Status != 400 {
		t.Errorf("F-03: %d %s", a.Status, a.Body)
	}
	alive(t, b)
}

func post(b *brokertest.Broker, t testing.TB, target, body string) brokertest.Answer {
	t.Helper()
	return b.Exchange(t, "POST "+target+" HTTP/1.1\r\nHost: x\r\nContent-Length: "+itoa(len(body))+"\r\n\r\n"+body)
}

// Spec 01 1.6, section 9 item 21: a changed suffix moves the endpoint.
func TestMCPPathMoves(t *testing.T) {
	paths := config.Default().Paths
	paths.MCP = "/rpc"
	b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{mcpbroker.WithPaths(paths)}})
	brokertest.Is(t, "/s/mcp", post(b, t, "/s/mcp", brokertest.InitializeFrame), 404, "")
	if a := post(b, t, "/s/rpc", brokertest.InitializeFrame); a.Status != 200 {
		t.Errorf("/s/rpc: %d", a.Status)
	}
}

// F-04: a suffix of two segments, which nothing could reach, refuses the start.
func TestTwoSegmentSuffix(t *testing.T) {
	paths := config.Default().Paths
	paths.MCP = "/api/mcp"
	if _, err := mcpbroker.New(mcpbroker.WithPaths(paths)); err == nil || !strings.Contains(err.Error(), "one path segment") {
		t.Errorf("New: %v", err)
	}
}

// F-06: what is refused creates no slot.
func TestRefusedRequestCreatesNoSlot(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{Plain: true})
	c := brokertest.NewClient(t, b.MCPURL("ghost"))
	for _, body := range []string{"x", "[]", "{}", `{"jsonrpc":"2.0","id":null,"method":"initialize"}`, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","method":"ping"}`} {
		c.Post(body)
	}
	c.Do("GET", "")
	c.Do("DELETE", "")
	c.Header.Set("Origin", "https://x")
	c.Post(brokertest.InitializeFrame)
	if list, err := b.Slots(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("slots %+v, %v", list, err)
	}
}
