package egress_test

import (
	"strings"
	"testing"

	"mcpbroker"
	"mcpbroker/brokertest"
	"mcpbroker/config"
)

// capable is an initialize of a client that can be asked anything.
const capable = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"sampling":{},"elicitation":{},"roots":{}},"clientInfo":{"name":"c","version":"1"}}}`

// Section 9 item 47: a request of a provider is answered -32601 at once, in its
// own framing and under its own id, and no client sees it; ping gives {}.
func TestProviderRequestsRefused(t *testing.T) {
	for kind, attach := range map[string]func(*testing.T, *brokertest.Broker) brokertest.Provider{
		"dedicated":   func(t *testing.T, b *brokertest.Broker) brokertest.Provider { return b.Dedicated(t, "s") },
		"multiplexed": func(t *testing.T, b *brokertest.Broker) brokertest.Provider { return b.Multiplexed(t, "s") },
		"loopback":    func(t *testing.T, b *brokertest.Broker) brokertest.Provider { return b.Loopback(t, "s") },
	} {
		t.Run(kind, func(t *testing.T) {
			b := brokertest.Start(t, brokertest.Options{})
			p := attach(t, b)
			c := openWS(t, b)
			c.Send(capable)
			brokertest.Respond(p, p.Receive(), brokertest.ServerResult)
			c.Answer()
			c.Send(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`) // in flight all the time
			p.Receive()
			for _, id := range []string{"7", `"r-1"`, "12345678901234567890"} {
				for _, method := range []string{"sampling/createMessage", "elicitation/create", "roots/list"} {
					p.Send(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `"}`)
					equal(t, method, p.Receive(), `{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32601,"message":"Method not found: the broker does not relay requests opened by a provider (`+method+`)"}}`)
				}
				p.Send(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`)
				equal(t, "ping", p.Receive(), `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`)
			}
			p.Send(marker)
			equal(t, "the client", c.Event(), marker)
			if lines := b.Log.Lines("opened a request of its own"); len(lines) != 1 {
				t.Errorf("warnings %q", lines)
			}
		})
	}
}

var relaying = brokertest.Options{Configure: []mcpbroker.Option{
	mcpbroker.WithSlot("s", config.Slot{ServerRequests: config.ServerRequestsRelay}),
}}

// asking brings a client and its provider to the point where the provider has
// asked about the client's call, which is call.
func asking(t *testing.T, p brokertest.Provider, c client, id, method string) (call string) {
	t.Helper()
	c.Send(capable)
	c.Answer()
	c.Send(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
	call = p.Receive()
	p.Send(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{"n":1.0, "big":12345678901234567890}}`)
	return call
}

// Design decision 5: a relayed request reaches the client whose call is in flight,
// on every transport; its answer comes back under the provider's id, and an answer
// of anybody else changes nothing.
func TestRequestRelayed(t *testing.T) {
	everywhere(t, func(t *testing.T, open opener) {
		for id, method := range map[string]string{"7": "sampling/createMessage", `"r-1"`: "elicitation/create", "1.5": "roots/list"} {
			b := brokertest.Start(t, relaying)
			p := prepared(t, b)
			c, other := open(t, b), open(t, b)
			call := asking(t, p, c, id, method)
			ask := c.Event()
			equal(t, "the client", ask, `{"jsonrpc":"2.0","id":`+brokertest.ID(ask)+`,"method":"`+method+`","params":{"n":1.0, "big":12345678901234567890}}`)
			other.Send(`{"jsonrpc":"2.0","id":` + brokertest.ID(ask) + `,"result":{"stolen":true}}`)
			other.Send(`{"jsonrpc":"2.0","method":"fence"}`)
			equal(t, "the answer of another client", p.Receive(), `{"jsonrpc":"2.0","method":"fence"}`)
			c.Send(`{"jsonrpc":"2.0","id":` + brokertest.ID(ask) + `,"result":{"x":1.0}}`)
			equal(t, "the answer", p.Receive(), `{"jsonrpc":"2.0","id":`+id+`,"result":{"x":1.0}}`)
			brokertest.Respond(p, call, "{}")
			equal(t, "the call", c.Answer(), `{"jsonrpc":"2.0","id":1,"result":{}}`)
			p.Send(marker)
			equal(t, "the other client", other.Event(), marker)
			b.Stop(t)
		}
	})
}

