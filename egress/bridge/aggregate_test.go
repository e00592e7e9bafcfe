package bridge_test

import (
	"strings"
	"testing"

	"mcpbroker"
	"mcpbroker/brokertest"
	"mcpbroker/config"
)

// onAll starts a broker with a member "s" of _all that has one tool, run, and a host on
// _all that can be elicited.
func onAll(t testing.TB, serverRequests string) (*brokertest.Socket, *host) {
	t.Helper()
	c := config.Default()
	c.Host, c.Port, c.ServerRequests = "127.0.0.1", 0, serverRequests
	b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{mcpbroker.WithConfig(c)}})
	p := b.Dedicated(t, "s")
	p.Send(`{"jsonrpc":"2.0","method":"notifications/register","params":{"aggregate":true}}`)
	brokertest.Respond(p, p.Receive(), `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{}},"serverInfo":{"name":"raw","version":"1"}}`)
	p.Receive()
	brokertest.Respond(p, p.Receive(), `{"tools":[{"name":"run"}]}`)
	brokertest.Respond(p, p.Receive(), `{"prompts":[]}`)
	b.Log.Wait(t, `provider "s" joined "_all"`)

	h := start(t, b.MCPURL("_all"))
	h.send(strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1))
	if got := h.news(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","serverInfo":{"name":"_all"`) {
		t.Fatalf("initialize is answered %s", got)
	}
	h.send(initialized)
	return p, h
}

// news is the next message that is no notification of a list.
func (h *host) news() string {
	h.t.Helper()
	for {
		if line := h.receive(); !strings.Contains(line, `/list_changed"`) {
			return line
		}
	}
}

// Row 47: what a member of _all asks during a call reaches the host of the bridge, once
// and before the answer to the call, and the host's answer reaches the member.
func TestElicitationThroughAll(t *testing.T) {
	p, h := onAll(t, config.ServerRequestsRelay)
	h.send(`{"jsonrpc":"2.0","id":"call","method":"tools/call","params":{"name":"s-run","arguments":{}}}`)
	call := p.Receive()
	p.Send(`{"jsonrpc":"2.0","id":77,"method":"elicitation/create","params":{"message":"sure?","requestedSchema":{"type":"object"}}}`)
	ask := h.news()
	if got, want := ask, `{"jsonrpc":"2.0","id":`+brokertest.ID(ask)+`,"method":"elicitation/create","params":{"message":"sure?","requestedSchema":{"type":"object"}}}`; got != want {
		t.Fatalf("the host was asked\n got %s\nwant %s", got, want)
	}
	h.send(`{"jsonrpc":"2.0","id":` + brokertest.ID(ask) + `,"result":{"action":"accept","content":{"big":12345678901234567890}}}`)
	if got, want := p.Receive(), `{"jsonrpc":"2.0","id":77,"result":{"action":"accept","content":{"big":12345678901234567890}}}`; got != want {
		t.Errorf("the member was answered\n got %s\nwant %s", got, want)
	}
	p.Send(`{"jsonrpc":"2.0","id":78,"method":"sampling/createMessage","params":{}}`)
	if got, want := p.Receive(), `{"jsonrpc":"2.0","id":78,"error":{"code":-32601,"message":"Method not found: the client did not declare the capability for sampling/createMessage"}}`; got != want {
		t.Errorf("of what the host cannot the member was told\n got %s\nwant %s", got, want)
	}
	brokertest.Respond(p, call, `{"content":[]}`)
	if got, want := h.news(), `{"jsonrpc":"2.0","id":"call","result":{"content":[]}}`; got != want {
		t.Errorf("the call is answered\n got %s\nwant %s", got, want)
	}
}

// Row 47: where nothing is relayed the member is told so at once, and the host hears of
// its call alone.
func TestElicitationThroughAllRefused(t *testing.T) {
	p, h := onAll(t, config.Default().ServerRequests)
	h.send(`{"jsonrpc":"2.0","id":"call","method":"tools/call","params":{"name":"s-run"}}`)
	call := p.Receive()
	p.Send(`{"jsonrpc":"2.0","id":77,"method":"elicitation/create","params":{"message":"sure?"}}`)
	if got, want := p.Receive(), `{"jsonrpc":"2.0","id":77,"error":{"code":-32601,`; !strings.HasPrefix(got, want) {
		t.Errorf("the member was answered\n got %s\nwant %s", got, want)
	}
	brokertest.Respond(p, call, `{"content":[]}`)
	if got, want := h.news(), `{"jsonrpc":"2.0","id":"call","result":{"content":[]}}`; got != want {
		t.Errorf("the call is answered\n got %s\nwant %s", got, want)
	}
}
