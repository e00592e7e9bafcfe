package upstreams_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/upstreams"
)

func isStopped(message any) bool { return fmt.Sprintf("%T", message) == "*upstreams.stopped" }

// An effect that panics costs itself and nothing behind it: no timer, no message
// and no end of a halt is lost.
func TestEffectsAfterPanic(t *testing.T) {
	for _, test := range []struct {
		name   string
		strike func(h *house, s *server)
		starts int
	}{
		{"start", func(_ *house, s *server) { s.startPanics = true }, 2},
		{"attach", func(_ *house, s *server) { s.attachPanics = true }, 2},
		{"log, before a timer", func(h *house, s *server) {
			s.refuse = errors.New("it is broken")
			h.logMu.Lock()
			h.logPanics = "is error, was starting"
			h.logMu.Unlock()
			time.AfterFunc(time.Second, func() { s.with(func() { s.refuse = nil }) })
		}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			inHouse(t, func(t *testing.T, h *house) {
				s := h.server("a")
				test.strike(h, s)
				h.apply(h.config("a", "1"))
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				equal(t, "verdict", h.verdict("a"), msg.Live)
				equal(t, "starts", s.started(), test.starts)
				if !strings.Contains(h.logged(), "struck") {
					t.Error("nothing was struck")
				}
			})
		})
	}
}

// A driver whose stop panics says nothing any more. Its upstream goes on without its
// last word: to the next driver, or to its end.
func TestStopPanics(t *testing.T) {
	restart := func(h *house) {
		if err := h.set.Restart(h.t.Context(), "a"); err != nil {
			h.t.Error(err)
		}
	}
	for _, test := range []struct {
		name   string
		silent bool // it is still being started
		stop   func(h *house)
	}{
		{"a restart by hand", false, restart},
		{"another configuration", false, func(h *house) { h.apply(h.config("a", "2")) }},
		{"a start that is given up", true, restart},
	} {
		t.Run(test.name, func(t *testing.T) {
			inHouse(t, func(t *testing.T, h *house) {
				s := h.server("a")
				s.silent = test.silent
				h.apply(h.config("a", "1"))
				s.with(func() { s.silent, s.stopPanics = false, true })
				test.stop(h)
				synctest.Wait()
				equal(t, "verdict", h.verdict("a"), msg.Live)
				equal(t, "starts", s.started(), 2)
				if !strings.Contains(h.logged(), "stop struck") {
					t.Error("nothing was struck")
				}
			})
		})
	}
}

// The same of an actor that is given up while its driver takes long to end: who waits
// for that is told.
func TestStopPanicsWhenGivenUp(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		s := h.server("a")
		s.linger = time.Hour
		h.apply(h.config("a", "1"))
		removed := make(chan error, 1)
		go func() {
			_, err := h.set.Apply(t.Context(), nil)
			removed <- err
		}()
		synctest.Wait()
		h.strike(1000, is[*msg.UpstreamSaid])
		s.with(func() {
			s.stopPanics = true
			for d := range s.drivers {
				for range 20 {
					d.owner.Send(&msg.UpstreamSaid{Gen: d.gen})
				}
			}
		})
		begun := time.Now()
		equal(t, "Apply", <-removed, error(nil))
		if took := time.Since(begun); took > 10*time.Minute {
			t.Errorf("it took %v", took)
		}
		if !strings.Contains(h.logged(), "stop struck") {
			t.Error("nothing was struck")
		}
	})
}

// The set's own failure at the end of an upstream that was given up does not leave the
// slot without one. A failure that stays is no endless loop, and leaves the slot to
// anybody.
func TestGivenUpIsNotLost(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		s := h.server("a")
		s.overlaps = true
		h.apply(h.config("a", "1"))
		giveUp := func() {
			h.strike(1000, is[*msg.RestartInstance])
			for range 20 {
				if err := h.set.Restart(t.Context(), "a"); err != nil {
					t.Error(err)
				}
			}
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			h.fuse.Store(nil)
		}
		h.noSession.Store(2)
		giveUp()
		equal(t, "verdict", h.verdict("a"), msg.Live)
		equal(t, "starts", s.started(), 2)

		h.noSession.Store(1000)
		giveUp()
		h.noSession.Store(0)
		if !strings.Contains(h.logged(), `upstream \"a\" was given up, and the next one could not be started`) {
			t.Errorf("log: %s", h.logged())
		}
		claimant := &client{h: h, inbox: make(chan any, 10)}
		h.registry.Send(&msg.ClaimSlot{Slot: "a", Claimant: claimant, Kind: msg.Dedicated})
		granted, ok := (<-claimant.inbox).(*msg.ClaimGranted)
		if !ok {
			t.Fatal("the slot is not to be had")
		}
		granted.Ref.Send(&msg.ProviderGone{Gen: granted.Gen})
		h.apply(h.config("a", "1"))
		equal(t, "verdict with another Apply", h.verdict("a"), msg.Live)
		equal(t, "starts with another Apply", s.started(), 3)
	})
}

