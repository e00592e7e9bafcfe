package ingress_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpbroker"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/slot"
	"mcpbroker/brokertest"
)

// bomb makes one actor fail: the next message that matches panics.
type bomb struct {
	match atomic.Pointer[func(message any) bool]
}

func (f *bomb) arm(match func(message any) bool) { f.match.Store(&match) }

// tap panics in place of the actor, once per arm.
func (f *bomb) tap(_ string, message any) {
	if match := f.match.Load(); match != nil && (*match)(message) && f.match.CompareAndSwap(match, nil) {
		panic("injected")
	}
}

func (f *bomb) option() mcpbroker.Option { return mcpbroker.WithTap(f.tap) }

func providerSends(part string) func(any) bool {
	return func(message any) bool {
		f, ok := message.(*msg.ProviderFrame)
		return ok && strings.Contains(string(f.Frame.Bytes), part)
	}
}

const crashed = `"error":{"code":-32603,"message":"Slot \"s\" failed while handling this request; the request was not completed and may be sent again"}`

// Design section 2: a slot that panics on one message costs that one caller an
// error, at once. Everything else goes on: other calls, the sessions and their
// streams, the provider's socket, other slots.
func TestSlotPanic(t *testing.T) {
	for _, way := range connect {
		t.Run(way.kind, func(t *testing.T) {
			var f bomb
			b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{f.option()}})
			p, q := way.to(b, t, "s"), b.Dedicated(t, "other")
			c, d := brokertest.NewClient(t, b.MCPURL("s")), brokertest.NewClient(t, b.MCPURL("other"))
			c.Handshake(p)
			d.Handshake(q)
			stream := c.Listen()
			stream.Next()
			since := b.Connected(t, "s").ConnectedSince

			before := c.Start(`{"jsonrpc":"2.0","id":"before","method":"m"}`)
			beforeID := brokertest.ID(p.Receive())
			victim := c.Start(`{"jsonrpc":"2.0","id":"victim","method":"m"}`)
			victimID := brokertest.ID(p.Receive())
			after := c.Start(`{"jsonrpc":"2.0","id":"after","method":"m"}`)
			afterID := brokertest.ID(p.Receive())
			elsewhere := d.Start(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
			elsewhereID := brokertest.ID(q.Receive())

			f.arm(providerSends(`"the answer that fails"`))
			p.Send(`{"jsonrpc":"2.0","id":` + victimID + `,"result":"the answer that fails"}`)
			is(t, "its caller", c.Await(victim), 200, `{"jsonrpc":"2.0","id":"victim",`+crashed+`}`)
			b.Log.Wait(t, "crashed: injected while handling *msg.ProviderFrame; restarted in 0s")

			p.Send(`{"jsonrpc":"2.0","id":` + afterID + `,"result":2}`)
			p.Send(`{"jsonrpc":"2.0","id":` + beforeID + `,"result":1}`)
			is(t, "an older call", c.Await(before), 200, `{"jsonrpc":"2.0","id":"before","result":1}`)
			is(t, "a younger call", c.Await(after), 200, `{"jsonrpc":"2.0","id":"after","result":2}`)
			q.Send(`{"jsonrpc":"2.0","id":` + elsewhereID + `,"result":3}`)
			is(t, "another slot", d.Await(elsewhere), 200, `{"jsonrpc":"2.0","id":1,"result":3}`)

			// A second panic, on the request itself: restarted after a moment.
			f.arm(func(m any) bool { call, ok := m.(*msg.ClientCall); return ok && string(call.Frame.Method) == "doomed" })
			is(t, "a request that fails", c.Post(`{"jsonrpc":"2.0","id":9,"method":"doomed"}`), 200, `{"jsonrpc":"2.0","id":9,`+crashed+`}`)
			equal(t, "the next call", call(c, p, `{"jsonrpc":"2.0","id":10,"method":"m"}`), `{"jsonrpc":"2.0","id":10,"result":{}}`)
			p.Send(`{"jsonrpc":"2.0","method":"notifications/still"}`)
			equal(t, "the stream", stream.Next(), "event: message\nid: 1\ndata: "+`{"jsonrpc":"2.0","method":"notifications/still"}`)
			b.WaitSlot(t, "s", func(i slotInfo) bool {
				return i.ConnectedSince.Equal(since) && i.PendingCount == 0 && i.SessionCount == 1
			})
		})
	}
}

