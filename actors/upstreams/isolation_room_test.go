package upstreams_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/wire"
)

const isolatedBound = 256

var tooMany = wire.TooManyIsolated("a", isolatedBound).Message

// crowd fills the isolated upstream a.
func (h *house) crowd() []*client {
	h.t.Helper()
	h.apply(h.isolated("a", "1"))
	all := make([]*client, isolatedBound)
	for i := range all {
		all[i] = h.client("a")
	}
	synctest.Wait()
	return all
}

// knock asks for a place and returns before the answer.
func (h *house) knock(kind msg.ClientKind) *client {
	c := &client{h: h, session: h.sessions.Add(1), inbox: make(chan any, 100)}
	h.registry.Send(&msg.JoinSlot{Slot: "a", Session: c.session, Client: c, Kind: kind})
	return c
}

// fate is what the client was told of its place, in order.
func (c *client) fate() []string {
	var told []string
	for {
		select {
		case m := <-c.inbox:
			switch m := m.(type) {
			case *msg.SlotJoined:
				c.slot = m.Ref
				told = append(told, "joined")
			case *msg.JoinRefused:
				told = append(told, m.Err.Message)
			case *msg.EndSession:
				told = append(told, "ended: "+m.Why)
			}
		default:
			return told
		}
	}
}

func (h *house) fate(what string, c *client, want ...string) {
	h.t.Helper()
	synctest.Wait()
	equal(h.t, what, c.fate(), want)
}

// ended lists which of the clients were told to go.
func ended(all []*client) []int {
	synctest.Wait()
	var gone []int
	for i, c := range all {
		if slices.Contains(c.fate(), `ended: isolation = "session"`) {
			gone = append(gone, i)
		}
	}
	return gone
}

// use calls and waits for the answer.
func (c *client) use() {
	c.call()
	c.answer()
}

// A full isolated upstream ends the session idle longest, with its process, for one
// that comes. One idle for less than 10 s keeps its place.
func TestIsolatedMakesRoom(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		all := h.crowd()
		time.Sleep(time.Second)
		for i, c := range all {
			if i != 7 && i != 70 {
				c.use()
			}
		}
		time.Sleep(time.Second)
		all[70].use()
		time.Sleep(8*time.Second - time.Nanosecond)
		h.fate("one that comes too early", h.knock(0), tooMany)
		equal(t, "ended too early", ended(all), []int(nil))
		time.Sleep(time.Nanosecond)
		one := h.knock(0)
		h.fate("the newcomer", one, "joined")
		equal(t, "ended", ended(all), []int{7})
		h.fate("the next one", h.knock(0), tooMany)
		one.call()
		equal(t, "answer", one.answer(), `{"by":1,"capabilities":{"tools":{}}}`)
		equal(t, "processes", len(h.living()), isolatedBound)
		equal(t, "sessions", h.instance("a").Sessions, isolatedBound)
	})
}

// What a client waits for, listens to or has just had keeps its place; so does a
// session of the broker's own.
func TestIsolatedKeepsWhoIsThere(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		all := h.crowd()
		all[3].leave()
		synctest.Wait()
		ours := h.knock(msg.BrokerClient)
		h.fate("a session of the broker's own", ours, "joined")
		all[3] = ours
		all[0].slot.Send(&msg.StreamChanged{Session: all[0].session, Open: true})
		synctest.Wait()
		h.server("a").with(func() { h.server("a").mute = true })
		all[1].call()
		synctest.Wait()
		h.server("a").with(func() { h.server("a").mute = false })
		time.Sleep(20 * time.Second)
		for _, c := range all[4:] {
			c.use()
		}
		time.Sleep(time.Second)
		h.fate("the newcomer", h.knock(0), "joined")
		h.fate("the next one", h.knock(0), tooMany)
		equal(t, "ended", ended(all), []int{2})
	})
}

// A thousand that come at once: as many get in as there are idle sessions, each in
// the place of one, and all others are refused. None is without an answer.
func TestIsolatedRush(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		all := h.crowd()
		time.Sleep(20 * time.Second)
		for _, c := range all[200:] {
			c.use()
		}
		rush := make([]*client, 1000)
		for i := range rush {
			rush[i] = h.knock(0)
		}
		synctest.Wait()
		fates := map[string]int{}
		for _, c := range rush {
			fates[fmt.Sprint(c.fate())]++
		}
		equal(t, "fates", fates, map[string]int{"[joined]": 200, "[" + tooMany + "]": 800})
		equal(t, "ended", len(ended(all[:200])), 200)
		equal(t, "ended although in use", ended(all[200:]), []int(nil))
		equal(t, "processes", len(h.living()), isolatedBound)
	})
}

// stall holds up the slot of c at the first message that matches.
func (h *house) stall(c *client, d time.Duration, at func(message any) bool) {
	var done atomic.Bool
	h.fuse.Store(&fuse{who: c.slot.(*rt.Ref).PID(), at: func(message any) bool {
		if at(message) && done.CompareAndSwap(false, true) {
			time.Sleep(d) // of the bubble
		}
		return false
	}})
}

