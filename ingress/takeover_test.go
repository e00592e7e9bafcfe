package ingress_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbroker"
	"mcpbroker/actors/slot"
	"mcpbroker/brokertest"
)

// Spec 01 2.5, section 9 item 29: what the refusal says in each mode.
func TestTakeoverRefusals(t *testing.T) {
	for _, c := range []struct {
		name      string
		mode      string
		heartbeat time.Duration
		tokens    []string
	}{
		{"reject", "reject", 30 * time.Second, []string{`providerTakeover is "reject"`, "wait up to 30000ms"}},
		{"liveness", "liveness", time.Minute, []string{"answered the last heartbeat", "wait up to 60000ms"}},
		{"liveness without heartbeat", "liveness", 0, []string{"providerHeartbeatIntervalMs: 0", "Enable the heartbeat"}},
		{"always without providerAuth", "always", 30 * time.Second, []string{"answered the last heartbeat"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{
				mcpbroker.WithProviderTakeover(c.mode), mcpbroker.WithProviderHeartbeatInterval(c.heartbeat),
			}})
			holder := b.Dedicated(t, "s")
			second := brokertest.Dial(t, b.ProvidersURL(), nil)
			second.Send(`{"provider":"s","payload":{"type":"register"}}`)
			got := second.Receive()
			for _, token := range append(c.tokens, `Provider \"s\" is already connected.`, "provider_status", "another name") {
				if !strings.Contains(got, strings.ReplaceAll(token, `"reject"`, `\"reject\"`)) {
					t.Errorf("refusal %s lacks %q", got, token)
				}
			}
			if c.mode == "always" {
				b.Log.Wait(t, `[broker] provider "s": takeover mode "always" was not honored and fell back to "liveness"`, "providerAuth")
			}
			brokertest.NewClient(t, b.MCPURL("s")).Handshake(holder)
		})
	}
}

// Spec 01 2.5: a provider that has said goodbye has released its slot: one that comes back
// at once is served, though the broker may not have heard of the end yet.
func TestReconnectAtOnce(t *testing.T) {
	const rounds = 200
	b := brokertest.Start(t, brokertest.Options{Plain: true})
	for range rounds {
		p := brokertest.Dial(t, b.ProviderURL("s"), nil)
		p.Close(1000, "")
		q := brokertest.Dial(t, b.ProvidersURL(), nil)
		q.Send(`{"provider":"s","payload":{"type":"register"}}`)
		b.Connected(t, "s")
		q.Close(1000, "")
	}
	if refused := b.Log.Lines("rejected"); len(refused) > 0 {
		t.Errorf("refused %d times: %s", len(refused), refused[0])
	}
}

// F-10, F-11, F-12: a ping must be unanswered for a grace time before a newcomer
// replaces the incumbent; then the incumbent's callers hear of it at once, and
// what it opted into ends with it.
func TestTakeoverByLiveness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := startVirtual(t, slot.Config{HeartbeatInterval: 8 * time.Second, Takeover: slot.Liveness, RequestTimeout: time.Hour}, nil)
		old := brokertest.RawVia(t, "ws://virtual/provider/s", v.listener.dial)
		old.Text(`{"jsonrpc":"2.0","method":"notifications/register","params":{"aggregate":true}}`)
		synctest.Wait()
		c := v.client("s")
		reply := c.Start(brokertest.InitializeFrame)
		if _, _, err := old.Read(); err != nil {
			t.Fatal(err)
		}
		if !v.slot("s").Aggregate {
			t.Error("the incumbent has not opted in")
		}
		refused := func(at time.Duration) {
			if code, reason := v.provider("/provider/s").Closed(); code != 1008 || reason != heldReason+`s"` {
				t.Errorf("newcomer at %v: %d %q", at, code, reason)
			}
		}
		refused(0)
		time.Sleep(8*time.Second + 100*time.Millisecond)
		refused(8*time.Second + 100*time.Millisecond) // the ping is on its way, not missed
		time.Sleep(4 * time.Second)

		began := time.Now()
		p := v.provider("/provider/s")
		equal(t, "the pending call", (<-reply).Body, `{"jsonrpc":"2.0","id":0,"error":{"code":-32000,"message":"Provider \"s\" disconnected"}}`)
		if after := time.Since(began); after != 0 {
			t.Errorf("its caller waited %v", after)
		}
		v.log.Wait(t, `[broker] provider "s": the incumbent socket missed its last heartbeat`)
		if code, _, _ := old.Closed(); code != 1006 {
			t.Errorf("the incumbent was closed with %d, want 1006", code)
		}
		if v.slot("s").Aggregate {
			t.Error("the newcomer inherited the opt-in")
		}
		// F-25: it is sent the last initialize before anything else.
		replayed := p.Receive()
		equal(t, "replay", replayed, `{"jsonrpc":"2.0","id":"brk-2","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
		brokertest.Respond(p, replayed, brokertest.ServerResult)
		equal(t, "replay", p.Receive(), `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	})
}

