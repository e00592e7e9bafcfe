package upstreams_test

import (
	"testing"
	"testing/synctest"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/upstreams"
)

const (
	first  = `{"by":1,"capabilities":{"tools":{}}}`
	second = `{"by":2,"capabilities":{"tools":{}}}`
	gone   = `Provider "a" disconnected`
)

// departure is a way for an upstream that serves to be taken away.
type departure struct {
	name string
	act  func(*testing.T, *house, func(string) upstreams.Config) error
	late string // what a call in flight comes to that takes too long
	next string // and one made meanwhile
}

var departures = []departure{
	{"restarted", func(t *testing.T, h *house, _ func(string) upstreams.Config) error {
		return h.set.Restart(t.Context(), "a")
	}, gone + ": it is being restarted by an operator", second},
	{"changed", func(t *testing.T, h *house, config func(string) upstreams.Config) error {
		_, err := h.set.Apply(t.Context(), []upstreams.Config{config("2")})
		return err
	}, gone, first},
	{"removed", func(t *testing.T, h *house, _ func(string) upstreams.Config) error {
		_, err := h.set.Apply(t.Context(), nil)
		return err
	}, gone, gone},
}

// departing plays each departure while one call is in flight and another comes.
func departing(t *testing.T, test func(t *testing.T, h *house, d departure, inFlight, later *client)) {
	for _, d := range departures {
		t.Run(d.name, func(t *testing.T) {
			inHouse(t, func(t *testing.T, h *house) {
				config := func(fingerprint string) upstreams.Config { return h.config("a", fingerprint) }
				h.server("a").keeps = true
				h.apply(config("1"))
				inFlight, later := h.client("a"), h.client("a")
				inFlight.call()
				synctest.Wait()
				through := make(chan error, 1)
				go func() { through <- d.act(t, h, config) }()
				synctest.Wait()
				later.call()
				synctest.Wait()
				equal(t, "drivers meanwhile", h.living(), []string{"a/1"})
				equal(t, "starts meanwhile", h.server("a").started(), 1)
				test(t, h, d, inFlight, later)
				equal(t, "the departure", <-through, error(nil))
			})
		})
	}
}

// Spec 06: calls in flight end normally when their upstream is taken away, and what comes
// meanwhile goes to the next one, or fails once there is none.
func TestDeparture(t *testing.T) {
	departing(t, func(t *testing.T, h *house, d departure, inFlight, later *client) {
		time.Sleep(4 * time.Second)
		released := time.Now()
		h.server("a").release()
		equal(t, "the call in flight", inFlight.answer(), first)
		equal(t, "the call made meanwhile", later.answer(), d.next)
		equal(t, "waited", time.Since(released), time.Duration(0))
	})
}

// A server that hangs is not waited for any longer than 5 s.
func TestDepartureOfOneThatHangs(t *testing.T) {
	departing(t, func(t *testing.T, h *house, d departure, inFlight, later *client) {
		begun := time.Now()
		equal(t, "the call in flight", inFlight.answer(), d.late)
		equal(t, "waited", time.Since(begun), 5*time.Second)
		h.server("a").release()
		later.answer()
		equal(t, "waited for the call made meanwhile", time.Since(begun), 5*time.Second)
	})
}

// One that ends by itself meanwhile is not waited for.
func TestDepartureOfOneThatDies(t *testing.T) {
	departing(t, func(t *testing.T, h *house, d departure, inFlight, later *client) {
		begun := time.Now()
		h.server("a").with(func() { h.server("a").keeps = false })
		h.server("a").die("it exited with code 1")
		equal(t, "the call in flight", inFlight.answer(), gone+": it exited with code 1")
		if got := later.answer(); got != d.next && got != gone+": it exited with code 1" {
			t.Errorf("the call made meanwhile: %s", got)
		}
		equal(t, "waited", time.Since(begun), time.Duration(0))
	})
}

// A set that is stopped does not wait for calls: the broker has.
func TestStopWaitsForNoCalls(t *testing.T) {
	for _, isolated := range []bool{false, true} {
		inHouse(t, func(t *testing.T, h *house) {
			cfg := h.config("a", "1")
			cfg.Isolated = isolated
			h.server("a").keeps = true
			h.apply(cfg)
			c := h.client("a")
			c.call()
			synctest.Wait()
			begun := time.Now()
			equal(t, "stop", h.set.Stop(t.Context()), error(nil))
			equal(t, "the call in flight", c.answer(), gone)
			equal(t, "waited", time.Since(begun), time.Duration(0))
		})
	}
}

// It does not wait for those of an upstream that is being restarted, either.
func TestStopDuringADeparture(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		h.server("a").keeps = true
		h.apply(h.config("a", "1"))
		c := h.client("a")
		c.call()
		equal(t, "restart", h.set.Restart(t.Context(), "a"), error(nil))
		time.Sleep(time.Second)
		begun := time.Now()
		equal(t, "stop", h.set.Stop(t.Context()), error(nil))
		equal(t, "the call in flight", c.answer(), gone)
		equal(t, "waited", time.Since(begun), time.Duration(0))
	})
}

// The process of a session finishes its calls as well. A session that leaves has none.
func TestDepartureOfIsolated(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		s := h.server("a")
		s.keeps = true
		h.apply(h.isolated("a", "1"))
		c := h.client("a")
		c.call()
		synctest.Wait()
		equal(t, "restart", h.set.Restart(t.Context(), "a"), error(nil))
		time.Sleep(time.Second)
		s.release()
		equal(t, "the call in flight", c.answer(), first)
		s.with(func() { s.keeps = true })
		c.call()
		synctest.Wait()
		through := make(chan error, 1)
		go func() {
			_, err := h.set.Apply(t.Context(), nil)
			through <- err
		}()
		time.Sleep(time.Second)
		s.release()
		equal(t, "the call in flight at the end", c.answer(), second)
		equal(t, "the end", <-through, error(nil))
		equal(t, "drivers", h.living(), []string(nil))
	})
}

// A word of the slot that cannot be handled at first is handled all the same.
func TestDepartureThatCrashes(t *testing.T) {
	departing(t, func(t *testing.T, h *house, d departure, inFlight, later *client) {
		h.strike(1, is[*msg.ProviderDrained])
		h.server("a").release()
		equal(t, "the call in flight", inFlight.answer(), first)
		begun := time.Now()
		equal(t, "the call made meanwhile", later.answer(), d.next)
		if took := time.Since(begun); took >= 5*time.Second {
			t.Errorf("waited %s", took)
		}
	})
}
