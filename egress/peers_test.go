package egress_test

import (
	"fmt"
	"strings"
	"testing"

	"mcpbroker/actors/msg"
	"mcpbroker/brokertest"
)

// client is one session of slot "s", whatever transport it uses.
type client interface {
	Send(frame string) // a request, a notification or a response
	Answer() string    // to the oldest request that has none
	Event() string     // the next message that is no answer
	Leave()
}

// opener connects a client of one kind.
type opener func(t *testing.T, b *brokertest.Broker) client

// openHTTP begins with an initialize, which a provider that has seen one before is
// not asked for.
func openHTTP(t *testing.T, b *brokertest.Broker) client {
	c := &httpClient{Client: brokertest.NewClient(t, b.MCPURL("s"))}
	c.Initialize()
	c.listen(t)
	return c
}

func openSSE(t *testing.T, b *brokertest.Broker) client {
	return joined(t, &sseClient{b.DialSSE(t, "s")})
}

func openWS(t *testing.T, b *brokertest.Broker) client {
	return joined(t, &wsClient{brokertest.Dial(t, b.ClientURL("s"), nil)})
}

// joined makes sure that the slot knows a client and sends it broadcasts: the slot
// answers this by itself.
func joined(t *testing.T, c client) client {
	t.Helper()
	c.Send(unsubscribe(0, "u:0"))
	equal(t, "joined", c.Answer(), fmt.Sprintf(done, 0))
	return c
}

// everywhere runs a test against clients of each transport.
func everywhere(t *testing.T, test func(t *testing.T, open opener)) {
	for name, open := range map[string]opener{"streamable": openHTTP, "sse": openSSE, "websocket": openWS} {
		t.Run(name, func(t *testing.T) { test(t, open) })
	}
}

// httpClient posts its messages and listens on a GET stream.
type httpClient struct {
	*brokertest.Client
	t       *testing.T
	stream  *brokertest.Stream
	answers []<-chan brokertest.Answer
}

func (c *httpClient) listen(t *testing.T) {
	t.Helper()
	c.t, c.stream = t, c.Listen()
	equal(t, "the stream's first line", c.stream.Next(), ": open")
}

func (c *httpClient) Send(frame string) {
	c.t.Helper()
	if strings.Contains(frame, `"id":`) && strings.Contains(frame, `"method":`) {
		c.answers = append(c.answers, c.Start(frame))
		return
	}
	if a := c.Post(frame); a.Status != 202 {
		c.t.Fatalf("%s: %d %s", frame, a.Status, a.Body)
	}
}

func (c *httpClient) Answer() string {
	c.t.Helper()
	a := c.Await(c.answers[0])
	c.answers = c.answers[1:]
	return a.Body
}

func (c *httpClient) Event() string {
	c.t.Helper()
	block := c.stream.Next()
	_, data, ok := strings.Cut(block, "\ndata: ")
	if !ok {
		c.t.Fatalf("the stream carried %q", block)
	}
	return data
}

func (c *httpClient) Leave() {
	if a := c.Do("DELETE", ""); a.Status != 204 {
		c.t.Errorf("DELETE: %d %s", a.Status, a.Body)
	}
}

type sseClient struct{ *brokertest.SSE }

func (c *sseClient) Answer() string { return c.Receive() }
func (c *sseClient) Event() string  { return c.Receive() }
func (c *sseClient) Leave()         { c.Close() }

type wsClient struct{ *brokertest.Socket }

func (c *wsClient) Answer() string { return c.Receive() }
func (c *wsClient) Event() string  { return c.Receive() }
func (c *wsClient) Leave()         { c.Close(1000, "") }

// prepared attaches a provider to slot "s" that has answered an initialize, and
// whose client has left again.
func prepared(t *testing.T, b *brokertest.Broker) *brokertest.Socket {
	t.Helper()
	p := b.Dedicated(t, "s")
	c := &httpClient{Client: brokertest.NewClient(t, b.MCPURL("s")), t: t}
	c.Handshake(p)
	c.Leave()
	b.Sessions(t, "s", 0)
	return p
}

func watched(t *testing.T, b *brokertest.Broker, n int) {
	t.Helper()
	b.WaitSlot(t, "s", func(i msg.SlotInfo) bool { return i.SubscriptionCount == n && i.PendingCount == 0 })
}

func equal(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}
