package upstreams_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"mcpbroker/actors/msg"
)

// typed matches the messages of one type, exported or not.
func typed(name string) func(any) bool {
	return func(message any) bool { return fmt.Sprintf("%T", message) == name }
}

// rejoin enters the slot again as a session does that has lost it.
func (c *client) rejoin() {
	c.h.t.Helper()
	c.h.registry.Send(&msg.JoinSlot{Slot: "a", Session: c.session, Client: c})
	for {
		switch m := (<-c.inbox).(type) {
		case *msg.SlotJoined:
			c.slot = m.Ref
			return
		case *msg.JoinRefused:
			c.h.t.Fatalf("the client could not join again: %s", m.Err.Message)
		}
	}
}

// A failure of the isolator costs its pairs and nothing else: sessions that come
// back are served, and no place is lost.
func TestIsolatorFails(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		h.apply(h.isolated("a", "1"))
		one := h.client("a")
		one.call()
		equal(t, "answer", one.answer(), `{"by":1,"capabilities":{"tools":{}}}`)
		h.strike(1, is[*msg.RestartInstance])
		if err := h.set.Restart(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		equal(t, "drivers behind the failure", h.living(), []string(nil))
		one.rejoin()
		one.call()
		equal(t, "answer behind the failure", one.answer(), `{"by":1,"capabilities":{"tools":{}}}`)
		equal(t, "sessions", h.instance("a").Sessions, 1)
	})
}

// A slot of one session that is given up takes its upstream with it.
func TestIsolatedSlotGivenUp(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		h.apply(h.isolated("a", "1"))
		one := h.client("a")
		synctest.Wait()
		h.strike(10, is[*msg.ClientCall])
		for range 10 {
			one.call()
			one.answer()
		}
		time.Sleep(time.Minute) // of the bubble: the slot is restarted later each time
		synctest.Wait()
		equal(t, "drivers of a slot that was given up", h.living(), []string(nil))
		equal(t, "sessions", h.instance("a").Sessions, 0)
		one.rejoin()
		one.call()
		equal(t, "answer", one.answer(), `{"by":1,"capabilities":{"tools":{}}}`)
	})
}

// A session whose upstream is given up before it has started anything is told: it
// would wait to enter for ever.
func TestIsolatedUpstreamGivenUp(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		h.apply(h.isolated("a", "1"))
		h.strike(10, typed("upstreams.started"))
		one := &client{h: h, session: h.sessions.Add(1), inbox: make(chan any, 100)}
		h.registry.Send(&msg.JoinSlot{Slot: "a", Session: one.session, Client: one})
		select {
		case m := <-one.inbox:
			if _, ok := m.(*msg.JoinRefused); !ok {
				t.Fatalf("the session was told %T", m)
			}
		case <-time.After(time.Hour):
			t.Fatal("the session was told nothing")
		}
		synctest.Wait()
		equal(t, "sessions", h.instance("a").Sessions, 0)
		one.rejoin()
	})
}

// An isolator that fails while it is told to end ends all the same.
func TestIsolatorFailsAtItsEnd(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		s := h.server("a")
		h.apply(h.isolated("a", "1"))
		h.client("a")
		h.strike(1, typed("upstreams.haltNow"))
		h.apply()
		equal(t, "drivers", h.living(), []string(nil))
		one := h.client("a") // of an ordinary slot
		one.call()
		equal(t, "answer", one.answer(), `Provider "a" not connected`)
		equal(t, "starts", s.started(), 1)
	})
}

// An isolated upstream that is on its way out starts nothing.
func TestIsolatedJoinWhileHalting(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		s := h.server("a")
		h.apply(h.isolated("a", "1"))
		h.client("a")
		synctest.Wait()
		s.with(func() { s.linger = time.Second })
		applied := make(chan struct{})
		go func() { defer close(applied); h.apply(h.isolated("a", "2")) }()
		time.Sleep(500 * time.Millisecond)
		late := &client{h: h, session: h.sessions.Add(1), inbox: make(chan any, 100)}
		h.registry.Send(&msg.JoinSlot{Slot: "a", Session: late.session, Client: late})
		refused, ok := (<-late.inbox).(*msg.JoinRefused)
		if !ok || refused.Err.Message == "" {
			t.Fatalf("a session that came while the upstream was being stopped: %+v", refused)
		}
		<-applied
		equal(t, "starts", s.started(), 1)
		late.rejoin()
		equal(t, "starts", s.started(), 2)
	})
}

// A session that leaves before it has learnt of its slot leaves no pair behind.
func TestIsolatedLeavesAtOnce(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		h.apply(h.isolated("a", "1"))
		one := &client{h: h, session: h.sessions.Add(1), inbox: make(chan any, 100)}
		h.registry.Send(&msg.JoinSlot{Slot: "a", Session: one.session, Client: one})
		synctest.Wait()
		h.registry.Send(&msg.LeaveSlot{Slot: "a", Session: one.session})
		synctest.Wait()
		equal(t, "sessions", h.instance("a").Sessions, 0)
		equal(t, "drivers", h.living(), []string(nil))
	})
}

func (h *house) instance(slot string) msg.Instance {
	h.t.Helper()
	i, err := h.set.Instance(h.t.Context(), slot)
	if err != nil {
		h.t.Fatal(err)
	}
	return i
}