// A panic at the last effects of a halt does not keep the set waiting.
func TestHaltAfterPanic(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		h.apply(h.config("a", "1"))
		h.logMu.Lock()
		h.logPanics = "is stopped, was live"
		h.logMu.Unlock()
		h.apply(h.config("a", "2"))
		equal(t, "verdict", h.verdict("a"), msg.Live)
		equal(t, "starts", h.server("a").started(), 2)
	})
}

// The set's own failure at the end of an upstream loses neither the next one of the
// slot nor who waits for it. A failure that stays is no endless loop.
func TestStoppedIsNotLost(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		h.apply(h.config("a", "1"))
		h.strike(2, isStopped)
		equal(t, "changes", h.apply(h.config("a", "2")), upstreams.Changes{Changed: []string{"a"}})
		equal(t, "verdict", h.verdict("a"), msg.Live)
		equal(t, "starts", h.server("a").started(), 2)

		h.strike(1000, isStopped)
		h.apply(h.config("a", "3"))
		if !strings.Contains(h.logged(), `upstream \"a\" was stopped, and the next one could not be started`) {
			t.Errorf("log: %s", h.logged())
		}
		h.fuse.Store(nil)
		h.apply(h.config("a", "3"))
		equal(t, "starts with another Apply", h.server("a").started(), 3)
	})
}

// An upstream whose actor waits for its restart hides none of the others.
func TestSilentInstance(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		silent := h.config("b", "1")
		silent.Aggregate = true
		h.apply(h.config("a", "1"), silent, h.config("c", "1"))
		h.strike(7, is[*msg.RestartInstance])
		for range 7 {
			if err := h.set.Restart(t.Context(), "b"); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(4 * time.Second)
		begun := time.Now()
		all, err := h.set.Instances(timeout(t, 2*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "took", time.Since(begun), 500*time.Millisecond)
		equal(t, "instances", len(all), 3)
		equal(t, "the others", []msg.Verdict{all[0].Verdict, all[2].Verdict}, []msg.Verdict{msg.Live, msg.Live})
		equal(t, "the silent one", all[1], msg.Instance{
			Slot: "b", Kind: "stdio", Target: "server 1", Aggregate: true, Verdict: msg.Unknown, Error: "its actor does not answer",
		})
		time.Sleep(time.Minute)
		synctest.Wait()
		equal(t, "later", h.verdict("b"), msg.Live)
	})
}

// However many ask for a restart at once, the connection is made again once.
func TestRestartsAtOnce(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		s := h.server("a")
		s.linger = time.Second
		h.apply(h.config("a", "1"))
		many := func() {
			for range 100 {
				if err := h.set.Restart(t.Context(), "a"); err != nil {
					t.Error(err)
				}
			}
			synctest.Wait()
		}
		many()
		time.Sleep(time.Second)
		many()
		equal(t, "starts", s.started(), 2)
		i, err := h.set.Instance(t.Context(), "a")
		if err != nil || !i.ByHand {
			t.Errorf("instance %+v (%v)", i, err)
		}
		time.Sleep(time.Second)
		many()
		time.Sleep(time.Second)
		synctest.Wait()
		equal(t, "starts after another", s.started(), 3)
	})
}

// A slot that is given up while its upstream waits for the next attempt is replaced
// by one that is its own too, and that says as much as the old one.
func TestSlotFailsWhileWaiting(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		h.server("a").refuse = errors.New("it is broken")
		cfg := h.config("a", "1")
		cfg.Schedule = upstreams.Schedule{First: time.Hour, Quick: 5}
		h.apply(cfg)
		const why = `Provider "a" not connected: it is broken. Attempt 1 failed, the next one is at 2000-01-01 01:00:00 (UTC)`
		c := h.client("a")
		h.strike(20, is[*msg.ClientNote])
		for range 20 {
			c.slot.Send(&msg.ClientNote{Session: c.session})
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		h.fuse.Store(nil)
		if !strings.Contains(h.logged(), "stopped after 10 crashes") {
			t.Error("the slot was not given up")
		}
		d := h.client("a")
		d.call()
		equal(t, "answer", d.answer(), why)
		claimant := &client{h: h, inbox: make(chan any, 10)}
		h.registry.Send(&msg.ClaimSlot{Slot: "a", Claimant: claimant, Kind: msg.Dedicated})
		refused, _ := (<-claimant.inbox).(*msg.ClaimRefused)
		if refused == nil || refused.LogLead != "managed by an upstream" {
			t.Errorf("a claim of another came to %+v", refused)
		}
	})
}
