package wsclient_test

import (
	"regexp"
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

// served starts a broker with a provider and a client on slot "s".
func served(t testing.TB, change ...mcpbroker.Option) (*brokertest.Broker, *brokertest.Socket, *brokertest.Socket) {
	t.Helper()
	b := brokertest.Start(t, brokertest.Options{Configure: change})
	p := b.Dedicated(t, "s")
	c := brokertest.Dial(t, b.ClientURL("s"), nil)
	b.Sessions(t, "s", 1)
	return b, p, c
}

var freshTrace = regexp.MustCompile(`00-[0-9a-f]{32}-[0-9a-f]{16}-01`)

// stable shows the trace context the broker made as $TRACE.
func stable(frame string) string { return freshTrace.ReplaceAllString(frame, "$$TRACE") }

// works proves that the client is served.
func works(t testing.TB, p brokertest.Provider, c *brokertest.Socket) {
	t.Helper()
	c.Send(`{"jsonrpc":"2.0","id":"fence","method":"m"}`)
	brokertest.Respond(p, p.Receive(), "{}")
	brokertest.Equal(t, "fence", c.Receive(), `{"jsonrpc":"2.0","id":"fence","result":{}}`)
}

// failure is the body of a refused request; description is JSON without quotes.
func failure(code, description string) string {
	return `{"error":"` + code + `","error_description":"` + description + `"}`
}
