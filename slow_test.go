package mcpbroker_test

import (
	"slices"
	"testing"
	"time"

	"mcpbroker/brokertest"
	"mcpbroker/reserved/diagnosis"
)

// Spec 03 10.2 item 7: a provider that has answered before and works on one slow
// call is accused of nothing, however long it takes. From 5 s on the diagnosis
// tells that it is slow.
func TestSlowCallIsNoFault(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 5 s")
	}
	t.Parallel()
	b := brokertest.Start(t, brokertest.Options{})
	p := b.Dedicated(t, "oven")
	c := brokertest.NewClient(t, b.MCPURL("oven"))
	c.Handshake(p)
	began := time.Now()
	reply := c.Start(callTool)
	request := p.Receive()

	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(30 * time.Second); ; {
		found := problemsOf(t, b, "oven")
		if slices.Equal(found, []string{"info provider-slow oven"}) {
			break
		}
		if len(found) > 0 {
			t.Fatalf("after %v the diagnosis finds %q", time.Since(began), found)
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the diagnosis does not notice the slow call")
		}
	}
	if after := time.Since(began); after < diagnosis.DefaultSlowAfter {
		t.Errorf("slow after %v", after)
	}
	if found := problemsOf(t, b, ""); len(found) != 2 || found[1] != "info provider-slow oven" || found[0] != "warning aggregate-empty _all" {
		t.Errorf("of the whole broker the diagnosis finds %q", found)
	}
	brokertest.Respond(p, request, "{}")
	brokertest.Is(t, "the slow call", c.Await(reply), 200, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	if found := problemsOf(t, b, "oven"); len(found) > 0 {
		t.Errorf("after the answer the diagnosis finds %q", found)
	}
}
