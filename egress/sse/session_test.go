package sse_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpbroker"
	"mcpbroker/actors/msg"
	"mcpbroker/brokertest"
	"mcpbroker/config"
)

// Spec 01 5.6, F-20, F-23: 202 and nothing in it, whatever the body is; what the
// client did wrong comes as an event, a notification and a response bring none.
func TestPosts(t *testing.T) {
	_, p, c := served(t)
	const parse, invalid = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":`
	for _, test := range []struct{ body, event string }{
		{``, parse + `"Parse error: the message is not valid JSON: unexpected end at byte 0"}}`},
		{`{`, parse + `"Parse error: the message is not valid JSON: expected a string at byte 1"}}`},
		{"\"\xff\"", parse + `"Parse error: the message is not valid UTF-8"}}`},
		{`7`, invalid + `"Body is not a JSON-RPC message"}}`},
		{`[]`, invalid + `"JSON-RPC batching is not supported"}}`},
		{`[{"jsonrpc":"2.0","id":1,"method":"m"}]`, invalid + `"JSON-RPC batching is not supported"}}`},
		{`{"jsonrpc":"2.0","id":null,"method":"m"}`, invalid + `"The id of a request must be a string or a number; leave it out to send a notification"}}`},
		{`{"jsonrpc":"2.0","id":1,"method":"m","method":"n"}`, invalid + `"Body is not a JSON-RPC message: duplicate member \"method\""}}`},
		{`{"jsonrpc":"2.0","method":"n"}`, ""},
		{`{"jsonrpc":"2.0","id":1,"result":{}}`, ""},
	} {
		c.Send(test.body)
		if test.event != "" {
			brokertest.Equal(t, test.body, c.Receive(), test.event)
		}
	}
	brokertest.Equal(t, "the first frame to the provider", p.Receive(), `{"jsonrpc":"2.0","method":"n"}`)
	works(t, p, c)
}

// Row 62: a body ended by CRLF, by LF, or with line breaks inside is one message.
func TestLineEnds(t *testing.T) {
	_, p, c := served(t)
	for _, frame := range []string{"{\"method\":\"n\"}\r\n", "{\"method\":\"n\"}\n", "\r\n{\"method\":\r\n\"n\"}"} {
		c.Send(frame)
		if got := p.Receive(); strings.TrimSpace(strings.ReplaceAll(got, "\r\n\"n", "\"n")) != `{"method":"n"}` {
			t.Errorf("sent %q, the provider got %q", frame, got)
		}
	}
	works(t, p, c)
}

// F-29, row 65: a pretty-printed notification and a large one are one data line.
func TestOneLine(t *testing.T) {
	_, p, c := served(t)
	p.Send("{\r\n  \"method\":\n\"n\"}")
	brokertest.Equal(t, "pretty", c.Receive(), `{    "method": "n"}`)
	large := `{"method":"n","params":"` + strings.Repeat("x", 80<<10) + `"}`
	p.Send(large)
	brokertest.Equal(t, "large", c.Receive(), large)
}

// F-36, row 59: multi-byte text split over TCP segments is not harmed.
func TestBodyByteByByte(t *testing.T) {
	b, p, c := served(t)
	const frame = `{"jsonrpc":"2.0","method":"n","params":"读é🎉"}`
	conn, err := dialer.DialContext(t.Context(), "tcp", b.Host())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	request := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", c.Endpoint, len(frame), frame)
	for i := range len(request) {
		if _, err := io.WriteString(conn, request[i:i+1]); err != nil {
			t.Fatal(err)
		}
	}
	brokertest.Equal(t, "B>P", p.Receive(), frame)
}

// F-31: the limit on one message, with the words of the other transports.
func TestBodyLimit(t *testing.T) {
	const limit = 2048
	_, p, c := served(t, mcpbroker.WithMaxMessageBytes(limit))
	body := func(size int) string {
		frame := `{"method":"n","x":""}`
		return frame[:len(frame)-2] + strings.Repeat("x", size-len(frame)) + `"}`
	}
	c.Send(body(limit))
	brokertest.Equal(t, "at the limit", p.Receive(), body(limit))
	brokertest.Is(t, "one more", c.Post.Post(body(limit+1)), 413, failure("payload_too_large", "The message is larger than 2048 bytes (maxMessageBytes)"))
	works(t, p, c)
}

// F-43: comments keep a silent stream open.
func TestKeepAlive(t *testing.T) {
	b := configured(t, func(c *config.Config) { c.KeepAliveIntervalMs = 5 })
	c := b.DialSSE(t, "s")
	for range 3 {
		brokertest.Equal(t, "comment", c.Next(), ": keep-alive")
	}
}

