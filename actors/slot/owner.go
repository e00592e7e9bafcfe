package slot

import (
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// The slot of an upstream has an owner, which connects, waits and connects again.
// While it connects, calls are held back; while it waits they are answered at
// once, with what the owner knows about the cause.

// upstreamPatience is how long calls wait for the answer to a replayed initialize
// of a process that has just been started.
const upstreamPatience = 30 * time.Second

// ownedBy gives the slot to an owner. Calls held for the last one are held for
// this one: it takes the other's place.
func (s *State) ownedBy(m *msg.OwnSlot) {
	s.owner, s.absent = m.Owner, nil
	s.refuseOthers()
}

// refuseOthers answers the claims that waited for the slot before it had an owner.
func (s *State) refuseOthers() {
	foreign := func(c *msg.ClaimSlot) bool { return c.Claimant != s.owner }
	for _, d := range s.deciding {
		if foreign(d.claim) {
			s.refuse(d.claim, managed(d.claim))
		}
	}
	for _, w := range s.waiting {
		s.refuse(w, managed(w))
	}
	s.deciding = without(s.deciding, func(d decision) bool { return foreign(d.claim) })
	s.waiting = nil
}

func managed(c *msg.ClaimSlot) *msg.ClaimRefused {
	return c.Refused(wire.ManagedSlot(c.Slot), "managed by an upstream")
}

func (s *State) disowned(m *msg.DisownSlot) {
	if s.owner != m.Owner {
		return
	}
	if s.holder == nil {
		s.failHeld(wire.NotConnected(s.name))
	}
	s.owner, s.expected, s.rejoins, s.absent = nil, false, false, nil
	s.changed()
}

func (s *State) holderExpected(m *msg.HolderExpected) {
	if s.owner == m.Owner && s.holder == nil && !s.expected {
		s.expected = true
		s.changed()
	}
}

// holderFailed: what the owner says counts as well while somebody else, who was
// there before it, holds the slot.
func (s *State) holderFailed(m *msg.HolderFailed) {
	if s.owner != m.Owner {
		return
	}
	awaited := s.expected
	s.expected, s.rejoins, s.absent = false, false, m.Err
	if s.holder == nil {
		s.failHeld(m.Err)
	}
	if awaited {
		s.changed()
	}
}

// wait is a call that is held back, and no longer than any other call.
type wait struct {
	call  *msg.ClientCall
	until time.Time
}

// unserved handles a call while nobody holds the slot.
func (s *State) unserved(now time.Time, m *msg.ClientCall) {
	switch {
	case s.expected:
		s.postpone(now, m)
	case s.absent != nil:
		s.fail(m, s.absent)
	default:
		s.fail(m, wire.NotConnected(s.name))
	}
}

// failHeld answers the calls held back with err.
func (s *State) failHeld(err *wire.Error) {
	for _, m := range s.held {
		if m, ok := m.(*msg.ClientCall); ok {
			s.fail(m, err)
		}
	}
	s.held, s.waits = nil, nil
}

// unhold takes back what is held and matches: nobody waits for it.
func (s *State) unhold(match func(any) bool) {
	s.held = without(s.held, match)
	s.waits = without(s.waits, func(w wait) bool { return match(w.call) })
}

// expireWaits answers the calls that were held back for too long.
func (s *State) expireWaits(now time.Time) {
	for len(s.waits) > 0 && !s.waits[0].until.After(now) {
		late := s.waits[0].call
		s.unhold(func(h any) bool { return h == any(late) })
		s.fail(late, wire.NoAnswer(s.name, s.cfg.RequestTimeout))
	}
}

// patience is how long calls are held back behind a replayed initialize.
func (s *State) patience() time.Duration {
	if s.holder.claim.Kind == msg.Upstream {
		return upstreamPatience
	}
	return replayPatience
}

// resume sends on one call or notification that was held back.
func (s *State) resume(now time.Time, held any) {
	switch m := held.(type) {
	case *msg.ClientNote:
		s.relayNote(m)
	case *msg.ClientCall:
		isInit := string(m.Frame.Method) == mcp.Initialize
		switch {
		case isSubscription(m.Frame.Method):
			s.subscriptionCall(now, m)
		case isInit && !s.cfg.RelayInitialize:
			s.initialize(now, m)
		default:
			s.relay(now, m, isInit)
		}
	}
}
