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

// Another health check, schedule or start timeout is no reason for another connection.
func TestRetune(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		s := h.server("a")
		cfg, alone := h.config("a", "1"), h.isolated("b", "1")
		h.apply(cfg, alone)
		c := h.client("b")
		synctest.Wait()
		for _, change := range []func(*upstreams.Config){
			func(c *upstreams.Config) { c.Health.Tool = "echo" },
			func(c *upstreams.Config) { c.Schedule.First = time.Hour },
			func(c *upstreams.Config) { c.MaxRestarts, c.MinUptime, c.StartTimeout = 3, time.Second, time.Hour },
		} {
			change(&cfg)
			change(&alone)
			equal(t, "changes", h.apply(cfg, alone), upstreams.Changes{Changed: []string{"a", "b"}})
			equal(t, "changes of the same", h.apply(cfg, alone), upstreams.Changes{})
		}
		equal(t, "starts", s.started(), 1)
		equal(t, "starts for the session", h.server("b").started(), 1)
		equal(t, "verdict", h.verdict("a"), msg.Healthy)
		equal(t, "verdict of the session", h.verdict("b"), msg.Healthy)
		s.with(func() { s.refuse = errors.New("it is broken") })
		s.die("it exited with code 1")
		synctest.Wait()
		i, err := h.set.Instance(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "the next attempt", i.NextRetry.Sub(i.LastAttempt), 5*time.Minute)
		c.leave()
	})
}

// They count for what was given up, or waits, as well (spec 06).
func TestRetuneWhileDown(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		s := h.server("a")
		s.refuse = errors.New("it is broken")
		cfg := h.config("a", "1")
		h.apply(cfg)
		instance := func() msg.Instance {
			i, err := h.set.Instance(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			return i
		}
		begun := time.Now()
		for _, c := range []struct {
			change func(*upstreams.Config)
			next   time.Duration // of the next attempt, since the beginning; 0 is never
			starts int
		}{
			{func(c *upstreams.Config) { c.Schedule = upstreams.Schedule{First: time.Hour, Quick: 1} }, 30 * time.Second, 1},
			{func(c *upstreams.Config) { c.Schedule.First = 10 * time.Second }, 10 * time.Second, 1},
			{func(c *upstreams.Config) { c.Schedule.First, c.MaxRestarts = time.Second, 2 }, time.Second, 1},
			{func(c *upstreams.Config) { time.Sleep(time.Second); c.Health.Tool = "echo" }, 0, 2},
			{func(c *upstreams.Config) { c.MaxRestarts = 3 }, 0, 3},
			{func(c *upstreams.Config) { c.MaxRestarts, c.Schedule.Slow = 0, time.Minute }, 61 * time.Second, 4},
		} {
			c.change(&cfg)
			synctest.Wait()
			equal(t, "changes", h.apply(cfg), upstreams.Changes{Changed: []string{"a"}})
			i, next := instance(), time.Duration(0)
			if !i.NextRetry.IsZero() {
				next = i.NextRetry.Sub(begun)
			}
			equal(t, "next attempt, starts, given up", fmt.Sprint(next, s.started(), i.GaveUp), fmt.Sprint(c.next, c.starts, c.next == 0))
		}
		s.with(func() { s.refuse = nil })
		cfg.Schedule.Slow = 2 * time.Second
		h.apply(cfg)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		equal(t, "verdict", h.verdict("a"), msg.Healthy)
	})
}