// Spec 01 2.1: a claim the slot fails on is refused, and the next one admitted.
func TestSlotPanicOnClaim(t *testing.T) {
	var f bomb
	b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{f.option()}})
	brokertest.NewClient(t, b.MCPURL("s")).Initialize()
	var claims atomic.Int32 // the registry takes the claim first, then the slot
	f.arm(func(m any) bool {
		_, ok := m.(*msg.ClaimSlot)
		return ok && claims.Add(1) == 2
	})
	if code, reason := brokertest.Dial(t, b.ProviderURL("s"), nil).Closed(); code != 1008 || reason != `Slot "s" failed while deciding about this provider; connect again` {
		t.Errorf("closed %d %q", code, reason)
	}
	b.Dedicated(t, "s")
}

// A registry that panics costs that one claim; the slots live on.
func TestRegistryPanic(t *testing.T) {
	var f bomb
	b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{f.option()}})
	p := b.Dedicated(t, "s")
	c := brokertest.NewClient(t, b.MCPURL("s"))
	c.Handshake(p)
	since := b.Connected(t, "s").ConnectedSince
	pending := c.Start(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
	request := p.Receive()
	f.arm(func(m any) bool { _, ok := m.(*msg.ClaimSlot); return ok })
	if code, reason := brokertest.Dial(t, b.ProviderURL("x"), nil).Closed(); code != 1008 || reason != `Slot "x" failed while deciding about this provider; connect again` {
		t.Errorf("closed %d %q", code, reason)
	}
	brokertest.Respond(p, request, "{}")
	is(t, "a pending call", c.Await(pending), 200, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	b.Dedicated(t, "x")
	if now := b.Connected(t, "s"); !now.ConnectedSince.Equal(since) {
		t.Errorf("the slot was lost: %+v", now)
	}
}

// The parent of all sessions fails on a birth: that session is refused, and those
// that live go on. The same holds for the parent of the sockets.
func TestNurseryPanic(t *testing.T) {
	var f bomb
	b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{f.option()}})
	p := b.Dedicated(t, "s")
	c := brokertest.NewClient(t, b.MCPURL("s"))
	c.Handshake(p)
	birth := func(m any) bool { return fmt.Sprintf("%T", m) == "*rt.birth" }
	f.arm(birth)
	if a := brokertest.NewClient(t, b.MCPURL("s")).Post(brokertest.InitializeFrame); a.Status != 503 {
		t.Errorf("the session that fails: %d %s", a.Status, a.Body)
	}
	equal(t, "a living session", call(c, p, `{"jsonrpc":"2.0","id":1,"method":"m"}`), `{"jsonrpc":"2.0","id":1,"result":{}}`)
	f.arm(birth)
	if code, reason := brokertest.Dial(t, b.ProviderURL("x"), nil).Closed(); code != 1013 || reason != "the broker failed while taking this connection; try again" {
		t.Errorf("the socket that fails: %d %q", code, reason)
	}
	equal(t, "a living socket", call(c, p, `{"jsonrpc":"2.0","id":2,"method":"m"}`), `{"jsonrpc":"2.0","id":2,"result":{}}`)
	alive(t, b)
}

