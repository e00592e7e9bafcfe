package slot

import (
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// A holder that its owner is about to take away finishes what clients have asked of it,
// and gets no more. What they call meanwhile is held back, as while an owner connects,
// and goes to the next holder. How long that may take is the owner's business.

// drain is who waits for the holder to owe clients no answer. The zero value is nobody.
type drain struct {
	owner msg.Ref
	told  bool
}

func (s *State) drainProvider(m *msg.DrainProvider) {
	if s.holder != nil && s.holder.gen == m.Gen {
		s.drain = drain{owner: m.Owner}
	}
}

// draining reports that the holder gets no new calls.
func (s *State) draining() bool { return s.drain.owner != nil }

// tellDrained ends each step: whatever it did may have been the end of the last call.
func (s *State) tellDrained() {
	if !s.draining() || s.drain.told || s.owesClients() {
		return
	}
	s.drain.told = true
	s.tell(s.drain.owner, &msg.ProviderDrained{Gen: s.holder.gen})
}

// owesClients reports calls that the holder has, or has to be asked for the sake of what
// it has. Checks do not count.
func (s *State) owesClients() bool {
	if s.queued > 0 || s.clientsQueue() {
		return true
	}
	for _, c := range s.pending {
		if c.client != nil && !c.noLoad() {
			return true
		}
	}
	return false
}

// postpone holds a call back for the next holder.
func (s *State) postpone(now time.Time, m *msg.ClientCall) {
	if s.full(m) {
		s.fail(m, wire.SlotBusy(s.name, "maxPendingPerSlot", s.cfg.MaxPending))
		return
	}
	s.hold(now, m)
}
