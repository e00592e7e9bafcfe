package egress_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbroker/actors/wire"
	"mcpbroker/brokertest"
)

type sseCaller struct{ *brokertest.SSE }

func (c sseCaller) Leave()        { c.Close() }
func (c sseCaller) Ended() string { return c.Next() }

type wsCaller struct{ *brokertest.Socket }

func (c wsCaller) Leave() { c.Close(1000, "") }

func (c wsCaller) Ended() string {
	code, reason := c.Closed()
	return fmt.Sprint(c.Pending(), code, " ", reason)
}

// httpCaller joins the answers of the POSTs and the events of the GET stream.
// Requests are posted beside each other; everything else is in order.
type httpCaller struct {
	t     testing.TB
	c     *brokertest.Client
	ctx   context.Context
	in    chan httpMessage
	run   sync.WaitGroup
	ended chan struct{} // the GET stream has
}

type httpMessage struct{ text, session string }

func dialHTTP(t testing.TB, b *brokertest.Broker, slot string) caller {
	ctx, cancel := context.WithCancel(context.Background())
	c := &httpCaller{t: t, c: brokertest.NewClient(t, b.MCPURL(slot)), ctx: ctx, in: make(chan httpMessage, 4096), ended: make(chan struct{})}
	t.Cleanup(func() { cancel(); c.run.Wait() })
	return c
}

func (c *httpCaller) Send(frame string) {
	c.t.Helper()
	f, err := wire.Scan([]byte(frame))
	if err == nil && (f.IsRequest() || f.Shape == wire.Array) {
		c.run.Go(func() {
			if a, err := c.c.Try(c.ctx, "POST", frame); err == nil {
				c.take(a)
			}
		})
		return
	}
	c.take(c.c.Post(frame))
}

var refusal = regexp.MustCompile(`^\{"error":"([a-z_]+)","error_description":(".*")\}$`)

// take renders a refusal of the HTTP layer as the error it stands for.
func (c *httpCaller) take(a brokertest.Answer) {
	text := a.Body
	if m := refusal.FindStringSubmatch(text); m != nil && a.Status == 400 {
		code := map[string]string{"invalid_request": "-32600", "parse_error": "-32700"}[m[1]]
		text = `{"jsonrpc":"2.0","id":null,"error":{"code":` + code + `,"message":` + m[2] + `}}`
	}
	if text != "" {
		c.in <- httpMessage{text, a.Header.Get("Mcp-Session-Id")}
	}
}

func (c *httpCaller) Receive() string {
	c.t.Helper()
	select {
	case m := <-c.in:
		if m.session != "" {
			c.c.Session = m.session
			c.listen()
		}
		return m.text
	case <-time.After(loadPatience):
		c.t.Fatalf("nothing came within %s", loadPatience)
	}
	return ""
}

func (c *httpCaller) listen() {
	stream := c.c.Listen()
	c.run.Go(func() {
		defer close(c.ended)
		for block := stream.Next(); block != ""; block = stream.Next() {
			if _, data, ok := strings.Cut(block, "\ndata: "); ok && strings.HasPrefix(block, "event: message\nid: ") {
				c.in <- httpMessage{text: data}
			}
		}
	})
	context.AfterFunc(c.ctx, stream.Close)
}

func (c *httpCaller) Leave() { c.c.Do("DELETE", "") }

func (c *httpCaller) Ended() string {
	c.t.Helper()
	within(c.t, "end of the stream", c.ended)
	return more(c.in)
}

// hostCaller is a host at the other end of two pipes.
type hostCaller struct {
	t     testing.TB
	in    *io.PipeWriter
	lines chan string
	done  <-chan struct{}
}

func dialStdio(t testing.TB, b *brokertest.Broker, slot string) caller {
	t.Helper()
	inReader, in := io.Pipe()
	out, outWriter := io.Pipe()
	done, err := b.ServeStdio(t.Context(), slot, inReader, outWriter)
	if err != nil {
		t.Fatal(err)
	}
	c := &hostCaller{t: t, in: in, lines: make(chan string, 4096), done: done}
	var reading sync.WaitGroup
	reading.Go(func() {
		for r := bufio.NewReader(out); ; {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			c.lines <- strings.TrimSuffix(line, "\n")
		}
	})
	t.Cleanup(func() {
		c.Leave()
		_ = outWriter.Close()
		reading.Wait()
	})
	return c
}

func (c *hostCaller) Send(frame string) {
	c.t.Helper()
	defer time.AfterFunc(loadPatience, func() { _ = c.in.Close() }).Stop() // nobody reads
	if _, err := io.WriteString(c.in, frame+"\n"); err != nil {
		c.t.Fatalf("write to the bridge: %v", err)
	}
}

func (c *hostCaller) Receive() string {
	c.t.Helper()
	return within(c.t, "line", c.lines)
}

func (c *hostCaller) Leave() {
	_ = c.in.Close()
	within(c.t, "end of the bridge", c.done)
}

func (c *hostCaller) Ended() string {
	c.t.Helper()
	within(c.t, "end of the bridge", c.done)
	return more(c.lines)
}

// within receives from a channel, or its end.
func within[T any](t testing.TB, what string, from <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-from:
	case <-time.After(loadPatience):
		t.Fatalf("no %s within %s", what, loadPatience)
	}
	return value
}

// more is what waits in a channel, "" for nothing.
func more[T any](from <-chan T) string {
	select {
	case value := <-from:
		return fmt.Sprint(value)
	default:
		return ""
	}
}
