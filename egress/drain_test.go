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
	if took := time.Since(began); took > 10*time.Second {
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
