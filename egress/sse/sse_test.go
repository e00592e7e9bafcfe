package sse_test

import (
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"mcpbroker"
	"mcpbroker/brokertest"
	"mcpbroker/config"
)

var dialer net.Dialer

// T6 of spec 01 section 11, byte by byte: the head of the stream, its first
// event, the empty 202 and the answer as an event.
func TestTranscript(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	conn, err := dialer.DialContext(t.Context(), "tcp", b.Host())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /a%2Fb/sse HTTP/1.0\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	stream := &text{t: t, from: conn}
	head := stream.until("\r\n\r\n")
	for _, line := range []string{"200 OK\r\n", "Content-Type: text/event-stream\r\n", "Cache-Control: no-cache, no-transform\r\n"} {
		if !strings.Contains(head, line) {
			t.Errorf("the head has no %q:\n%s", line, head)
		}
	}
	first := stream.until("\n\n")
	endpoint := regexp.MustCompile(`^event: endpoint\ndata: (/a%2Fb/messages\?sessionId=[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})\n\n$`).FindStringSubmatch(first)
	if endpoint == nil {
		t.Fatalf("first event %q", first)
	}
	const call = `{"jsonrpc":"2.0","id":1,"method":"m"}`
	a := b.Exchange(t, "POST "+endpoint[1]+" HTTP/1.1\r\nHost: x\r\nContent-Length: "+strconv.Itoa(len(call))+"\r\n\r\n"+call)
	brokertest.Is(t, "POST", a, 202, "")
	brokertest.Equal(t, "the answer", stream.until("\n\n"), "event: message\ndata: "+`{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Provider \"a/b\" not connected"}}`+"\n\n")
}

// text reads a connection piece by piece.
type text struct {
	t    testing.TB
	from io.Reader
}

func (r *text) until(end string) string {
	r.t.Helper()
	var got strings.Builder
	one := make([]byte, 1)
	for !strings.HasSuffix(got.String(), end) {
		if _, err := r.from.Read(one); err != nil {
			r.t.Fatalf("after %q: %v", got.String(), err)
		}
		got.Write(one)
	}
	return got.String()
}

// Row 73 and 74: headers against buffering and compression, sent before the first
// event; CORS on the stream, on the post and on refusals; no preflight needs a
// session.
func TestHeaders(t *testing.T) {
	b, _, c := served(t)
	get := brokertest.NewClient(t, b.SSEURL("s"))
	get.Header.Set("Accept-Encoding", "gzip")
	stream := get.Listen()
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no",
		"Content-Encoding": "", "Mcp-Session-Id": "",
	} {
		brokertest.Equal(t, name, stream.Header.Get(name), want)
	}
	c.Post.URL = b.URL() + "/s/messages"
	for what, h := range map[string]http.Header{
		"stream": stream.Header, "post": c.Post.Post("x").Header, "preflight": c.Post.Do("OPTIONS", "").Header,
		"stream's preflight": get.Do("OPTIONS", "").Header,
	} {
		brokertest.Equal(t, what+": allowed origin", h.Get("Access-Control-Allow-Origin"), "*")
		brokertest.Equal(t, what+": exposed headers", h.Get("Access-Control-Expose-Headers"), "Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate")
	}
}

// Spec 01 1.4: GET on the stream and POST on the messages, nothing else; F-03.
func TestMethods(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	for _, request := range []string{
		"POST /x/sse", "PUT /x/sse", "DELETE /x/sse", "HEAD /x/sse", "GET /x/messages", "HEAD /x/messages", "PUT /x/messages",
		"DELETE /x/messages", "GET /x/SSE", "GET /x/sse/y", "GET /sse", "POST /messages", "POST /x/y/messages",
	} {
		brokertest.Is(t, request, b.Exchange(t, request+" HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"), 404, "")
	}
	for _, target := range []string{"//[/messages", "/%zz/messages?sessionId=%zz", "/x/messages/", "/x/%6dessages"} {
		brokertest.Is(t, target, b.Exchange(t, "POST "+target+" HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"), 400, "Unknown or expired session")
	}
	for target, endpoint := range map[string]string{
		"/%zz/sse": "/%25zz/messages", "//x/sse": "/x/messages", "/a%20b%2F/sse": "/a%20b%2F/messages", "/é(!)/sse": "/%C3%A9(!)/messages",
	} {
		stream := rawStream(t, b, target)
		if first := stream.until("\n\n"); !strings.HasPrefix(first, "event: endpoint\ndata: "+endpoint+"?sessionId=") {
			t.Errorf("%s begins with %q", target, first)
		}
	}
}

// rawStream opens a stream by a target as it is spelled, and skips the head.
func rawStream(t testing.TB, b *brokertest.Broker, target string) *text {
	t.Helper()
	conn, err := dialer.DialContext(t.Context(), "tcp", b.Host())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, "GET "+target+" HTTP/1.0\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	stream := &text{t: t, from: conn}
	stream.until("\r\n\r\n")
	return stream
}

