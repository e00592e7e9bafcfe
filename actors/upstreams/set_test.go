package upstreams_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/upstreams"
)

// Apply starts what is new, stops what is gone, starts what changed again, and
// leaves the rest alone.
func TestApply(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		equal(t, "first", h.apply(h.config("a", "1"), h.config("b", "1"), h.config("c", "1")), upstreams.Changes{Added: []string{"a", "b", "c"}})
		equal(t, "second", h.apply(h.config("a", "1"), h.config("b", "2"), h.config("d", "1")),
			upstreams.Changes{Added: []string{"d"}, Removed: []string{"c"}, Changed: []string{"b"}})
		for name, starts := range map[string]int{"a": 1, "b": 2, "c": 1, "d": 1} {
			equal(t, "starts of "+name, h.server(name).started(), starts)
		}
		all, err := h.set.Instances(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, i := range all {
			lines = append(lines, fmt.Sprintf("%s %s %s restarts=%d", i.Slot, i.Target, i.Verdict, i.Restarts))
		}
		equal(t, "instances", lines, []string{"a server 1 live restarts=0", "b server 2 live restarts=0", "d server 1 live restarts=0"})
		equal(t, "third", h.apply(h.config("a", "1"), h.config("b", "2"), h.config("d", "1")), upstreams.Changes{})
	})
}

// A call is served without a break by an upstream that stays, and refused at once
// by one that is gone.
func TestOthersGoOn(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		h.apply(h.config("a", "1"), h.config("b", "1"))
		stays, goes := h.client("a"), h.client("b")
		h.server("a").with(func() { h.server("a").mute = true })
		stays.call()
		synctest.Wait()
		h.apply(h.config("a", "1"))
		goes.call()
		equal(t, "of the one that is gone", goes.answer(), `Provider "b" not connected`)
		select {
		case m := <-stays.inbox:
			t.Errorf("the pending call of the other one came to %+v", m)
		default:
		}
		h.server("a").with(func() { h.server("a").mute = false })
		stays.call()
		equal(t, "of the one that stays", stays.answer(), `{"by":1,"capabilities":{"tools":{}}}`)
	})
}

// A slot whose old upstream takes its time is not had twice: of several changes
// meanwhile the last one is started, once.
func TestApplyWhileStopping(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		s := h.server("a")
		s.linger = time.Minute
		h.apply(h.config("a", "1"))
		begun := time.Now()
		_, err := h.set.Apply(timeout(t, time.Second), []upstreams.Config{h.config("a", "2")})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Apply: %v", err)
		}
		i, err := h.set.Instance(t.Context(), "a")
		all, _ := h.set.Instances(t.Context())
		equal(t, "while stopping", fmt.Sprintf("%s %s %s %t %d %s %v", i.Target, i.Verdict, i.Check, i.Behind, i.PID, i.Error, err), "server 2 starting tools/list true 1 its old process 1 has not ended <nil>")
		equal(t, "in the list", all, []msg.Instance{i})
		if err := h.set.Restart(t.Context(), "a"); err != nil {
			t.Errorf("restart while stopping: %v", err)
		}
		h.apply(h.config("a", "3"))
		equal(t, "waited", time.Since(begun), time.Minute)
		if i, err = h.set.Instance(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		equal(t, "behind another", i.Behind, false)
		equal(t, "target", i.Target, "server 3")
		equal(t, "starts", s.started(), 2)
		// what is not wanted any more when the old one is through is not started
		if _, err := h.set.Apply(timeout(t, time.Second), []upstreams.Config{h.config("a", "4")}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Apply: %v", err)
		}
		h.apply()
		equal(t, "starts at the end", s.started(), 2)
	})
}

// Spec 07 row 34: all are stopped in parallel.
func TestStopInParallel(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		var all []upstreams.Config
		for n := range 6 {
			name := fmt.Sprintf("s%d", n)
			h.server(name).linger = 5 * time.Second
			all = append(all, h.config(name, "1"))
		}
		h.apply(all...)
		begun := time.Now()
		if err := h.set.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		equal(t, "took", time.Since(begun), 5*time.Second)
		// what is asked of a set that has stopped is refused, not left waiting
		_, apply := h.set.Apply(t.Context(), all)
		_, list := h.set.Instances(t.Context())
		for _, err := range []error{apply, list, h.set.Restart(t.Context(), "s0")} {
			if !errors.Is(err, rt.ErrStopped) {
				t.Errorf("after Stop: %v", err)
			}
		}
	})
}