// Spec 01 4.4, 5.6, F-45: the stream's end is the session's: its calls are
// cancelled upstream and nothing of it stays.
func TestStreamEndsSession(t *testing.T) {
	b, p, c := served(t)
	bystander := b.DialSSE(t, "s")
	c.Send(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
	brokertest.Equal(t, "B>P", stable(p.Receive()), request("brk-1"))
	c.Close()
	brokertest.Equal(t, "F-45", p.Receive(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"brk-1","reason":"The caller no longer waits for the answer"}}`)
	b.Sessions(t, "s", 1)
	b.Pending(t, "s", 0)
	p.Send(`{"jsonrpc":"2.0","id":"brk-1","result":{}}`)
	works(t, p, bystander)
	if lines := b.Log.Lines("matches no request"); len(lines) != 0 {
		t.Errorf("F-24: %q", lines)
	}
}

// Rows 22 and 23: 300 streams come and go; those in use are served, of the others
// nothing stays.
func TestStreamsLeaveNothing(t *testing.T) {
	b, p, c := served(t)
	const streams = 300
	var opened sync.WaitGroup
	gone := make(chan struct{})
	for range 10 {
		opened.Add(1)
		go func() {
			defer opened.Done()
			var conns []net.Conn
			for range streams / 10 {
				conn, err := dialer.DialContext(context.Background(), "tcp", b.Host())
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.WriteString(conn, "GET /s/sse HTTP/1.1\r\nHost: x\r\n\r\n")
				(&text{t: t, from: conn}).until("\r\n\r\n")
				conns = append(conns, conn)
			}
			<-gone
			for _, conn := range conns {
				_ = conn.Close()
			}
		}()
	}
	b.Sessions(t, "s", streams+1)
	works(t, p, c)
	close(gone)
	opened.Wait()
	b.Sessions(t, "s", 1)
	works(t, p, c)
}

// Design section 2: a client that does not read loses its stream, with one line,
// and is counted; the others and the provider never notice.
func TestSlowReader(t *testing.T) {
	b, p, c := served(t)
	stalled := rawStream(t, b, "/s/sse")
	stalled.until("\n\n")
	b.Sessions(t, "s", 2)
	large := `{"method":"n","params":"` + strings.Repeat("x", 64<<10) + `"}`
	done := make(chan struct{})
	go func() {
		defer close(done)
		for len(b.Log.Lines("reads too slowly")) == 0 {
			p.Send(large)
			brokertest.Equal(t, "another client", c.Receive(), large)
		}
	}()
	brokertest.Equal(t, "line", b.Log.Wait(t, "reads too slowly"), `[broker] an SSE stream of slot "s" was closed: its client reads too slowly`)
	<-done
	b.Sessions(t, "s", 1)
	works(t, p, c)
	if lines := b.Log.Lines("reads too slowly"); len(lines) != 1 {
		t.Errorf("logged %q", lines)
	}
}

// Spec 01 5.12: a stop ends the streams behind what is queued, cleanly.
func TestStop(t *testing.T) {
	b, p, c := served(t)
	p.Send(`{"method":"last"}`)
	brokertest.Equal(t, "before", c.Receive(), `{"method":"last"}`)
	b.Stop(t)
	brokertest.Equal(t, "the end", c.Next(), "")
}

// A client that does not read cannot hold a stop up for longer than the goodbyes
// may take.
func TestStopWithStalledClient(t *testing.T) {
	b, p, _ := served(t)
	stalled := rawStream(t, b, "/s/sse")
	stalled.until("\n\n")
	b.Sessions(t, "s", 2)
	large := `{"method":"n","params":"` + strings.Repeat("x", 512<<10) + `"}`
	for range 8 {
		p.Send(large)
	}
	began := time.Now()
	b.Stop(t)
	if took := time.Since(began); took > 9*time.Second {
		t.Errorf("the stop took %s", took)
	}
}

// A crash of the session's actor ends its stream, and nobody else's.
func TestCrash(t *testing.T) {
	var armed atomic.Bool
	b, p, c := served(t, mcpbroker.WithTap(func(_ string, message any) {
		if _, ok := message.(*msg.ClientFrame); ok && armed.CompareAndSwap(true, false) {
			panic("injected")
		}
	}))
	other := b.DialSSE(t, "s")
	armed.Store(true)
	c.Send(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
	brokertest.Equal(t, "the stream's end", c.Next(), "")
	b.Sessions(t, "s", 1)
	works(t, p, other)
}