// Row 46: where a POST can carry a stream, the request travels on that of its call
// and not on the idle GET stream; so does its withdrawal, and the answer is last.
func TestRequestOnTheStreamOfItsCall(t *testing.T) {
	b := brokertest.Start(t, relaying)
	p := prepared(t, b)
	c := openHTTP(t, b).(*httpClient)
	c.Header.Set("Accept", "application/json, text/event-stream")
	call := asking(t, p, c, "7", "elicitation/create")
	p.Send(marker) // the slot has handled the request when this arrives
	equal(t, "the GET stream", c.Event(), marker)
	const ask, next = `"brk-3"`, `"brk-4"` // behind the initialize and the call
	c.Send(`{"jsonrpc":"2.0","id":` + ask + `,"result":{"action":"accept"}}`)
	equal(t, "the answer", p.Receive(), `{"jsonrpc":"2.0","id":7,"result":{"action":"accept"}}`)
	p.Send(`{"jsonrpc":"2.0","id":8,"method":"roots/list"}`)
	brokertest.Respond(p, call, "{}")
	equal(t, "of a call that has ended", p.Receive(), `{"jsonrpc":"2.0","id":8,"error":{"code":-32000,"message":"The call this request belongs to has ended"}}`)
	want := ""
	for _, frame := range []string{
		`{"jsonrpc":"2.0","id":` + ask + `,"method":"elicitation/create","params":{"n":1.0, "big":12345678901234567890}}`,
		`{"jsonrpc":"2.0","id":` + next + `,"method":"roots/list"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + next + `,"reason":"The caller no longer waits for the answer"}}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`,
	} {
		want += "event: message\ndata: " + frame + "\n\n"
	}
	equal(t, "the POST's stream", c.Answer(), want)
}

// Design decision 5: a client that did not declare the capability is not asked,
// nor one without a stream, nor anybody while calls of two are in flight.
func TestRequestNotRelayed(t *testing.T) {
	b := brokertest.Start(t, relaying)
	p := prepared(t, b)
	refused := func(what, lead string) {
		t.Helper()
		p.Send(`{"jsonrpc":"2.0","id":"r","method":"roots/list"}`)
		if got, want := p.Receive(), `{"jsonrpc":"2.0","id":"r","error":{"code":-32601,"message":"`+lead; !strings.HasPrefix(got, want) {
			t.Errorf("%s:\n got %s\nwant %s...", what, got, want)
		}
	}
	refused("no call at all", "No client can be asked (roots/list): a request is relayed only")

	c := &httpClient{Client: brokertest.NewClient(t, b.MCPURL("s")), t: t}
	c.Session = c.Post(capable).Header.Get("Mcp-Session-Id")
	c.Send(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
	call := p.Receive()
	refused("no stream", "No client can be asked (roots/list): a request is relayed only")
	d := openWS(t, b)
	d.Send(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
	other := p.Receive()
	refused("calls of two clients", "No client can be asked (roots/list): calls of several clients")
	brokertest.Respond(p, call, "{}")
	c.Answer()
	refused("no capability", "Method not found: the client did not declare the capability for roots/list")
	brokertest.Respond(p, other, "{}")
	equal(t, "the client that was never asked", d.Answer(), `{"jsonrpc":"2.0","id":1,"result":{}}`)
}

// A client that leaves in the middle of a question ends it, and its call.
func TestClientLeavesQuestion(t *testing.T) {
	everywhere(t, func(t *testing.T, open opener) {
		b := brokertest.Start(t, relaying)
		p := prepared(t, b)
		c := open(t, b)
		call := asking(t, p, c, "7", "roots/list")
		c.Event()
		c.Leave()
		equal(t, "the question", p.Receive(), `{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"The call this request belongs to has ended"}}`)
		equal(t, "the call", p.Receive(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+brokertest.ID(call)+`,"reason":"The caller no longer waits for the answer"}}`)
		b.Pending(t, "s", 0)
	})
}