// A stop that has no more time gives the drivers up; they end on their own.
func TestStopWithoutTime(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		h.server("a").linger = time.Hour
		h.apply(h.config("a", "1"))
		if err := h.set.Stop(timeout(t, time.Second)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Stop: %v", err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
	})
}

// Spec 06: the first call after a death is served by the connection made at once.
// One that was written and not answered fails, and is not sent again.
func TestDeath(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		s := h.server("a")
		h.apply(h.config("a", "1"))
		c := h.client("a")
		time.Sleep(2 * time.Minute)
		s.with(func() { s.mute = true })
		c.call()
		synctest.Wait()
		s.with(func() { s.mute = false })
		s.die("it was killed by SIGKILL")
		equal(t, "the written one", c.answer(), `Provider "a" disconnected: it was killed by SIGKILL`)
		c.call()
		equal(t, "the next one", c.answer(), `{"by":2,"capabilities":{"tools":{}}}`)
		equal(t, "starts", s.started(), 2)
	})
}

// Spec 06: while an upstream cannot be started its slot says why, and when the next
// attempt is; the others serve.
func TestFailedStart(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		s := h.server("a")
		s.refuse = errors.New(`command "x" was not found in PATH (/bin)`)
		h.apply(h.config("a", "1"), h.config("b", "1"))
		c, other := h.client("a"), h.client("b")
		c.call()
		equal(t, "answer", c.answer(), `Provider "a" not connected: command "x" was not found in PATH (/bin). Attempt 1 failed, the next one is at 2000-01-01 00:00:30 (UTC)`)
		other.call()
		equal(t, "the other's", other.answer(), `{"by":1,"capabilities":{"tools":{}}}`)
		time.Sleep(29 * time.Second)
		equal(t, "starts", s.started(), 1)
		s.with(func() { s.refuse = nil })
		time.Sleep(time.Second)
		synctest.Wait()
		c.call()
		equal(t, "after the repair", c.answer(), `{"by":2,"capabilities":{"tools":{}}}`)
	})
}

// Spec 07 row 13: a server that answers and then exits is started a few times a
// minute at most.
func TestCrashLoop(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		s := h.server("a")
		h.apply(h.config("a", "1"))
		for range 7 * 60 {
			s.die("it exited with code 0")
			time.Sleep(time.Second)
			synctest.Wait()
		}
		// at once, after 30 s five times, after 5 min
		if n := s.started(); n < 7 || n > 9 {
			t.Errorf("%d starts in 7 minutes", n)
		}
		i, err := h.set.Instance(t.Context(), "a")
		if err != nil || !i.CrashLoop {
			t.Errorf("instance %+v (%v)", i, err)
		}
	})
}

// Spec 06: an upstream that fails its checks is connected again, and its slot
// holds calls back meanwhile.
func TestUnhealthy(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		s := h.server("a")
		s.linger = 3 * time.Second
		cfg := h.config("a", "1")
		cfg.Health = upstreams.Health{Interval: 10 * time.Second, Threshold: 2}
		h.apply(cfg)
		c := h.client("a")
		time.Sleep(2*time.Minute + time.Second)
		s.with(func() { s.failing = true })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		equal(t, "verdict", h.verdict("a"), msg.Degraded)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		equal(t, "verdict", h.verdict("a"), msg.Unhealthy)
		c.call()
		s.with(func() { s.failing = false })
		equal(t, "a call meanwhile", c.answer(), `{"by":2,"capabilities":{"tools":{}}}`)
		synctest.Wait()
		equal(t, "verdict", h.verdict("a"), msg.Live)
	})
}

// Restart works by hand, and names what it does not know.
func TestRestart(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		s := h.server("a")
		s.linger = time.Second
		h.apply(h.config("a", "1"))
		c := h.client("a")
		if err := h.set.Restart(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		c.call()
		equal(t, "a call meanwhile", c.answer(), `{"by":2,"capabilities":{"tools":{}}}`)
		for _, err := range []error{
			h.set.Restart(t.Context(), "b"),
			func() error { _, err := h.set.Instance(t.Context(), "b"); return err }(),
		} {
			if !errors.Is(err, upstreams.ErrUnknown) || !strings.Contains(err.Error(), `"b"`) {
				t.Errorf("unknown: %v", err)
			}
		}
		equal(t, "starts", s.started(), 2)
	})
}

