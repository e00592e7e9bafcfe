package egress_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"mcpbroker/brokertest"
)

// Spec 07 row 34: a stop with 50 streams, 50 idle keep-alive connections and 20
// calls in flight ends within 10 s, without an error. Calls answered while it
// waits end with their answers, the others with 503; streams end in order; idle
// connections are closed. Another stop changes nothing.
func TestStopUnderLoad(t *testing.T) {
	b := quietBroker(t)
	p := prepared(t, b)
	var streams []*brokertest.SSE
	var idle []*bufio.Reader
	for range 50 {
		streams = append(streams, b.DialSSE(t, "s"))
		idle = append(idle, keepAlive(t, b))
	}
	const calls, answered = 20, 10
	c := brokertest.NewClient(t, b.MCPURL("s"))
	c.Initialize()
	replies := map[string]<-chan brokertest.Answer{}
	var requests []string
	for i := range calls {
		id := fmt.Sprint(i)
		replies[id] = c.Start(`{"jsonrpc":"2.0","id":` + id + `,"method":"m"}`)
		requests = append(requests, p.Receive()) // in the order of the ids
	}

	began := time.Now()
	stopped := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	go func() { stopped <- b.Broker.Stop(ctx) }()
	refusesConnections(t, b)
	for _, request := range requests[:answered] {
		brokertest.Respond(p, request, "{}")
	}
	for i := range calls {
		id := fmt.Sprint(i)
		a := c.Await(replies[id])
		status, body := 200, `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`
		if i >= answered {
			status, body = 503, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Session closed"}}`
		}
		if a.Status != status || a.Body != body {
			t.Errorf("call %s: %d %s, want %d %s", id, a.Status, a.Body, status, body)
		}
	}
	if err := <-stopped; err != nil {
		t.Errorf("stop: %v", err)
	}
	if took := time.Since(began); took > 2*loadPatience/3 { // 10 s, and what a busy machine adds
		t.Errorf("the stop took %s", took)
	}
	for _, s := range streams {
		equal(t, "the end of a stream", s.Next(), "")
	}
	for _, r := range idle {
		if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
			t.Errorf("an idle connection: %v", err)
		}
	}
	if err := b.Broker.Stop(ctx); err != nil {
		t.Errorf("second stop: %v", err)
	}
}

// Spec 01 5.12: a post whose body comes once the broker stops is refused, in the
// words of its transport; who waits for an answer still gets it.
func TestPostsDuringStop(t *testing.T) {
	b := quietBroker(t)
	p := prepared(t, b)
	h, sse, idle := brokertest.NewClient(t, b.MCPURL("s")), b.DialSSE(t, "s"), b.DialSSE(t, "s")
	h.Initialize()
	reply := h.Start(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
	first := p.Receive()
	sse.Send(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
	second := p.Receive()
	b.Sessions(t, "s", 3)

	const body = `{"jsonrpc":"2.0","id":2,"method":"m"}`
	onHTTP := beginPost(t, b, "/s/mcp", "Mcp-Session-Id: "+h.Session+"\r\n", body)
	onSSE := beginPost(t, b, sse.Endpoint, "", body)
	onIdle := beginPost(t, b, idle.Endpoint, "", body)
	stopped := make(chan error, 1)
	go func() { stopped <- b.Broker.Stop(t.Context()) }()
	equal(t, "the end of an idle stream", idle.Next(), "")

	const closed = `"error":{"code":-32000,"message":"Session closed"}}`
	brokertest.Is(t, "Streamable HTTP", onHTTP(), 503, `{"jsonrpc":"2.0","id":null,`+closed)
	brokertest.Is(t, "legacy SSE", onSSE(), 202, "")
	equal(t, "legacy SSE", sse.Receive(), `{"jsonrpc":"2.0","id":2,`+closed)
	brokertest.Is(t, "legacy SSE, on a session that has ended", onIdle(), 503, `{"jsonrpc":"2.0","id":null,`+closed)

	brokertest.Respond(p, first, "{}")
	brokertest.Is(t, "a call in flight", h.Await(reply), 200, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	brokertest.Respond(p, second, "{}")
	equal(t, "another", sse.Receive(), `{"jsonrpc":"2.0","id":1,"result":{}}`)
	equal(t, "the end of its stream", sse.Next(), "")
	if err := <-stopped; err != nil {
		t.Errorf("stop: %v", err)
	}
}

// beginPost sends the head of a post and returns once its handler reads the body;
// what it returns sends that and takes the answer.
func beginPost(t *testing.T, b *brokertest.Broker, target, header, body string) func() brokertest.Answer {
	t.Helper()
	conn, err := net.Dial("tcp", b.Host())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(2 * loadPatience))
	r := bufio.NewReader(conn)
	answer := func() brokertest.Answer {
		t.Helper()
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("POST %s: %v", target, err)
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		return brokertest.Answer{Status: resp.StatusCode, Header: resp.Header, Body: string(text)}
	}
	_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\n%sExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", target, header, len(body))
	if a := answer(); a.Status != http.StatusContinue {
		t.Fatalf("POST %s: %d %s", target, a.Status, a.Body)
	}
	return func() brokertest.Answer {
		t.Helper()
		_, _ = io.WriteString(conn, body)
		return answer()
	}
}

// Peers that neither answer nor read, and a body that does not come, cost a stop
// the time of its goodbyes once it has given the calls up.
func TestStopOfTheSilent(t *testing.T) {
	b := quietBroker(t)
	brokertest.DialRaw(t, b.ProviderURL("s"))
	b.Connected(t, "s")
	const call = `{"jsonrpc":"2.0","id":1,"method":"m"}`
	h := brokertest.NewClient(t, b.MCPURL("s"))
	posted := h.Start(brokertest.InitializeFrame)
	b.DialSSE(t, "s").Send(call)
	brokertest.DialRaw(t, b.ClientURL("s")).Text(call)
	in, host := io.Pipe()
	out := make(unread)
	defer close(out)
	defer host.Close()
	bridge, err := b.ServeStdio(t.Context(), "s", in, out)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(host, call+"\n")
	beginPost(t, b, "/s/mcp", "", call)
	b.Pending(t, "s", 4)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	began := time.Now()
	if err := b.Broker.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
	if took := time.Since(began); took > 2*loadPatience/3 { // a body is waited for for a minute
		t.Errorf("the stop took %s", took)
	}
	within(t, "end of the bridge", bridge)
	brokertest.Is(t, "the call over Streamable HTTP", h.Await(posted), 503, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Session closed"}}`)
}

// unread is an output nobody reads until it is closed.
type unread chan struct{}

func (u unread) Write(p []byte) (int, error) { <-u; return len(p), nil }

// keepAlive is a connection that has been used once and waits for its next use.
func keepAlive(t *testing.T, b *brokertest.Broker) *bufio.Reader {
	t.Helper()
	conn, err := net.Dial("tcp", b.Host())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	r := bufio.NewReader(conn)
	if _, err := io.WriteString(conn, "OPTIONS /s/mcp HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != http.StatusNoContent {
		t.Fatalf("%v %v", resp, err)
	}
	return r
}

// refusesConnections waits until the broker does not listen any more.
func refusesConnections(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for late := time.After(loadPatience); ; {
		conn, err := net.Dial("tcp", b.Host())
		if err != nil {
			return
		}
		_ = conn.Close()
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("the broker still listens")
		}
	}
}