// A place that is given up while sessions wait is the first one's at once, and one
// that leaves the queue is out of it.
func TestIsolatedQueue(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		all := h.crowd()
		h.stall(all[0], 5*time.Second, is[*msg.DescribeSlot])
		gone, first, second := h.knock(0), h.knock(0), h.knock(0)
		time.Sleep(100 * time.Millisecond)
		h.registry.Send(&msg.LeaveSlot{Slot: "a", Session: gone.session})
		h.registry.Send(&msg.JoinSlot{Slot: "a", Session: second.session, Client: second}) // it has asked already
		time.Sleep(100 * time.Millisecond)
		all[100].leave()
		time.Sleep(100 * time.Millisecond)
		h.fate("the one that left the queue", gone)
		h.fate("the first", first, "joined")
		h.fate("the second", second)
		time.Sleep(2 * time.Second) // the survey it came during, and its own
		h.fate("the second behind the surveys", second, tooMany)
		equal(t, "ended", ended(all), []int(nil))
		equal(t, "sessions", h.instance("a").Sessions, isolatedBound)
	})
}

// The queue is bounded: whoever finds it full is refused without a wait.
func TestIsolatedQueueFull(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		all := h.crowd()
		h.stall(all[0], 5*time.Second, is[*msg.DescribeSlot])
		var waiting []*client
		for range isolatedBound {
			waiting = append(waiting, h.knock(0))
		}
		over := h.knock(0)
		time.Sleep(100 * time.Millisecond)
		h.fate("one too many", over, tooMany)
		h.fate("the last in the queue", waiting[len(waiting)-1])
		time.Sleep(10 * time.Second)
		for _, c := range waiting {
			h.fate("one that waited", c, tooMany)
		}
	})
}

// A private slot that answers late holds nobody up for longer than a second, and
// its answer changes nothing.
func TestIsolatedLateAnswer(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		all := h.crowd()
		time.Sleep(10 * time.Second)
		h.stall(all[0], 5*time.Second, is[*msg.DescribeSlot])
		one := h.knock(0)
		time.Sleep(900 * time.Millisecond)
		h.fate("the newcomer within the second", one)
		time.Sleep(200 * time.Millisecond)
		h.fate("the newcomer", one, "joined")
		equal(t, "ended", len(ended(all)), 1)
		time.Sleep(10 * time.Second)
		equal(t, "ended later", ended(all), []int(nil))
	})
}

// A private slot that is told to end its session and does so late has made room
// for whoever comes then.
func TestIsolatedLateEnd(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		all := h.crowd()
		time.Sleep(10 * time.Second)
		h.stall(all[0], 5*time.Second, is[*msg.EndIdle])
		one := h.knock(0)
		time.Sleep(1100 * time.Millisecond)
		h.fate("the newcomer", one, tooMany)
		time.Sleep(4 * time.Second)
		equal(t, "ended", ended(all), []int{0})
		equal(t, "sessions", h.instance("a").Sessions, isolatedBound-1)
		h.fate("the next one", h.knock(0), "joined")
		equal(t, "ended for the next one", ended(all), []int(nil))
	})
}

// A private slot that fails when it is told to end its session has ended nothing:
// the one idle next longest makes room.
func TestIsolatedEndFails(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		all := h.crowd()
		time.Sleep(10 * time.Second)
		h.strike(1, is[*msg.EndIdle])
		h.fate("the newcomer", h.knock(0), "joined")
		equal(t, "ended", ended(all), []int{1})
	})
}

// An isolated upstream that is stopped while a survey is under way answers all who
// wait.
func TestIsolatedHaltWhileSurveying(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		all := h.crowd()
		time.Sleep(10 * time.Second)
		h.stall(all[0], 500*time.Millisecond, is[*msg.DescribeSlot])
		one, two := h.knock(0), h.knock(0)
		time.Sleep(100 * time.Millisecond)
		h.fate("before the end", one)
		h.apply()
		reset := wire.SlotFailed("a").Message
		h.fate("the first", one, reset)
		h.fate("the second", two, reset)
		equal(t, "ended", ended(all), []int(nil))
		equal(t, "drivers", h.living(), []string(nil))
	})
}

// Neither a failure while a survey is under way nor one at its end leaves a session
// without an answer.
func TestIsolatorFailsWhileSurveying(t *testing.T) {
	for _, at := range []struct {
		name string
		fuse func(any) bool
	}{
		{"a restart by hand", is[*msg.RestartInstance]},
		{"the end of the survey", typed("upstreams.roomMade")},
	} {
		t.Run(at.name, func(t *testing.T) {
			inHouse(t, func(t *testing.T, h *house) {
				h.crowd()
				h.strike(1, at.fuse)
				one := h.knock(0)
				if err := h.set.Restart(t.Context(), "a"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if fate := one.fate(); len(fate) != 1 {
					t.Errorf("fate %q, not one answer", fate)
				}
				h.fate("the next one", h.knock(0), "joined")
			})
		})
	}
}
