package upstreams

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// world is what surrounds an upstream: it keeps the promises of drivers, and the
// count of what the upstream has done to them.
type world struct {
	*machine
	started uint64 // generation of the last driver
	alive   bool   // it has not ended
	opened  bool
	stopped bool
	stuck   bool            // it does not end, whatever it is told
	slots   map[uint64]bool // granted and not left, by generation
	granted map[uint64]msg.Conduit
	pending []msg.Conduit // of the claims nobody has decided
	halts   []chan struct{}
	ended   bool // the actor has ended
}

// Whatever comes: there is one driver at a time, a slot is asked for with a driver
// that lives and is left with it, whoever waits for a halt is told once and not
// before the driver has ended, and a step that panics changes nothing.
func TestAnyLife(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{
			machine: newMachine(Config{
				Kind:        rapid.SampledFrom([]string{"stdio", "sse"}).Draw(t, "kind"),
				MaxRestarts: rapid.IntRange(0, 4).Draw(t, "maxRestarts"),
				Health:      Health{Tool: rapid.SampledFrom([]string{"", "echo"}).Draw(t, "tool")},
			}),
			slots: map[uint64]bool{}, granted: map[uint64]msg.Conduit{},
		}
		w.step(t, started{})
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			if rapid.IntRange(0, 9).Draw(t, "poison") == 0 {
				w.poison(t)
			}
			w.advance(t)
			if message := w.draw(t); message != nil {
				w.step(t, message)
			}
			if w.ended {
				return
			}
		}
		w.wind(t)
	})
}

// advance lets time pass and delivers the timer, sometimes late.
func (w *world) advance(t *rapid.T) {
	w.now = w.now.Add(rapid.SampledFrom([]time.Duration{0, time.Second, 10 * time.Second, 40 * time.Second, 10 * time.Minute}).Draw(t, "time"))
	if !w.timerAt.IsZero() && !w.now.Before(w.timerAt) {
		w.timerAt = time.Time{}
		w.step(t, timerDue{w.timerGen})
	}
}

func (w *world) draw(t *rapid.T) any {
	stale := w.started - min(w.started, 1)
	switch rapid.IntRange(0, 15).Draw(t, "message") {
	case 0, 1:
		if w.alive && !w.opened {
			w.opened = true
			return &msg.UpstreamOpened{Gen: w.started, Driver: &driver{w.started}, PID: 42}
		}
	case 2:
		if w.alive && !w.stuck {
			w.alive = false
			return &msg.UpstreamEnded{Gen: w.started, Denied: rapid.Bool().Draw(t, "denied")}
		}
	case 3, 4:
		return w.decide(t, rapid.IntRange(0, 3).Draw(t, "grant") > 0)
	case 5, 6, 7:
		answers := []string{`{"id":1,"result":{}}`, `{"id":1,"result":{"capabilities":{"tools":{}}}}`, `{"id":1,"error":{}}`, `{"id":1,"result":{"isError":true}}`, `{`}
		return &msg.CallReply{Call: w.state.lastCall, Frame: []byte(rapid.SampledFrom(answers).Draw(t, "answer"))}
	case 8:
		return &msg.CallFailed{Call: w.state.lastCall, Err: &wire.Error{Message: "no", Busy: rapid.Bool().Draw(t, "busy")}}
	case 9:
		return &msg.SlotJoined{Ref: &ref{"slot"}}
	case 10:
		return rapid.SampledFrom([]any{&msg.SlotLost{}, &msg.SlotReplaced{}, &msg.JoinRefused{Err: &wire.Error{Message: "no"}}, &msg.ClientAsk{ID: 1}, &msg.SlotFree{}, retuned(t)}).Draw(t, "slot")
	case 11:
		if gen := w.state.slotGen; w.slots[gen] {
			delete(w.slots, gen)
			return &msg.EvictHolder{Gen: gen}
		}
	case 12:
		return &msg.RestartInstance{}
	case 13:
		return rapid.SampledFrom([]any{&msg.UpstreamOpened{Gen: stale, Driver: &driver{stale}}, &msg.UpstreamEnded{Gen: stale}, timerDue{0}, &msg.EvictHolder{Gen: 1 << 40}}).Draw(t, "stale")
	case 14:
		return &msg.UpstreamSaid{Gen: w.started, Line: "line"}
	case 15:
		if rapid.IntRange(0, 9).Draw(t, "halt") == 0 {
			return w.halt()
		}
	}
	return nil
}

// decide answers the oldest claim.
func (w *world) decide(t *rapid.T, grant bool) any {
	if len(w.pending) == 0 {
		return nil
	}
	conduit := w.pending[0]
	w.pending = w.pending[1:]
	if !grant {
		return &msg.ClaimRefused{Conduit: conduit, Held: rapid.Bool().Draw(t, "held"), Err: &wire.Error{Message: "no"}}
	}
	w.grants++
	w.slots[w.grants], w.granted[w.grants] = true, conduit
	return &msg.ClaimGranted{Ref: &ref{"slot"}, Gen: w.grants, Conduit: conduit}
}

func (w *world) halt() any {
	done := make(chan struct{})
	w.halts = append(w.halts, done)
	return haltNow{done: done}
}