// Section 9 item 21: changed suffixes move both endpoints, and the first event
// says so.
func TestPathsMove(t *testing.T) {
	paths := config.Default().Paths
	paths.SSE, paths.Messages = "/events", "/post"
	b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{mcpbroker.WithPaths(paths)}})
	c := b.DialSSE(t, "s")
	if !strings.HasPrefix(c.Endpoint, "/s/post?sessionId=") {
		t.Errorf("endpoint %q", c.Endpoint)
	}
	c.Send(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
	brokertest.Equal(t, "answer", c.Receive(), `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Provider \"s\" not connected"}}`)
	brokertest.Is(t, "GET /s/sse", brokertest.NewClient(t, b.URL()+"/s/sse").Do("GET", ""), 404, "")
	brokertest.Is(t, "POST /s/messages", brokertest.NewClient(t, b.URL()+"/s/messages").Post("{}"), 404, "")
}

// Spec 01 5.6: a post on no session, on one of another slot, and on one whose
// stream has ended.
func TestUnknownSession(t *testing.T) {
	b, p, c := served(t)
	other := b.DialSSE(t, "other")
	post := func(target string) brokertest.Answer {
		return brokertest.NewClient(t, b.URL()+target).Post(`{"jsonrpc":"2.0","method":"m"}`)
	}
	_, id, _ := strings.Cut(c.Endpoint, "?sessionId=")
	for _, target := range []string{
		"/s/messages", "/s/messages?sessionId=", "/s/messages?sessionId=nope", "/other/messages?sessionId=" + id,
		"/s/messages?sessionId=" + id + "%0A", "/s/messages?sessionid=" + id, "/S/messages?sessionId=" + id,
		strings.Replace(other.Endpoint, "/other/", "/s/", 1),
	} {
		a := post(target)
		brokertest.Is(t, target, a, 400, "Unknown or expired session")
		brokertest.Equal(t, "content type", a.Header.Get("Content-Type"), "text/plain; charset=utf-8")
	}
	brokertest.Is(t, "an extra parameter", post(c.Endpoint+"&x=1"), 202, "")
	brokertest.Equal(t, "B>P", p.Receive(), `{"jsonrpc":"2.0","method":"m"}`)
	c.Close()
	b.Sessions(t, "s", 0)
	brokertest.Is(t, "after the stream's end", post(c.Endpoint), 400, "Unknown or expired session")
}

// Spec 01 5.5: the origin rule on both endpoints, with one warn line for each
// refusal; an empty Origin header counts as none.
func TestOrigin(t *testing.T) {
	b, _, c := served(t)
	get := brokertest.NewClient(t, b.SSEURL("s"))
	const refusal = `Origin "https://x.example" is not allowed on %s. No origin is allowed by default; pages served by the broker are not exempt. Add the origin to allowedOrigins or MCP_BROKER_ALLOWED_ORIGINS.`
	for endpoint, do := range map[string]func() brokertest.Answer{
		"/s/sse":      func() brokertest.Answer { return get.Do("GET", "") },
		"/s/messages": func() brokertest.Answer { return c.Post.Post("{}") },
	} {
		get.Header["Origin"], c.Post.Header["Origin"] = []string{"https://x.example"}, []string{"https://x.example"}
		text := strings.Replace(refusal, "%s", endpoint, 1)
		brokertest.Is(t, endpoint, do(), 403, failure("invalid_origin", strings.ReplaceAll(text, `"`, `\"`)))
		if lines := b.Log.Lines(endpoint); len(lines) != 1 || lines[0] != `[broker] refused SSE request on "`+endpoint+`": `+text {
			t.Errorf("logged %q", lines)
		}
	}
	get.Header["Origin"], c.Post.Header["Origin"] = []string{""}, []string{""}
	stream := get.Listen()
	if first := stream.Next(); stream.Status != 200 || !strings.HasPrefix(first, "event: endpoint\n") {
		t.Errorf("empty Origin: %d %q", stream.Status, first)
	}
	brokertest.Is(t, "empty Origin", c.Post.Post(`{"jsonrpc":"2.0","method":"m"}`), 202, "")
}

// Spec 01 5.5, section 9 item 26: an allowed origin passes on both.
func TestOriginAllowed(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{mcpbroker.WithAllowedOrigins("https://a.example")}})
	get := brokertest.NewClient(t, b.SSEURL("s"))
	get.Header.Set("Origin", "https://a.example")
	stream := get.Listen()
	endpoint, ok := strings.CutPrefix(stream.Next(), "event: endpoint\ndata: ")
	if !ok {
		t.Fatalf("status %d", stream.Status)
	}
	post := brokertest.NewClient(t, b.URL()+endpoint)
	post.Header.Set("Origin", "https://a.example")
	brokertest.Is(t, "allowed", post.Post(`{"jsonrpc":"2.0","method":"m"}`), 202, "")
	post.Header.Set("Origin", "https://a.example/")
	brokertest.Is(t, "a slash behind it", post.Post("{}"), 403, failure("invalid_origin",
		`Origin \"https://a.example/\" is not allowed on /s/messages. allowedOrigins (MCP_BROKER_ALLOWED_ORIGINS) is compared verbatim, scheme, port and trailing slash included, and holds: https://a.example.`))
}
