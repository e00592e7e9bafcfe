package ingress_test

import (
	"testing"
	"testing/synctest"
	"time"

	"mcpbroker/actors/slot"
	"mcpbroker/brokertest"
)

const sweep = 80 * time.Millisecond

// Spec 01 2.6, section 9 item 28: who answers pings survives every sweep.
func TestHeartbeatAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := startVirtual(t, slot.Config{HeartbeatInterval: sweep}, nil)
		p := v.provider("/provider/s")
		m := v.provider("/providers")
		time.Sleep(50 * sweep)
		c := v.client("s")
		c.Handshake(p)
		m.Send(`{"provider":"m","payload":{"jsonrpc":"2.0","id":1,"method":"ping"}}`)
		equal(t, "shared socket", m.Receive(), `{"provider":"m","payload":{"jsonrpc":"2.0","id":1,"result":{}}}`)
	})
}

// Spec 01 2.6, section 9 item 28: a silent peer is cut after exactly two
// intervals, without a close frame; its callers hear of it, and a newcomer gets
// the slot. A shared socket is one peer, whatever it announced.
func TestHeartbeatUnanswered(t *testing.T) {
	for _, c := range []struct{ name, path, announce, slots string }{
		{"dedicated", "/provider/s", "", `slot "s"`},
		{"multiplexed", "/providers", `{"provider":"s","payload":{"type":"register"}}`, "multiplexed slots [s]"},
		{"announced nothing", "/providers", "", "a multiplexed socket that announced no slot"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := startVirtual(t, slot.Config{HeartbeatInterval: sweep}, nil)
				began := time.Now()
				p := brokertest.RawVia(t, "ws://virtual"+c.path, v.listener.dial)
				if c.announce != "" {
					p.Text(c.announce)
				}
				code, _, _ := p.Closed()
				if after := time.Since(began); code != 1006 || after != 2*sweep {
					t.Errorf("closed %d after %v, want 1006 after %v", code, after, 2*sweep)
				}
				v.log.Wait(t, "[broker] provider socket for "+c.slots+" did not answer a WebSocket ping within 80ms (providerHeartbeatIntervalMs)")
				synctest.Wait()
				held := c.slots != "a multiplexed socket that announced no slot"
				if info := v.slot("s"); info.Connected || info.LeftSilent != held {
					t.Errorf("the slot is still held, or does not tell how its provider left: %+v", info)
				}
				next := v.provider("/provider/s")
				v.client("s").Handshake(next)
				next.Close(1000, "")
				synctest.Wait()
				if info := v.slot("s"); info.Connected || info.LeftSilent {
					t.Errorf("after one that left in order: %+v", info)
				}
			})
		})
	}
}

// Spec 01 2.6, section 9 items 29 and 30: interval 0 sends no ping at all.
func TestHeartbeatOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := startVirtual(t, slot.Config{}, nil)
		p := brokertest.RawVia(t, "ws://virtual/provider/s", v.listener.dial)
		time.Sleep(24 * time.Hour)
		p.Text(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		opcode, payload, err := p.Read()
		if err != nil || opcode != brokertest.OpText || string(payload) != `{"jsonrpc":"2.0","id":1,"result":{}}` {
			t.Errorf("first frame: opcode %d %s, %v", opcode, payload, err)
		}
	})
}

// A ping of the provider itself is answered, with its payload.
func TestProviderPing(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	p := brokertest.DialRaw(t, b.ProviderURL("s"))
	p.Frame(0x80|brokertest.OpPing, []byte("are you there"))
	opcode, payload, err := p.Read()
	if err != nil || opcode != brokertest.OpPong || string(payload) != "are you there" {
		t.Errorf("answer: opcode %d %q, %v", opcode, payload, err)
	}
}

// Section 9 item 27: a silent provider costs the caller exactly the deadline, and
// nothing stays behind.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := startVirtual(t, slot.Config{RequestTimeout: time.Minute}, nil)
		p := v.provider("/provider/s")
		c := v.client("s")
		c.Handshake(p)
		began := time.Now()
		reply := c.Start(`{"jsonrpc":"2.0","id":"mine","method":"slow"}`)
		request := p.Receive()
		a := <-reply
		if after := time.Since(began); after != time.Minute {
			t.Errorf("answered after %v", after)
		}
		equal(t, "answer", a.Body, `{"jsonrpc":"2.0","id":"mine","error":{"code":-32000,"message":"Provider \"s\" did not respond within 60000ms. Raise providerRequestTimeoutMs for slow tools, or call broker_diagnose on the _broker slot to see what the provider is doing."}}`)
		equal(t, "F-45", p.Receive(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"brk-2","reason":"The caller no longer waits for the answer"}}`)
		v.log.Wait(t, `[broker] provider "s" did not answer a request within 60000ms`, "providerRequestTimeoutMs")
		if n := v.slot("s").PendingCount; n != 0 {
			t.Errorf("%d calls are still pending", n)
		}
		brokertest.Respond(p, request, "{}") // late, of a remembered id: no warning (F-24)
		equal(t, "the next call", call(c, p, `{"jsonrpc":"2.0","id":2,"method":"m"}`), `{"jsonrpc":"2.0","id":2,"result":{}}`)
		if got := v.log.Lines("matches no request"); len(got) != 0 {
			t.Errorf("late answer: %q", got)
		}
	})
}

// Section 9 item 30: without a deadline a call waits as long as it takes.
func TestDeadlineOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := startVirtual(t, slot.Config{}, nil)
		p := v.provider("/provider/s")
		c := v.client("s")
		c.Handshake(p)
		reply := c.Start(`{"jsonrpc":"2.0","id":1,"method":"slow"}`)
		request := p.Receive()
		time.Sleep(24 * time.Hour)
		brokertest.Respond(p, request, "{}")
		equal(t, "answer", (<-reply).Body, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	})
}

// Row 44: a call lives as long as progress flows, up to ten deadlines, and the
// error names that cap.
func TestProgressExtendsDeadline(t *testing.T) {
	const progress = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}`
	synctest.Test(t, func(t *testing.T) {
		v := startVirtual(t, slot.Config{RequestTimeout: time.Minute}, nil)
		p := v.provider("/provider/s")
		c := v.client("s")
		c.Handshake(p)
		began := time.Now()
		reply := c.Start(`{"jsonrpc":"2.0","id":1,"method":"slow","params":{"_meta":{"progressToken":7}}}`)
		p.Receive()
		for time.Since(began) < 9*time.Minute+30*time.Second {
			time.Sleep(50 * time.Second)
			p.Send(progress)
		}
		a := <-reply
		if after := time.Since(began); after != 10*time.Minute {
			t.Errorf("answered after %v, want the cap of 10 deadlines", after)
		}
		equal(t, "answer", a.Body, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Provider \"s\" did not respond within 600000ms. It kept reporting progress, which extends providerRequestTimeoutMs up to 10 times and no further; call broker_diagnose on the _broker slot."}}`)
	})
}