// step plays a message and keeps count.
func (w *world) step(t *rapid.T, message any) {
	t.Helper()
	for _, e := range w.state.Step(w.now, message) {
		switch {
		case e.To != nil:
			w.told(t, e.Message)
		case e.Start != 0:
			if w.alive || e.Start <= w.started {
				t.Fatalf("driver %d is started beside %d", e.Start, w.started)
			}
			w.started, w.alive, w.opened, w.stopped = e.Start, true, false, false
			w.stuck = rapid.IntRange(0, 9).Draw(t, "stuck") == 0
		case e.Driver != nil && e.Slot != nil:
			if !w.opened || e.Driver.(*driver).gen != w.started || !w.slots[e.Gen] || w.granted[e.Gen] != e.Driver {
				t.Fatalf("driver %d is attached to gen %d", e.Driver.(*driver).gen, e.Gen)
			}
		case e.Stray && (e.Cancel || e.Driver.(*driver).gen == w.started):
			if !w.stopped {
				t.Fatalf("driver %d is given up, and was not told to stop", w.started)
			}
			w.alive = false // to the upstream
		case e.Stray:
		case e.Driver != nil, e.Cancel:
			w.stopped = true
		case e.WakeGen != 0:
			w.timerAt, w.timerGen = w.now.Add(e.Wake), e.WakeGen
		case e.Done != nil:
			if w.alive {
				t.Fatal("told to be halted while the driver lives")
			}
			i := slices.IndexFunc(w.halts, func(c chan struct{}) bool { return c == e.Done })
			close(w.halts[i]) // twice would panic
		case e.Stop:
			w.ended = true
		}
	}
	w.check(t)
}

func (w *world) told(t *rapid.T, message any) {
	switch m := message.(type) {
	case *msg.ClaimSlot:
		if d := m.Conduit.(*driver); !w.alive || !w.opened || d.gen != w.started {
			t.Fatalf("the slot is claimed for driver %d", d.gen)
		}
		w.pending = append(w.pending, m.Conduit)
	case *msg.ProviderGone:
		if !w.slots[m.Gen] {
			t.Fatalf("gen %d is left twice, or was never held", m.Gen)
		}
		delete(w.slots, m.Gen)
	}
}

// check holds the state to what it must be between any two messages.
func (w *world) check(t *rapid.T) {
	s := w.state
	resting := slices.Contains([]phase{idle, waiting, givenUp, halted}, s.phase)
	switch {
	case resting == w.alive:
		t.Fatalf("%s with a driver: %t", s.phase, w.alive)
	case slices.Contains([]phase{closing, halting}, s.phase) && !w.stopped:
		t.Fatalf("%s, but nobody has stopped the driver", s.phase)
	case s.phase == up && s.driver == nil, resting && s.driver != nil:
		t.Fatalf("%s with driver %v", s.phase, s.driver)
	case !w.alive && len(w.slots) > 0:
		t.Fatalf("%s, and still in the slot: %v", s.phase, w.slots)
	case !s.nextDue().IsZero() && w.timerAt.IsZero():
		t.Fatalf("%s waits for %v without a timer", s.phase, s.nextDue())
	case len(s.events) > maxEvents || len(s.tail.all()) > maxTail:
		t.Fatalf("%d events, %d lines", len(s.events), len(s.tail.all()))
	}
}

// poison gives the state a message it panics at, half-way.
func (w *world) poison(t *rapid.T) {
	bad := rapid.SampledFrom([]any{&msg.JoinRefused{}, &msg.ClaimRefused{}}).Draw(t, "bad")
	if w.state.phase == handshaking || w.state.phase == up {
		bad = &msg.CallFailed{Call: w.state.check.call}
	}
	before := *w.state
	before.events = slices.Clone(before.events)
	before.tail.past, before.tail.lines = slices.Clone(before.tail.past), slices.Clone(before.tail.lines)
	panicked := func() (yes bool) {
		defer func() { yes = recover() != nil }()
		w.state.Step(w.now, bad)
		return false
	}()
	if !panicked {
		t.Fatalf("%T did no harm", bad)
	}
	if !reflect.DeepEqual(before, *w.state) {
		t.Fatalf("%T changed the state:\n%+v\n%+v", bad, before, *w.state)
	}
}

// retuned is another configuration of the same connection.
func retuned(t *rapid.T) *retune {
	health := Health{Off: rapid.Bool().Draw(t, "off"), Tool: rapid.SampledFrom([]string{"", "echo", "other"}).Draw(t, "tool")}
	return &retune{Config{Slot: "s", Health: health}}
}

// wind ends the life: whatever came before, a halt comes to its end, with or without the
// driver's.
func (w *world) wind(t *rapid.T) {
	w.step(t, w.halt())
	if w.alive && !w.stuck {
		w.alive = false
		w.step(t, &msg.UpstreamEnded{Gen: w.started})
	}
	if w.alive {
		w.now = w.timerAt
		w.step(t, timerDue{w.timerGen})
	}
	if !w.ended || w.state.phase != halted {
		t.Fatalf("%s after a halt", w.state.phase)
	}
	for i, done := range w.halts {
		select {
		case <-done:
		default:
			t.Fatalf("halt %d is not done", i)
		}
	}
}

// The history and the tail are bounded, and lines are.
func TestBounds(t *testing.T) {
	m := newMachine(Config{})
	m.step(started{})
	for range 3 * maxEvents {
		m.now = m.now.Add(restartSpacing)
		m.step(&msg.RestartInstance{})
		m.step(&msg.UpstreamEnded{Gen: m.state.gen})
		m.step(&msg.UpstreamSaid{Gen: m.state.gen, Line: string(make([]byte, 2*maxTailBytes))})
	}
	for range 2 * maxTail {
		m.step(&msg.UpstreamSaid{Gen: m.state.gen, Line: string(make([]byte, 2*maxTailBytes))})
	}
	d := m.state.Describe()
	if len(d.Events) != maxEvents || len(d.Tail) != maxTail || len(d.Tail[0]) != maxTailBytes {
		t.Errorf("%d events, %d lines of %d bytes", len(d.Events), len(d.Tail), len(d.Tail[0]))
	}
}
