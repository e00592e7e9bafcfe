package slot

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// TestPanicLeavesNoTrace: a message whose handling panics half-way changes
// nothing and sends nothing; the steps after it are those of a twin that never
// failed.
func TestPanicLeavesNoTrace(t *testing.T) {
	panics := 0
	rapid.Check(t, func(t *rapid.T) {
		relay := rapid.Bool().Draw(t, "relay")
		hit, twin := newVictim(relay), newVictim(relay)
		g := newGenerator()
		for _, message := range g.prelude(t) {
			hit.effects, twin.effects = hit.step(g.now, message), twin.step(g.now, message)
			compare(t, hit, twin)
			g.learn(hit.state, hit.state.effects)
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			message := g.next(t)
			if due := hit.clock.due(g.now); due != nil {
				message = due
			}
			if bad := hit.poison(t); bad != nil {
				panics++
				if !hit.panics(t, g.now, bad) {
					t.Fatalf("the poisoned %T did no harm", bad)
				}
			}
			hit.rollback(t, g.now, message)
			hit.fuse = rapid.IntRange(0, 3).Draw(t, "fuse")
			if hit.panics(t, g.now, message) {
				panics++
				hit.effects = hit.step(g.now, message)
			}
			twin.effects = twin.step(g.now, message)
			compare(t, hit, twin)
			g.learn(hit.state, hit.state.effects)
			g.lastID = hit.lastID
		}
	})
	if panics == 0 && !t.Failed() {
		t.Error("nothing panicked")
	}
}

func compare(t *rapid.T, hit, twin *victim) {
	t.Helper()
	if diff := cmp.Diff(twin.effects, hit.effects); diff != "" {
		t.Fatalf("effects differ from the twin's (-twin +hit):\n%s", diff)
	}
	if diff := cmp.Diff(snapshot(twin.state), snapshot(hit.state)); diff != "" {
		t.Fatalf("state differs from the twin's (-twin +hit):\n%s", diff)
	}
	checkInvariants(t, hit.state)
}

// victim is a state that can be made to fail: by a frame whose spans lie outside
// it, or where it asks for its n-th next id.
type victim struct {
	state   *State
	clock   clock
	lastID  uint64
	fuse    int // ids until the panic; 0 is never
	effects []string
}

func newVictim(relay bool) *victim {
	v := &victim{}
	v.state = New("s", Config{
		RequestTimeout: 3 * time.Second, HeartbeatInterval: 8 * time.Second, Takeover: Always,
		RelayInitialize: relay, RelayRequests: true, MaxPending: 6, MaxSessions: 3,
		MaxSubscriptionsPerClient: 2, MaxSubscriptionsPerSlot: 5,
		MayRead: mayRead,
		NextID: func() uint64 {
			if v.fuse--; v.fuse == 0 {
				panic("no more ids")
			}
			v.lastID++
			return v.lastID
		},
	})
	v.state.self = &ref{"slot"}
	return v
}

// mayRead takes session 3 off u:b with the first update.
func mayRead(session uint64, uri string) bool { return session != 3 || uri != "u:b" }

func (v *victim) step(now time.Time, message any) []string {
	effects := v.state.Step(now, message)
	v.clock.arm(now, effects)
	return describe(v.state, effects)
}

// panics steps and reports whether that failed. If so, the state must be what it
// was; if not, the step counts.
func (v *victim) panics(t *rapid.T, now time.Time, message any) (panicked bool) {
	t.Helper()
	before, id := snapshot(v.state), v.lastID
	defer func() {
		v.fuse = 0
		if recover() == nil {
			return
		}
		panicked = true
		v.lastID = id
		if n := len(v.state.effects); n != 0 {
			t.Fatalf("%d effects escaped from %T", n, message)
		}
		if diff := cmp.Diff(before, snapshot(v.state)); diff != "" {
			t.Fatalf("the state remembers the %T that failed (-before +after):\n%s", message, diff)
		}
		checkInvariants(t, v.state)
	}()
	v.effects = v.step(now, message)
	return false
}

