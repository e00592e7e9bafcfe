package ingress_test

import (
	"regexp"
	"testing"

	"mcpbroker/brokertest"
	"mcpbroker/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// connect is each way a provider reaches a slot.
var connect = []struct {
	kind string
	to   func(b *brokertest.Broker, t testing.TB, slot string) brokertest.Provider
}{
	{"dedicated", func(b *brokertest.Broker, t testing.TB, slot string) brokertest.Provider { return b.Dedicated(t, slot) }},
	{"multiplexed", func(b *brokertest.Broker, t testing.TB, slot string) brokertest.Provider {
		return b.Multiplexed(t, slot)
	}},
	{"loopback", func(b *brokertest.Broker, t testing.TB, slot string) brokertest.Provider { return b.Loopback(t, slot) }},
}

// onEach runs a test once for every way a provider reaches its slot "s". The
// client has a session, and the provider has seen the handshake.
func onEach(t *testing.T, test func(t *testing.T, b *brokertest.Broker, p brokertest.Provider, c *brokertest.Client)) {
	for _, way := range connect {
		t.Run(way.kind, func(t *testing.T) {
			b := brokertest.Start(t, brokertest.Options{})
			p := way.to(b, t, "s")
			c := brokertest.NewClient(t, b.MCPURL("s"))
			c.Handshake(p)
			test(t, b, p, c)
		})
	}
}

var freshTrace = regexp.MustCompile(`00-[0-9a-f]{32}-[0-9a-f]{16}-01`)

// stable shows the trace context the broker made as $TRACE.
func stable(frame string) string { return freshTrace.ReplaceAllString(frame, "$$TRACE") }

func equal(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

// alive proves that the broker still works: a fresh provider answers a fresh
// client on a slot of its own.
func alive(t testing.TB, b *brokertest.Broker) {
	t.Helper()
	p := brokertest.Dial(t, b.ProviderURL("alive"), nil)
	b.Connected(t, "alive")
	c := brokertest.NewClient(t, b.MCPURL("alive"))
	c.Handshake(p)
	equal(t, "a call on another slot", call(c, p, `{"jsonrpc":"2.0","id":1,"method":"ping"}`), `{"jsonrpc":"2.0","id":1,"result":{}}`)
	p.Close(1000, "")
	b.Empty(t, "alive")
}

// call sends a request that the provider answers with an empty result.
func call(c *brokertest.Client, p brokertest.Provider, request string) string {
	reply := c.Start(request)
	brokertest.Respond(p, p.Receive(), "{}")
	return c.Await(reply).Body
}

// is compares a whole answer.
func is(t testing.TB, what string, a brokertest.Answer, status int, body string) {
	t.Helper()
	if a.Status != status || a.Body != body {
		t.Errorf("%s:\n got %d %s\nwant %d %s", what, a.Status, a.Body, status, body)
	}
}
