package streamable_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"mcpbroker"
	"mcpbroker/brokertest"
)

var dialer net.Dialer

// F-31: a body over maxMessageBytes is answered 413, by its Content-Length or by
// what comes in chunks; one of exactly the limit passes.
func TestBodyLimit(t *testing.T) {
	const limit = 1 << 14
	b, p, c := served(t, mcpbroker.WithMaxMessageBytes(limit))
	body := func(size int) string {
		frame := `{"jsonrpc":"2.0","method":"n","x":""}`
		return frame[:len(frame)-2] + strings.Repeat("x", size-len(frame)) + `"}`
	}
	tooLarge := failure("payload_too_large", fmt.Sprintf("The message is larger than %d bytes (maxMessageBytes)", limit))
	head := "POST /s/mcp HTTP/1.1\r\nHost: x\r\nMcp-Session-Id: " + c.Session + "\r\n"
	chunked := func(size int) string {
		return head + "Transfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", size, body(size))
	}
	withLength := func(size int) string { return head + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", size, body(size)) }

	brokertest.Is(t, "length, at the limit", b.Exchange(t, withLength(limit)), 202, "")
	brokertest.Is(t, "chunked, at the limit", b.Exchange(t, chunked(limit)), 202, "")
	for range 2 {
		brokertest.Equal(t, "B>P", p.Receive(), body(limit))
	}
	brokertest.Is(t, "length, one more", b.Exchange(t, withLength(limit+1)), 413, tooLarge)
	brokertest.Is(t, "chunked, one more", b.Exchange(t, chunked(limit+1)), 413, tooLarge)
	brokertest.Is(t, "length, announced only", b.Exchange(t, head+"Content-Length: 99999999999\r\n\r\n"), 413, tooLarge)
	brokertest.Is(t, "endless chunks", b.Exchange(t, head+"Transfer-Encoding: chunked\r\n\r\n"+strings.Repeat("400\r\n"+strings.Repeat("x", 1024)+"\r\n", 64)), 413, tooLarge)
	brokertest.Is(t, "short body", half(t, b, head+"Content-Length: 100\r\n\r\n{}"), 400, failure("parse_error", "Body is shorter than its Content-Length"))
	brokertest.Is(t, "broken chunk", b.Exchange(t, head+"Transfer-Encoding: chunked\r\n\r\nzz\r\n"), 400, failure("parse_error", "Body could not be read to its end"))
	delivered(t, p, c)
}

// half sends a request and closes its side of the connection.
func half(t testing.TB, b *brokertest.Broker, request string) brokertest.Answer {
	t.Helper()
	conn, err := dialer.DialContext(t.Context(), "tcp", b.Host())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, request)
	_ = conn.(*net.TCPConn).CloseWrite()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return brokertest.Answer{Status: resp.StatusCode, Header: resp.Header, Body: string(text)}
}

// Row 59: a body of multi-byte text that comes byte by byte arrives unchanged.
func TestBodyByteByByte(t *testing.T) {
	b, p, c := served(t)
	const frame = `{"jsonrpc":"2.0","method":"n","params":"读é🎉"}`
	conn, err := dialer.DialContext(t.Context(), "tcp", b.Host())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	request := fmt.Sprintf("POST /s/mcp HTTP/1.1\r\nHost: x\r\nMcp-Session-Id: %s\r\nContent-Length: %d\r\n\r\n%s", c.Session, len(frame), frame)
	for i := range len(request) {
		if _, err := io.WriteString(conn, request[i:i+1]); err != nil {
			t.Fatal(err)
		}
	}
	brokertest.Equal(t, "B>P", p.Receive(), frame)
}

// A flood of headers is answered 431.
func TestHeaderFlood(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	flood := "GET /s/mcp HTTP/1.1\r\nHost: x\r\n"
	for i := range 1000 {
		flood += fmt.Sprintf("X-%d: %s\r\n", i, strings.Repeat("v", 40))
	}
	for name, request := range map[string]string{
		"many headers": flood + "\r\n",
		"one header":   "GET /s/mcp HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("v", 64<<10) + "\r\n\r\n",
		"long target":  "GET /" + strings.Repeat("v", 64<<10) + "/mcp HTTP/1.1\r\nHost: x\r\n\r\n",
		"long upgrade": "GET /provider/" + strings.Repeat("%zz", 20<<10) + " HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
	} {
		if a := b.Exchange(t, request); a.Status != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("%s: %d, want 431", name, a.Status)
		}
	}
	alive(t, b)
}

// Bytes that are no HTTP are answered 400, or just closed, and harm nobody.
func TestNoHTTP(t *testing.T) {
	b, p, c := served(t)
	for _, junk := range []string{
		"\r\n\r\n\r\n", "x\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "GET /s/mcp HTTP/1.1\r\n\r\n",
		"POST /s/mcp HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", "POST /s/mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
		"GET % HTTP/1.1\r\nHost: x\r\n\r\n", "GET http://[::1/mcp HTTP/1.1\r\nHost: x\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n", "\x00\xff\xfe\n\n",
	} {
		conn, err := dialer.DialContext(t.Context(), "tcp", b.Host())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(patience))
		_, _ = io.WriteString(conn, junk)
		_ = conn.(*net.TCPConn).CloseWrite()
		answer, err := io.ReadAll(conn)
		if status := string(answer); err != nil || status != "" && !strings.HasPrefix(status, "HTTP/1.") {
			t.Errorf("%q: %v %.200q", junk, err, answer)
		}
		_ = conn.Close()
	}
	delivered(t, p, c)
	alive(t, b)
}
