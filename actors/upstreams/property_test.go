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
	drains  uint64          // the generation whose calls are waited for
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
	switch rapid.IntRange(0, 16).Draw(t, "message") {
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
		answers := []string{`{"id":1,"result":{}}`, `{"id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}`, `{"id":1,"error":{}}`, `{"id":1,"result":{"isError":true}}`, `{`}
		return &msg.CallReply{Call: w.state.lastCall, Frame: []byte(rapid.SampledFrom(answers).Draw(t, "answer"))}
	case 8:
		return &msg.CallFailed{Call: w.state.lastCall, Err: &wire.Error{Message: "no", Busy: rapid.Bool().Draw(t, "busy")}}
	case 9:
		return &msg.SlotJoined{Ref: &ref{"slot"}}
	case 10:
		return rapid.SampledFrom([]any{&msg.SlotLost{}, &msg.SlotReplaced{}, &msg.JoinRefused{Err: &wire.Error{Message: "no"}}, &msg.ClientAsk{ID: 1}, &msg.SlotFree{}, w.retuned(t)}).Draw(t, "slot")
	case 11:
		if gen := w.state.slotGen; w.slots[gen] {
			delete(w.slots, gen)
			return &msg.EvictHolder{Gen: gen}
		}
	case 12:
		return &msg.RestartInstance{}
	case 16:
		if w.slots[w.drains] {
			return &msg.ProviderDrained{Gen: w.drains}
		}
	case 13:
		return rapid.SampledFrom([]any{&msg.UpstreamOpened{Gen: stale, Driver: &driver{stale}}, &msg.UpstreamEnded{Gen: stale}, timerDue{0}, &msg.ProviderDrained{Gen: w.state.slotGen + 1}, &msg.EvictHolder{Gen: 1 << 40}}).Draw(t, "stale")
	case 14:
		return &msg.UpstreamSaid{Gen: w.started, Line: "line"}
	case 15:
		if rapid.IntRange(0, 9).Draw(t, "halt") == 0 {
			return w.halt(rapid.Bool().Draw(t, "at once"))
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

func (w *world) halt(atOnce bool) any {
	done := make(chan struct{})
	w.halts = append(w.halts, done)
	return haltNow{done: done, atOnce: atOnce}
}

// step plays a message and keeps count.
func (w *world) step(t *rapid.T, message any) {
	t.Helper()
	if m, ok := message.(*retune); ok {
		defer w.checkRetuned(t, *w.state, m)
	}
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
	case *msg.DrainProvider:
		if !w.slots[m.Gen] || m.Gen == w.drains {
			t.Fatalf("gen %d is drained twice, or is not held", m.Gen)
		}
		w.drains = m.Gen
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
	case slices.Contains([]phase{draining, parting}, s.phase) && (w.stopped || !w.slots[w.drains]):
		t.Fatalf("%s, but not in the slot, or the driver was stopped: %t", s.phase, w.stopped)
	case s.phase == up && s.driver == nil, resting && s.driver != nil:
		t.Fatalf("%s with driver %v", s.phase, s.driver)
	case !w.alive && len(w.slots) > 0:
		t.Fatalf("%s, and still in the slot: %v", s.phase, w.slots)
	case !s.nextDue().IsZero() && w.timerAt.IsZero():
		t.Fatalf("%s waits for %v without a timer", s.phase, s.nextDue())
	case s.verdict == msg.Failed && (s.phase == up || s.lastError == ""):
		t.Fatalf("%s and in error: %q", s.phase, s.lastError)
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
func (w *world) retuned(t *rapid.T) *retune {
	some := func(name string, times ...time.Duration) time.Duration { return rapid.SampledFrom(times).Draw(t, name) }
	return &retune{Config{
		Slot: "s", Kind: w.state.cfg.Kind,
		MaxRestarts:  rapid.IntRange(0, 4).Draw(t, "maxRestarts"),
		Schedule:     Schedule{First: some("first", 0, time.Second, time.Hour), Quick: rapid.IntRange(0, 3).Draw(t, "quick"), Slow: some("slow", 0, 2*time.Second, time.Hour)},
		MinUptime:    some("minUptime", 0, time.Second),
		StartTimeout: some("startTimeout", 0, 5*time.Second, time.Hour),
		Health: Health{
			Off: rapid.Bool().Draw(t, "off"), Tool: rapid.SampledFrom([]string{"", "echo", "other"}).Draw(t, "tool"),
			Interval: some("interval", 0, time.Second), Timeout: some("timeout", 0, time.Second), Threshold: rapid.IntRange(0, 2).Draw(t, "threshold"),
		},
	}}
}

// checkRetuned: other settings count in every phase, and put off no attempt that was
// announced.
func (w *world) checkRetuned(t *rapid.T, before State, m *retune) {
	s, cfg := w.state, m.cfg.withDefaults()
	switch before.phase {
	case givenUp:
		if more := cfg.MaxRestarts == 0 || cfg.MaxRestarts > before.failures; more != (s.phase == opening) {
			t.Fatalf("%s after %d failures with maxRestarts %d", s.phase, before.failures, cfg.MaxRestarts)
		}
	case waiting:
		wait := cfg.Schedule.wait(max(before.failures, 1))
		if before.denied || before.cause == msg.CauseSlot {
			wait = cfg.Schedule.Slow
		}
		want := before.nextTry
		if at := before.waitFrom.Add(wait); at.Before(want) {
			want = at
		}
		if s.phase == waiting && !(s.nextTry.Equal(want) || before.slotFree && !s.nextTry.After(before.nextTry)) {
			t.Fatalf("the next attempt is at %v, not at %v", s.nextTry, want)
		}
		if s.phase == opening && want.After(w.now) && !before.slotFree {
			t.Fatalf("started before %v", want)
		}
	case opening, claiming, handshaking:
		if due := s.nextDue(); due.After(s.lastTry.Add(cfg.StartTimeout)) {
			t.Fatalf("%s until %v", s.phase, due)
		}
	}
}

// wind ends the life: whatever came before, a halt comes to its end in bounded time, with
// or without the driver's, and the word of the slot.
func (w *world) wind(t *rapid.T) {
	w.step(t, w.halt(false))
	bound := w.now.Add(drainTime + w.state.cfg.Grace + lastWord)
	if w.slots[w.drains] && rapid.Bool().Draw(t, "drained") {
		w.step(t, &msg.ProviderDrained{Gen: w.drains})
	}
	if w.alive && !w.stuck {
		w.alive = false
		w.step(t, &msg.UpstreamEnded{Gen: w.started})
	}
	for w.alive && !w.timerAt.After(bound) {
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
