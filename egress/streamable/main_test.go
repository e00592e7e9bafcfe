package streamable_test

import (
	"regexp"
	"strconv"
	"testing"

	"mcpbroker"
	"mcpbroker/brokertest"
	"mcpbroker/config"
	"mcpbroker/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// configured starts a broker whose configuration is changed in place.
func configured(t testing.TB, change func(*config.Config)) *brokertest.Broker {
	t.Helper()
	c := config.Default()
	c.Host, c.Port = "127.0.0.1", 0
	change(c)
	return brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{mcpbroker.WithConfig(c)}})
}

// served starts a broker with a provider on slot "s" that has seen the handshake
// of the client.
func served(t testing.TB, change ...mcpbroker.Option) (*brokertest.Broker, *brokertest.Socket, *brokertest.Client) {
	t.Helper()
	b := brokertest.Start(t, brokertest.Options{Configure: change})
	p := b.Dedicated(t, "s")
	c := brokertest.NewClient(t, b.MCPURL("s"))
	c.Handshake(p)
	return b, p, c
}

// another returns a second client, served from the first one's initialize.
func another(t testing.TB, c *brokertest.Client) *brokertest.Client {
	t.Helper()
	n := brokertest.NewClient(t, c.URL)
	n.Initialize()
	return n
}

var freshTrace = regexp.MustCompile(`00-[0-9a-f]{32}-[0-9a-f]{16}-01`)

// stable shows the trace context the broker made as $TRACE.
func stable(frame string) string { return freshTrace.ReplaceAllString(frame, "$$TRACE") }

// event is one server-sent event of a session's stream.
func event(id, frame string) string { return "event: message\nid: " + id + "\ndata: " + frame }

// listen opens the stream and takes its first comment.
func listen(t testing.TB, c *brokertest.Client) *brokertest.Stream {
	t.Helper()
	s := c.Listen()
	brokertest.Equal(t, "first bytes", s.Next(), ": open")
	return s
}

// alive proves that the broker still works, on a slot of its own.
func alive(t testing.TB, b *brokertest.Broker) {
	t.Helper()
	p := b.Dedicated(t, "alive")
	c := brokertest.NewClient(t, b.MCPURL("alive"))
	c.Handshake(p)
	p.Close(1000, "")
	b.Empty(t, "alive")
}

// itoa is the length of a body in a hand-written request.
func itoa(n int) string { return strconv.Itoa(n) }
