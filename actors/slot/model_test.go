package slot

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
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
//   - one request per URI at most is in flight to the provider, and once everybody
//     has left it holds no subscription;
//   - a call goes to a second provider only if it was never written to the first, in
//     the same order and with the same bytes, and to a third one never;
//   - a holder that is being drained gets no call of a client, and its owner hears once
//     that it owes none;
//   - an update reaches nobody who has not subscribed to its URI;
//   - a request of the provider comes to exactly one answer while it stays, and no
//     client is told of the end of one it was not asked;
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
		for _, message := range g.prelude(t) {
			step(message)
		}
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			message := g.next(t)
			if due := v.clock.due(g.now); due != nil {
				message = due
			}
			step(message)
		}
		m.desert(t, step)
		step(giveUp{})
		m.allAnswered(t)
	})
}

// outcome is what has become of one call.
type outcome struct {
	answers int
	left    bool // its caller does not wait any more
}

// model is what the slot's peers know.
type model struct {
	state   *State
	calls   map[string]*outcome
	holder  *ref // who was granted the slot last and has neither left nor been evicted
	gen     uint64
	claims  map[*ref]bool // claimants that wait for an answer
	renews  *ref          // may follow itself in the slot with another connection
	stale   bool          // the message at hand is of an older generation
	drains  uint64        // the generation that is being drained; 0 is none
	drained bool          // its owner has heard that it owes nothing

	*resources
	*deliveries
}

func newModel(s *State) *model {
	return &model{state: s, calls: map[string]*outcome{}, claims: map[*ref]bool{}, resources: newResources(), deliveries: newDeliveries()}
}

func callName(session, call uint64) string { return fmt.Sprintf("c%d #%d", session, call) }

// before notes what a message means to its sender.
func (m *model) before(message any) {
	m.stale = false
	switch it := message.(type) {
	case *msg.ClientCall:
		m.calls[callName(it.Session, it.Call)] = &outcome{}
		m.called(it)
	case *msg.CallerLeft:
		m.leave(callName(it.Session, it.Call))
	case *msg.LeaveSlot:
		m.leaveAll(fmt.Sprintf("c%d", it.Session))
	case *msg.ClaimSlot:
		m.claims[it.Claimant.(*ref)] = true
		if it.Kind == msg.Upstream {
			m.renews = it.Claimant.(*ref)
		}
	case *msg.ProviderFrame:
		if m.stale = it.Gen != m.gen || m.holder == nil; !m.stale {
			m.fromProvider(&it.Frame)
		}
	case *msg.CallCrashed:
		m.settled(it.ID)
	case *msg.ProviderRefusal:
		if m.stale = it.Gen != m.gen || m.holder == nil; !m.stale {
			id, _ := wire.ParseBrokerID(it.ID)
			m.settled(id)
		}
	case *msg.ProviderRenewed:
		m.stale = it.Gen != m.gen || m.holder == nil
	case *msg.ProviderJunk:
		m.stale = it.Gen != m.gen || m.holder == nil
	case *msg.ProviderGone:
		if it.Gen == m.gen {
			m.holder = nil
			m.lost(it.Unsent)
		}
	case *msg.DrainProvider:
		if m.stale = it.Gen != m.gen || m.holder == nil; !m.stale {
			m.drains, m.drained = it.Gen, false
		}
	case refused:
		m.lost(it.frames)
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
		case e.Conduit != nil:
			m.toProvider(t, e.Frame)
			m.deliver(t, e.Frame)
		}
	}
	want := 0
	switch message.(type) {
	case *msg.ProviderFrame, *msg.ProviderJunk, *msg.ProviderRefusal:
		want = 1
	}
	if m.drains == m.gen {
		m.undelivered(t, effects)
	}
	if credits != want {
		t.Fatalf("%d credits given back for a %T", credits, message)
	}
	if m.stale && len(effects) != credits {
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
		m.confirmed(who.name, fmt.Sprintf("%s #%d", who.name, it.Call), it.Frame)
	case *msg.Notify:
		m.notified(t, who.name, it.Frame)
	case *msg.ClientAsk:
		m.clientAsked(t, who.name, it)
	case *msg.AskCancelled:
		m.askCancelled(t, who.name, it)
	case *msg.CallFailed:
		m.answered(t, who, it.Call)
	case *msg.EndSession:
		m.leaveAll(who.name)
	case *msg.EvictHolder:
		if m.holder != who || m.gen != it.Gen {
			t.Fatalf("%s is evicted from generation %d, which it does not hold", who.name, it.Gen)
		}
		m.holder = nil
	case *msg.ProviderDrained:
		if it.Gen != m.drains || it.Gen != m.gen || m.drained {
			t.Fatalf("generation %d is drained, told before: %t", it.Gen, m.drained)
		}
		m.drained = true
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
	renewed := m.holder == who && m.renews == who
	if !again && (m.holder != nil && !renewed || gen <= m.gen) {
		t.Fatalf("%s is granted generation %d while generation %d holds the slot", who.name, gen, m.gen)
	}
	if !m.claims[who] {
		t.Fatalf("%s is granted the slot without having asked", who.name)
	}
	if !again {
		m.newProvider()
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

// allAnswered: no caller waits any more.
func (m *model) allAnswered(t *rapid.T) {
	t.Helper()
	for name, o := range m.calls {
		if o.answers == 0 && !o.left {
			t.Fatalf("%s was never answered", name)
		}
	}
}

// undelivered: the effects give the holder no call of a client.
func (m *model) undelivered(t *rapid.T, effects []Effect) {
	t.Helper()
	for i := range effects {
		if effects[i].Conduit == nil {
			continue
		}
		f := mustScan(string(effects[i].Frame))
		if name := wire.Member(f.Raw(f.Params), "name"); name != nil {
			t.Fatalf("%s is sent to a holder that is being drained", name)
		}
	}
}