// TestCrashes makes the actor of an upstream fail once at each of the facts nobody
// tells twice: none is lost.
func TestCrashes(t *testing.T) {
	for _, test := range []struct {
		name string
		at   func(any) bool
	}{
		{"opened", is[*msg.UpstreamOpened]},
		{"granted", is[*msg.ClaimGranted]},
		{"joined", is[*msg.SlotJoined]},
		{"replied", is[*msg.CallReply]},
		{"ended", is[*msg.UpstreamEnded]},
	} {
		t.Run(test.name, func(t *testing.T) {
			inHouse(t, func(t *testing.T, h *house) {
				h.strike(1, test.at)
				h.apply(h.config("a", "1"))
				time.Sleep(90 * time.Second) // a crash is followed by a pause
				h.server("a").die("it exited with code 1")
				time.Sleep(90 * time.Second)
				c := h.client("a")
				c.call()
				equal(t, "answer", c.answer(), `{"by":2,"capabilities":{"tools":{}}}`)
				equal(t, "verdict", h.verdict("a"), msg.Live)
				if !strings.Contains(h.logged(), "struck") {
					t.Error("nothing was struck")
				}
			})
		})
	}
}

// A slot that is being handed from one upstream to the next is anybody's when the next
// one leaves the configuration meanwhile.
func TestRemovedDuringHandover(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		h.server("a").linger = time.Second
		h.apply(h.config("a", "1"))
		changed := make(chan error, 1)
		go func() {
			_, err := h.set.Apply(t.Context(), []upstreams.Config{h.config("a", "2")})
			changed <- err
		}()
		synctest.Wait()
		h.apply()
		equal(t, "the first Apply", <-changed, error(nil))
		claimant := &client{h: h, inbox: make(chan any, 10)}
		h.registry.Send(&msg.ClaimSlot{Slot: "a", Claimant: claimant, Kind: msg.Dedicated})
		granted, ok := (<-claimant.inbox).(*msg.ClaimGranted)
		if !ok {
			t.Fatal("the slot is not to be had")
		}
		granted.Ref.Send(&msg.ProviderGone{Gen: granted.Gen})
	})
}

// An actor that fails again and again is given up with its driver, and replaced.
func TestGivenUpActorIsReplaced(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		s := h.server("a")
		s.overlaps = true // nobody is left to wait for the driver that was given up
		h.apply(h.config("a", "1"))
		c := h.client("a")
		h.strike(1000, is[*msg.RestartInstance])
		for range 20 {
			if err := h.set.Restart(t.Context(), "a"); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		h.fuse.Store(nil)
		equal(t, "starts", s.started(), 2)
		c.call()
		equal(t, "answer", c.answer(), `{"by":1,"capabilities":{"tools":{}}}`)
	})
}

// A halt that comes to an actor which fails at it is not lost.
func TestHaltWhileCrashing(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		h.apply(h.config("a", "1"))
		h.strike(1, func(message any) bool { return fmt.Sprintf("%T", message) == "upstreams.haltNow" })
		h.apply()
		equal(t, "drivers", h.living(), []string(nil))
		h.strike(1000, func(message any) bool { return fmt.Sprintf("%T", message) == "upstreams.haltNow" })
		h.apply(h.config("a", "2"))
		h.apply()
	})
}

// A slot that is given up lets its upstream go; it comes back.
func TestSlotFails(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		h.apply(h.config("a", "1"))
		c := h.client("a")
		h.strike(20, is[*msg.ClientCall])
		for range 20 {
			c.call()
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		h.fuse.Store(nil)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		equal(t, "verdict", h.verdict("a"), msg.Live)
		d := h.client("a")
		d.call()
		if got := d.answer(); !strings.HasPrefix(got, `{"by":`) {
			t.Errorf("answer %s", got)
		}
	})
}

// A driver that does not end is given up, by a restart, a change and the end.
func TestStuckDriver(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		s := h.server("a")
		s.linger, s.overlaps = time.Hour, true
		cfg := h.config("a", "1")
		cfg.Grace = time.Second
		h.apply(cfg)
		if err := h.set.Restart(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		i, err := h.set.Instance(t.Context(), "a")
		equal(t, "while it is waited for", fmt.Sprintf("%s %s %v", i.Verdict, i.Error, err), "starting its old process 1 has not ended <nil>")
		time.Sleep(time.Second)
		synctest.Wait()
		equal(t, "verdict", h.verdict("a"), msg.Live)
		cfg.Fingerprint = "2"
		at := time.Now()
		h.apply(cfg)
		equal(t, "another configuration waited", time.Since(at), 6*time.Second)
		equal(t, "starts", s.started(), 3)
		at = time.Now()
		h.apply()
		equal(t, "the end waited", time.Since(at), 6*time.Second)
		time.Sleep(time.Hour)
	})
}
