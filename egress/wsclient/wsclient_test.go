package wsclient_test

import (
	"testing"

	"mcpbroker/brokertest"
)

// T1 of spec 01 section 11.
func TestRelay(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	p := brokertest.Dial(t, b.ProviderURL("s"), nil)
	c := brokertest.Dial(t, b.WSURL()+"/s", nil)
	c.Send(`{"jsonrpc":"2.0","id":5,"method":"tools/list"}`)
	t.Log(p.Receive())
	p.Send(`{"jsonrpc":"2.0","id":"brk-1","result":{"tools":[]}}`)
	t.Log(c.Receive())
	c.Send(`{"jsonrpc":"2.0","id":5,`)
	t.Log(c.Receive())
	p.Close(1000, "")
	b.Log.Wait(t, "role=client")
	c.Send(`{"jsonrpc":"2.0","id":6,"method":"ping"}`)
	t.Log(c.Receive())
}
