package main_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/brokertest"
)

const whoami = `{"jsonrpc":"2.0","id":"q","method":"tools/call","params":{"name":"whoami"}}`

// A multiplexed provider claims its slots with envelopes behind its open. Clients
// of one that has just opened try again while they are told this.
const notConnected = "not connected"

// expectAnswer calls whoami on a slot and compares the whole body.
func expectAnswer(t *testing.T, c *brokertest.Client, want string) {
	t.Helper()
	body := c.Post(whoami).Body
	for deadline := time.Now().Add(patience); body != want && strings.Contains(body, notConnected) && time.Now().Before(deadline); {
		body = c.Post(whoami).Body
	}
	if diff := cmp.Diff(want, body); diff != "" {
		t.Fatalf("answer of %s (-want +got):\n%s", c.URL, diff)
	}
}

func servedBy(who string) string {
	return `{"jsonrpc":"2.0","id":"q","result":{"content":[{"type":"text","text":"` + who + `"}]}}`
}

// expectError takes the next line for a report of the SDK's onError.
func (p *nodePeer) expectError(slot string, parts ...string) {
	p.t.Helper()
	e := p.next()
	if message, _ := e["message"].(string); e["event"] != "error" || e["slot"] != slot || !containsAll(message, parts...) {
		p.t.Fatalf("the provider reports %v, want an error of slot %q with %q", e, slot, parts)
	}
}

// expectBack is expect for the slots of a shared socket to open again. Each attempt that
// came too early is reported as an error and a close of each.
func (p *nodePeer) expectBack(slots ...string) {
	p.t.Helper()
	first := p.next()
	for first["event"] == "error" || first["event"] == "close" {
		first = p.next()
	}
	if diff := cmp.Diff(event{"event": "open", "slot": slots[0]}, first); diff != "" {
		p.t.Fatalf("line of the Node script (-want +got):\n%s", diff)
	}
	for _, slot := range slots[1:] {
		p.expect(event{"event": "open", "slot": slot})
	}
}

// newSession opens a session on a slot whose provider has opened.
func newSession(t *testing.T, url string) *brokertest.Client {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		c := brokertest.NewClient(t, url)
		if a := c.Initialize(); !strings.Contains(a.Body, notConnected) || time.Now().After(deadline) {
			return c
		}
	}
}

// newEmptySession opens a session on a slot nobody has taken.
func newEmptySession(t *testing.T, url string) *brokertest.Client {
	t.Helper()
	c := brokertest.NewClient(t, url)
	c.Initialize()
	return c
}

// spec 01 6: DirectTransport of the published SDK. The refusal comes after open,
// as an error with the broker's reason, and a local close frees the slot.
func TestProviderSDKDirect(t *testing.T) {
	b := startBroker(t)
	first := startNode(t, "provider.mjs", "direct", b.direct("pump-1"), "pump-1")
	first.expect(event{"event": "open", "slot": "pump-1"})
	c := newSession(t, b.mcp("pump-1"))
	expectAnswer(t, c, servedBy("pump-1 by direct"))

	second := startNode(t, "provider.mjs", "direct", b.direct("pump-1"), "pump-1")
	second.expect(event{"event": "open", "slot": "pump-1"})
	second.expectError("pump-1", "closed with code 1008",
		`Slot already held by a live provider; call provider_status on _broker. Slot: "pump-1"`)
	second.expect(event{"event": "close", "slot": "pump-1"})
	b.await(b.stderr, `WARNING: WebSocket provider "pump-1" rejected.*wait up to 30000ms.*provider_status`)
	expectAnswer(t, c, servedBy("pump-1 by direct"))

	first.tell("close pump-1")
	first.expectError("pump-1", "closed with code 1005")
	first.expect(event{"event": "close", "slot": "pump-1"})
	b.await(b.stderr, `provider "pump-1" disconnected after`) // the broker may learn of it last
	third := startNode(t, "provider.mjs", "direct", b.direct("pump-1"), "pump-1")
	third.expect(event{"event": "open", "slot": "pump-1"})
	expectAnswer(t, c, servedBy("pump-1 by direct"))
}

// spec 01 3 and 6: MultiplexTransport of the published SDK carries several slots
// on one socket; a refused one is reported, its neighbours go on.
func TestProviderSDKMultiplex(t *testing.T) {
	b := startBroker(t)
	first := startNode(t, "provider.mjs", "multiplex", b.multiplex(), "scene", "lamp")
	first.expect(event{"event": "open", "slot": "scene"}, event{"event": "open", "slot": "lamp"})
	scene, lamp := newSession(t, b.mcp("scene")), newSession(t, b.mcp("lamp"))
	expectAnswer(t, scene, servedBy("scene by multiplex"))
	expectAnswer(t, lamp, servedBy("lamp by multiplex"))

	second := startNode(t, "provider.mjs", "multiplex", b.multiplex(), "scene", "door")
	second.expect(event{"event": "open", "slot": "scene"}, event{"event": "open", "slot": "door"})
	second.expectError("scene", `Tunnel error -32000 on provider "scene": `, `Provider "scene" is already connected.`, "provider_status")
	expectAnswer(t, scene, servedBy("scene by multiplex"))
	expectAnswer(t, newSession(t, b.mcp("door")), servedBy("door by multiplex"))
}

// spec 00, provider lifecycle: SIGKILL is 1006 to both transports; on the same
// port again, the multiplexed one comes back by itself, the dedicated one never.
func TestProviderSDKSurvivesRestart(t *testing.T) {
	b := startBroker(t, "--port", freePort(t))
	direct := startNode(t, "provider.mjs", "direct", b.direct("pump-1"), "pump-1")
	shared := startNode(t, "provider.mjs", "multiplex", b.multiplex(), "scene", "lamp")
	direct.expect(event{"event": "open", "slot": "pump-1"})
	shared.expect(event{"event": "open", "slot": "scene"}, event{"event": "open", "slot": "lamp"})
	expectAnswer(t, newSession(t, b.mcp("lamp")), servedBy("lamp by multiplex"))

	b.signal(syscall.SIGKILL)
	direct.expectError("pump-1", "closed with code 1006")
	direct.expect(event{"event": "close", "slot": "pump-1"})
	shared.expect(event{"event": "close", "slot": "scene"}, event{"event": "close", "slot": "lamp"})

	b = b.restart()
	shared.expectBack("scene", "lamp")
	expectAnswer(t, newSession(t, b.mcp("scene")), servedBy("scene by multiplex"))
	expectAnswer(t, newSession(t, b.mcp("lamp")), servedBy("lamp by multiplex"))
	expectAnswer(t, newEmptySession(t, b.mcp("pump-1")), `{"jsonrpc":"2.0","id":"q","error":{"code":-32000,"message":"Provider \"pump-1\" not connected"}}`)
}
