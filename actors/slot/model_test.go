package slot

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"mcpbroker/actors/msg"
)

// TestModel drives a slot at random and checks what callers and providers can
// rely on, whatever happens:
//
//   - every call whose caller stays comes to exactly one reply or failure, and
//     none comes to two;
//   - the slot has one holder at most, and a generation is granted once to one
//     claimant;
//   - a frame of an older generation has no effect but its credit, and each
//     credit is given back exactly once;
//   - pending calls, claims and sessions stay within their bounds, and the
//     deadlines agree with the pending calls.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := newVictim(rapid.Bool().Draw(t, "relay"))
		g, m := newGenerator(), newModel(v.state)
		step := func(message any) {
			m.before(message)
			effects := v.state.Step(g.now, message)
			v.clock.arm(g.now, effects)
			m.after(t, message, effects)
			checkInvariants(t, v.state)
			g.learn(v.state, effects)
			g.lastID = v.lastID
		}
		for _, message := range g.prelude() {
			step(message)
		}
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			message := g.next(t)
			if due := v.clock.due(g.now); due != nil {
				message = due
			}
			step(message)
		}
		step(giveUp{})
		m.settled(t)
	})
}

// outcome is what has become of one call.
type outcome struct {
	answers int
	left    bool // its caller does not wait any more
}

// model is what the slot's peers know.
type model struct {
	state  *State
	calls  map[string]*outcome
	holder *ref // who was granted the slot last and has neither left nor been evicted
	gen    uint64
	claims map[*ref]bool // claimants that wait for an answer
	stale  bool          // the message at hand is of an older generation
}

func newModel(s *State) *model {
	return &model{state: s, calls: map[string]*outcome{}, claims: map[*ref]bool{}}
}

func callName(session, call uint64) string { return fmt.Sprintf("c%d #%d", session, call) }

// before notes what a message means to its sender.
func (m *model) before(message any) {
	m.stale = false
	switch it := message.(type) {
	case *msg.ClientCall:
		m.calls[callName(it.Session, it.Call)] = &outcome{}
	case *msg.CallerLeft:
		m.leave(callName(it.Session, it.Call))
	case *msg.LeaveSlot:
		m.leaveAll(fmt.Sprintf("c%d", it.Session))
	case *msg.ClaimSlot:
		m.claims[it.Claimant.(*ref)] = true
	case *msg.ProviderFrame:
		m.stale = it.Gen != m.gen || m.holder == nil
	case *msg.ProviderJunk:
		m.stale = it.Gen != m.gen || m.holder == nil
	case *msg.ProviderGone:
		if it.Gen == m.gen {
			m.holder = nil
		}
	case *msg.WithdrawClaim:
		delete(m.claims, it.Claimant.(*ref))
	}
}

func (m *model) leave(name string) {
	if o := m.calls[name]; o != nil {
		o.left = true
	}
}

func (m *model) leaveAll(client string) {
	for name, o := range m.calls {
		if name[:len(client)+1] == client+" " {
			o.left = true
		}
	}
}

func (m *model) after(t *rapid.T, message any, effects []Effect) {
	t.Helper()
	credits := 0
	for i := range effects {
		e := &effects[i]
		switch {
		case e.Credit != nil:
			credits++
		case e.To != nil:
			m.told(t, e.To.(*ref), e.Message)
		case e.Conduit != nil && (m.holder == nil || e.Conduit.(*conduit).name != m.holder.name):
			t.Fatalf("a frame goes to %s, which is not the holder", e.Conduit.(*conduit).name)
		}
	}
	want := 0
	switch message.(type) {
	case *msg.ProviderFrame, *msg.ProviderJunk:
		want = 1
	}
	if credits != want {
		t.Fatalf("%d credits given back for a %T", credits, message)
	}
	if m.stale && len(effects) != 1 {
		t.Fatalf("a stale %T had effects: %q", message, describe(m.state, effects))
	}
	if held := m.state.holder != nil; held != (m.holder != nil) || held && m.state.holder.gen != m.gen {
		t.Fatalf("the slot's holder and what providers know of it differ after %T", message)
	}
}

func (m *model) told(t *rapid.T, who *ref, message any) {
	t.Helper()
	switch it := message.(type) {
	case *msg.CallReply:
		m.answered(t, who, it.Call)
	case *msg.CallFailed:
		m.answered(t, who, it.Call)
	case *msg.EndSession:
		m.leaveAll(who.name)
	case *msg.EvictHolder:
		if m.holder != who || m.gen != it.Gen {
			t.Fatalf("%s is evicted from generation %d, which it does not hold", who.name, it.Gen)
		}
		m.holder = nil
	case *msg.ClaimGranted:
		m.granted(t, who, it.Gen)
	case *msg.ClaimRefused:
		if !m.claims[who] {
			t.Fatalf("%s is refused without having asked", who.name)
		}
	}
}

func (m *model) granted(t *rapid.T, who *ref, gen uint64) {
	t.Helper()
	again := m.holder == who && m.gen == gen
	if !again && (m.holder != nil || gen <= m.gen) {
		t.Fatalf("%s is granted generation %d while generation %d holds the slot", who.name, gen, m.gen)
	}
	if !m.claims[who] {
		t.Fatalf("%s is granted the slot without having asked", who.name)
	}
	m.holder, m.gen = who, gen
}

func (m *model) answered(t *rapid.T, who *ref, call uint64) {
	t.Helper()
	name := fmt.Sprintf("%s #%d", who.name, call)
	o := m.calls[name]
	switch {
	case o == nil:
		t.Fatalf("%s is answered but was never made", name)
	case o.left:
		t.Fatalf("%s is answered after its caller left", name)
	case o.answers > 0:
		t.Fatalf("%s is answered twice", name)
	}
	o.answers++
}

// settled: no caller waits any more.
func (m *model) settled(t *rapid.T) {
	t.Helper()
	for name, o := range m.calls {
		if o.answers == 0 && !o.left {
			t.Fatalf("%s was never answered", name)
		}
	}
}
