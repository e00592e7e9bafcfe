package upstreams_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/upstreams"
)

func (h *house) isolated(name, fingerprint string) upstreams.Config {
	cfg := h.config(name, fingerprint)
	cfg.Isolated = true
	h.server(name).overlaps = true
	return cfg
}

func (c *client) leave() { c.slot.Send(&msg.LeaveSlot{Session: c.session}) }

// Spec 07 row 19: each session of an isolated upstream has a connection of its
// own, which ends with it.
func TestIsolated(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		s := h.server("a")
		h.apply(h.isolated("a", "1"))
		equal(t, "starts before the first session", s.started(), 0)
		one, two := h.client("a"), h.client("a")
		for _, c := range []*client{one, two} {
			c.call()
			equal(t, "answer", c.answer(), `{"by":1,"capabilities":{"tools":{}}}`)
		}
		equal(t, "drivers", len(h.living()), 2)
		i, err := h.set.Instance(t.Context(), "a")
		equal(t, "instance", fmt.Sprintf("isolated=%t sessions=%d %v", i.Isolated, i.Sessions, err), "isolated=true sessions=2 <nil>")
		one.leave()
		synctest.Wait()
		equal(t, "drivers", len(h.living()), 1)
		two.call()
		equal(t, "answer", two.answer(), `{"by":1,"capabilities":{"tools":{}}}`)
		h.apply()
		equal(t, "drivers at the end", h.living(), []string(nil))
		two.call()
		equal(t, "answer at the end", two.answer(), "The slot has just been reset; send the request again")
	})
}

// The process of one session is nobody else's business: its death is felt by no
// other one.
func TestIsolatedDeath(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		s := h.server("a")
		h.apply(h.isolated("a", "1"))
		one := h.client("a")
		synctest.Wait()
		s.with(func() {
			for d := range s.drivers {
				d.end(fmt.Errorf("it exited with code 1"))
			}
		})
		synctest.Wait()
		one.call()
		equal(t, "answer", one.answer(), `{"by":2,"capabilities":{"tools":{}}}`)
		equal(t, "starts", s.started(), 2)
	})
}

// Sessions over the bound are refused; room is made by one that leaves.
func TestIsolatedBound(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		h.apply(h.isolated("a", "1"))
		var all []*client
		for range 256 {
			all = append(all, h.client("a"))
		}
		over := &client{h: h, session: h.sessions.Add(1), inbox: make(chan any, 100)}
		join := &msg.JoinSlot{Slot: "a", Session: over.session, Client: over}
		h.registry.Send(join)
		refused, ok := (<-over.inbox).(*msg.JoinRefused)
		if !ok || refused.Err.Message == "" {
			t.Fatalf("the 257th session: %+v", refused)
		}
		all[0].leave()
		synctest.Wait()
		h.registry.Send(join)
		if _, ok := (<-over.inbox).(*msg.SlotJoined); !ok {
			t.Error("no room after one has left")
		}
	})
}

// A change from one to the other starts afresh.
func TestIsolatedToShared(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		h.apply(h.isolated("a", "1"))
		h.client("a")
		equal(t, "changes", h.apply(h.config("a", "2")), upstreams.Changes{Changed: []string{"a"}})
		c := h.client("a")
		c.call()
		equal(t, "answer", c.answer(), `{"by":1,"capabilities":{"tools":{}}}`)
		equal(t, "changes", h.apply(h.isolated("a", "3")), upstreams.Changes{Changed: []string{"a"}})
		c = h.client("a")
		c.call()
		equal(t, "answer", c.answer(), `{"by":1,"capabilities":{"tools":{}}}`)
	})
}

// What is known of an isolated upstream is the worst of its sessions and, without any,
// how the last one fared.
func TestIsolatedVerdict(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		s := h.server("a")
		known := func() string {
			i, err := h.set.Instance(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("%s, %d sessions: %s", i.Verdict, i.Sessions, i.Error)
		}
		h.apply(h.isolated("a", "1"))
		equal(t, "at first", known(), "starting, 0 sessions: ")
		one := h.client("a")
		synctest.Wait()
		equal(t, "with a session", known(), "live, 1 sessions: ")
		time.Sleep(time.Second)
		s.with(func() { s.refuse = errors.New("it is broken") })
		two := h.client("a")
		synctest.Wait()
		equal(t, "with one that fails", known(), "error, 2 sessions: it is broken (1 of 2 sessions are like this)")
		two.call()
		equal(t, "its caller hears", two.answer(), `Provider "a" not connected: it is broken. A new session starts another process`)
		two.leave()
		synctest.Wait()
		equal(t, "without that", known(), "live, 1 sessions: ")
		one.leave()
		synctest.Wait()
		equal(t, "without any", known(), "error, 0 sessions: it is broken")
		s.with(func() { s.refuse = nil })
		time.Sleep(time.Second)
		three := h.client("a")
		synctest.Wait() // one that leaves before its process is up tells nothing of it
		three.leave()
		synctest.Wait()
		equal(t, "after one that worked", known(), "starting, 0 sessions: ")
	})
}