// rollback handles a message to the end and fails only then: every change any
// step makes must be undone. Only the touch of a session is exempt, which comes
// behind all that may fail.
func (v *victim) rollback(t *rapid.T, now time.Time, message any) {
	t.Helper()
	s, id, before := v.state, v.lastID, snapshot(v.state)
	used := map[uint64]time.Time{}
	for id, m := range s.members {
		used[id] = m.lastUsed
	}
	saved := s.vars
	s.begin()
	s.handle(now, message)
	s.wake(now)
	s.rollback(saved)
	for id, m := range s.members {
		m.lastUsed = used[id]
	}
	v.lastID, v.fuse = id, 0
	if diff := cmp.Diff(before, snapshot(s)); diff != "" {
		t.Fatalf("the rolled back %T left a trace (-before +after):\n%s", message, diff)
	}
	checkInvariants(t, s)
}

// poison makes up a message that is bound to fail in the present state, nil when
// there is none.
func (v *victim) poison(t *rapid.T) any {
	s := v.state
	if s.holder == nil {
		return nil
	}
	switch calls := s.inOrder(); rapid.IntRange(0, 6).Draw(t, "poison") {
	case 1:
		return v.poisonedCall()
	case 2: // fails when the client's id is put back, the call untracked already
		for _, c := range calls {
			if c.client != nil {
				return v.beyond(fmt.Sprintf(`{"result":{},"id":"brk-%d"}`, c.id), func(f *wire.Frame) wire.Span { return f.ID })
			}
		}
	case 3: // fails when the client's token is put back, the deadline moved already
		for _, c := range calls {
			if c.token != nil {
				return v.beyond(fmt.Sprintf(`{"method":"notifications/progress","params":{"progressToken":"brk-%d"}}`, c.id),
					func(f *wire.Frame) wire.Span { return f.Progress })
			}
		}
	case 4: // fails when a refused subscriber's id is put back, the URI inactive already
		for _, c := range calls {
			if sub := s.subs[c.about]; c.role == subscribeCall && sub.queue[0].wants() {
				return v.beyond(fmt.Sprintf(`{"error":{},"id":"brk-%d"}`, c.id), func(f *wire.Frame) wire.Span { return f.ID })
			}
		}
	case 5: // fails when the broker's id is put in, the question tracked already
		if _, err := s.askee([]byte("roots/list")); err == nil && len(s.asks) < s.cfg.MaxPending {
			return v.beyond(`{"method":"roots/list","id":"bad"}`, func(f *wire.Frame) wire.Span { return f.ID })
		}
	case 6: // fails when the client's answer is given the provider's id
		for _, a := range s.asksInOrder() {
			f := v.beyond(fmt.Sprintf(`{"result":{},"id":"brk-%d"}`, a.id), func(f *wire.Frame) wire.Span { return f.ID }).Frame
			return &msg.ClientAnswer{Session: a.session, Frame: f}
		}
	}
	return nil
}

// beyond returns a provider's frame that ends before the span in question, which
// can still be read but not be spliced.
func (v *victim) beyond(text string, at func(*wire.Frame) wire.Span) *msg.ProviderFrame {
	f := mustScan(text)
	f.Bytes = append([]byte(nil), f.Bytes...)[:at(&f).Start]
	return &msg.ProviderFrame{Gen: v.state.holder.gen, Frame: f, Credit: &credit{"bad"}}
}

// poisonedCall fails when the trace context is inserted, the call tracked already.
func (v *victim) poisonedCall() any {
	s := v.state
	if s.holding() || s.draining() || len(s.members) == 0 || s.load() >= s.cfg.MaxPending {
		return nil
	}
	m := s.members[slices.Min(slices.Collect(maps.Keys(s.members)))]
	f := mustScan(`{"jsonrpc":"2.0","id":1,"method":"m","params":{}}`)
	f.Params = wire.Span{Start: 1 << 20, End: 1<<20 + 5}
	return &msg.ClientCall{Session: m.session, Client: m.ref, Call: 1 << 20, Frame: f, Trace: trace}
}