// A slot that keeps failing is given up within its window of a minute: its
// callers get an error, its holder is closed with 1011, and the next provider
// gets a fresh slot, which the old session finds.
func TestSlotGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap := func(_ *rt.PID, message any) {
			if providerSends(`"boom"`)(message) {
				panic("injected")
			}
		}
		v := startVirtual(t, slot.Config{RequestTimeout: time.Hour}, tap)
		p, q := v.provider("/provider/s"), v.provider("/provider/other")
		c, d := v.client("s"), v.client("other")
		c.Handshake(p)
		d.Handshake(q)
		pending := c.Start(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
		p.Receive()
		elsewhere := d.Start(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
		elsewhereID := brokertest.ID(q.Receive())
		began := time.Now()
		for range rt.DefaultRestart.Most {
			p.Send(`{"jsonrpc":"2.0","method":"boom"}`)
		}
		const failed = `Slot "s" failed repeatedly and was reset; its provider has to connect again`
		is(t, "the pending call", <-pending, 200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"`+strings.ReplaceAll(failed, `"`, `\"`)+`"}}`)
		if spent := time.Since(began); spent > rt.DefaultRestart.Window {
			t.Errorf("given up after %v", spent)
		}
		v.log.Wait(t, "crashed: injected", "; stopped after 10 crashes within 1m0s")
		if code, reason := p.Closed(); code != 1011 || reason != failed {
			t.Errorf("the holder was closed with %d %q", code, reason)
		}
		q.Send(`{"jsonrpc":"2.0","id":` + elsewhereID + `,"result":3}`)
		is(t, "another slot", <-elsewhere, 200, `{"jsonrpc":"2.0","id":1,"result":3}`)

		fresh := v.provider("/provider/s")
		synctest.Wait()
		if info := v.slot("s"); !info.Connected || info.SessionCount != 1 {
			t.Errorf("the fresh slot: %+v", info)
		}
		equal(t, "the next call", call(c, fresh, `{"jsonrpc":"2.0","id":2,"method":"m"}`), `{"jsonrpc":"2.0","id":2,"result":{}}`)
	})
}

// A shared socket loses only the slot that was given up.
func TestSlotGivenUpOnSharedSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap := func(_ *rt.PID, message any) {
			if providerSends(`"boom"`)(message) {
				panic("injected")
			}
		}
		v := startVirtual(t, slot.Config{}, tap)
		p := v.provider("/providers")
		p.Send(`{"provider":"t","payload":{"type":"register"}}`)
		for range rt.DefaultRestart.Most {
			p.Send(`{"provider":"s","payload":{"jsonrpc":"2.0","method":"boom"}}`)
		}
		time.Sleep(rt.DefaultRestart.Window)
		equal(t, "the refusal", p.Receive(), `{"provider":"s","payload":{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Slot \"s\" failed repeatedly and was reset; its provider has to connect again"}}}`)
		p.Send(`{"provider":"t","payload":{"jsonrpc":"2.0","id":1,"method":"ping"}}`)
		equal(t, "the other slot", p.Receive(), `{"provider":"t","payload":{"jsonrpc":"2.0","id":1,"result":{}}}`)
		p.Send(`{"provider":"s","payload":{"jsonrpc":"2.0","id":2,"method":"ping"}}`)
		equal(t, "the same slot again", p.Receive(), `{"provider":"s","payload":{"jsonrpc":"2.0","id":2,"result":{}}}`)
	})
}

// A session that panics ends alone: its calls get 503, its stream ends, its id is
// unknown from then on.
func TestSessionPanic(t *testing.T) {
	var f bomb
	b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{f.option()}})
	p := b.Dedicated(t, "s")
	c, d := brokertest.NewClient(t, b.MCPURL("s")), brokertest.NewClient(t, b.MCPURL("s"))
	c.Handshake(p)
	d.Initialize()
	stream, other := c.Listen(), d.Listen()
	stream.Next()
	other.Next()
	pending := c.Start(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
	request := p.Receive()
	f.arm(func(m any) bool {
		frame, ok := m.(*msg.ClientFrame)
		return ok && string(frame.Frame.Method) == "doomed"
	})
	const closed = `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Session closed"}}`
	is(t, "the request that fails", c.Post(`{"jsonrpc":"2.0","id":2,"method":"doomed"}`), 503, closed)
	is(t, "the pending call", c.Await(pending), 503, closed)
	equal(t, "its stream", stream.Next(), "")
	// The session leaves its slot once its id is forgotten.
	equal(t, "F-45", p.Receive(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+brokertest.ID(request)+`,"reason":"The caller no longer waits for the answer"}}`)
	is(t, "later", c.Post(`{"jsonrpc":"2.0","method":"m"}`), 404, `{"error":"unknown_session","error_description":"Session not found or terminated"}`)

	b.Sessions(t, "s", 1)
	p.Send(`{"jsonrpc":"2.0","method":"notifications/still"}`)
	equal(t, "another session's stream", other.Next(), "event: message\nid: 1\ndata: "+`{"jsonrpc":"2.0","method":"notifications/still"}`)
	equal(t, "another session", call(d, p, `{"jsonrpc":"2.0","id":1,"method":"m"}`), `{"jsonrpc":"2.0","id":1,"result":{}}`)
}

// A socket that panics ends alone, with 1011; its slots are free and its callers
// told.
func TestSocketPanic(t *testing.T) {
	for _, way := range connect[:2] {
		t.Run(way.kind, func(t *testing.T) {
			var f bomb
			b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{f.option()}})
			p, q := way.to(b, t, "s"), b.Dedicated(t, "other")
			c, d := brokertest.NewClient(t, b.MCPURL("s")), brokertest.NewClient(t, b.MCPURL("other"))
			c.Handshake(p)
			d.Handshake(q)
			pending := c.Start(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
			p.Receive()
			f.arm(func(m any) bool { _, ok := m.(*msg.SocketFrame); return ok })
			p.Send(`{"jsonrpc":"2.0","method":"doomed"}`)
			is(t, "the pending call", c.Await(pending), 200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Provider \"s\" disconnected"}}`)
			if code, reason := p.(interface{ Closed() (int, string) }).Closed(); code != 1011 || reason != "The broker failed while handling this connection; connect again" {
				t.Errorf("closed %d %q", code, reason)
			}
			equal(t, "another socket", call(d, q, `{"jsonrpc":"2.0","id":1,"method":"m"}`), `{"jsonrpc":"2.0","id":1,"result":{}}`)
			way.to(b, t, "s")
		})
	}
}