// Spec 01 2.5: an incumbent that is closing counts as gone, and evicting a shared
// socket for one slot drops all of its slots.
func TestTakeoverOfSharedSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := startVirtual(t, slot.Config{HeartbeatInterval: 8 * time.Second, Takeover: slot.Liveness}, nil)
		old := brokertest.RawVia(t, "ws://virtual/providers", v.listener.dial)
		old.Text(`{"provider":"a","payload":{"type":"register"}}`)
		old.Text(`{"provider":"b","payload":{"type":"register"}}`)
		time.Sleep(13 * time.Second)
		p := v.provider("/provider/a")
		if code, _, _ := old.Closed(); code != 1006 {
			t.Errorf("the incumbent was closed with %d, want 1006", code)
		}
		synctest.Wait()
		if !v.slot("a").Connected || v.slot("b").Connected {
			t.Errorf("slots %+v, %+v", v.slot("a"), v.slot("b"))
		}
		v.client("a").Handshake(p)
	})
}

// F-25: a provider that comes back gets the last initialize first, and what
// clients sent meanwhile after it, in order.
func TestReplayHoldsTraffic(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	p := b.Dedicated(t, "s")
	c := brokertest.NewClient(t, b.MCPURL("s"))
	c.Handshake(p)
	p.Drop()
	b.Empty(t, "s")
	p = b.Dedicated(t, "s")
	replayed := p.Receive()
	equal(t, "replay", replayed, `{"jsonrpc":"2.0","id":"brk-2","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
	c.Post(`{"jsonrpc":"2.0","method":"notifications/one"}`)
	reply := c.Start(`{"jsonrpc":"2.0","id":3,"method":"two"}`)
	b.Pending(t, "s", 3) // the replay, the notification and the call
	if got := p.Pending(); got != "" {
		t.Errorf("sent before the replay was answered: %s", got)
	}
	brokertest.Respond(p, replayed, brokertest.ServerResult)
	equal(t, "1", p.Receive(), `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	equal(t, "2", p.Receive(), `{"jsonrpc":"2.0","method":"notifications/one"}`)
	equal(t, "3", stable(p.Receive()), `{"jsonrpc":"2.0","id":"brk-3","method":"two","params":{"_meta":{"traceparent":"$TRACE"}}}`)
	p.Send(`{"jsonrpc":"2.0","id":"brk-3","result":{}}`)
	equal(t, "answer", c.Await(reply).Body, `{"jsonrpc":"2.0","id":3,"result":{}}`)
}

// T5 of spec 01 section 11, row 68: provider loss answers every pending call on
// its own request, with HTTP 200.
func TestProviderLoss(t *testing.T) {
	onEach(t, func(t *testing.T, b *brokertest.Broker, p brokertest.Provider, c *brokertest.Client) {
		five, z := c.Start(`{"jsonrpc":"2.0","id":5,"method":"m"}`), c.Start(`{"jsonrpc":"2.0","id":"z","method":"m"}`)
		b.Pending(t, "s", 2)
		switch p := p.(type) {
		case *brokertest.Loop:
			_ = p.Port().Close()
		case *brokertest.Lane:
			p.Drop()
		case *brokertest.Socket:
			p.Drop()
		}
		for id, reply := range map[string]<-chan brokertest.Answer{`5`: five, `"z"`: z} {
			a := c.Await(reply)
			equal(t, "answer", a.Body, `{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32000,"message":"Provider \"s\" disconnected"}}`)
			if a.Status != 200 {
				t.Errorf("status %d", a.Status)
			}
		}
		b.WaitSlot(t, "s", func(i slotInfo) bool { return !i.Connected && i.PendingCount == 0 })
	})
}
