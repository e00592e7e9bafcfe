package slot

import (
	"slices"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// When the connection of an owner dies, a client's call of which certainly no byte
// was written waits for the next connection, ahead of what waits already, and is
// sent through it (spec 06). That happens to a call once. Whatever may have been
// written fails: nothing is ever sent twice.
//
// Other messages that were not written are dropped. What the slot asks on its own
// account it asks each provider anew. A notification tells a provider what has
// changed since its initialize, and the next provider begins with one; a
// cancellation has taken its call back by then.

// refused is the shell's word that the holder's conduit took none of these frames:
// the connection behind it is ending.
type refused struct{ frames [][]byte }

// ownersHold reports that the slot is held by its owner, who connects again.
func (s *State) ownersHold() bool {
	return s.owner != nil && s.holder != nil && s.holder.claim.Claimant == s.owner
}

// noteUnsent marks the calls whose frames were never written.
func (s *State) noteUnsent(frames [][]byte) {
	if !s.ownersHold() {
		return
	}
	for _, frame := range frames {
		f, err := wire.Scan(frame)
		if err != nil {
			continue
		}
		id, ok := wire.ParseBrokerID(f.Raw(f.ID))
		if c := s.pending[id]; ok && c != nil && c.unsent == nil && c.mayRetry() {
			c.unsent = &f
			s.undo(func() { c.unsent = nil })
		}
	}
}

// mayRetry tells whether a call may wait for another connection. The broker's own
// are about the one they were sent to.
func (c *call) mayRetry() bool {
	return c.role == clientsCall && c.client != nil && !c.init && !c.retried && !c.ours
}

// lose empties the slot after the end of its holder's connection.
func (s *State) lose(why *wire.Error, unsent [][]byte) {
	if !s.ownersHold() {
		s.detach(why)
		return
	}
	s.noteUnsent(unsent)
	held, waits := s.recall(why)
	s.held, s.waits = nil, nil
	s.detach(why)
	s.held, s.waits = held, waits
}

// recall takes back the calls that were never written, and returns them with what is
// held behind them, which was not either.
func (s *State) recall(why *wire.Error) (held []any, waits []wait) {
	s.loseAsks()
	for _, c := range s.inOrder() {
		switch {
		case c.unsent == nil:
			continue
		case c.cancelled:
			s.tell(c.client, &msg.CallFailed{Call: c.number, Err: wire.Withdrawn()})
		default:
			m := again(c)
			held = append(held, m)
			if !c.deadline.IsZero() {
				waits = append(waits, wait{m, c.deadline})
			}
		}
		s.untrack(c)
	}
	s.unholdOwn(why)
	waits = append(waits, s.waits...)
	slices.SortStableFunc(waits, func(a, b wait) int { return a.until.Compare(b.until) })
	return append(held, s.held...), waits
}

// unholdOwn ends what the broker itself would have sent: its next connection begins
// with a handshake of its own.
func (s *State) unholdOwn(why *wire.Error) {
	for _, h := range s.held {
		if m, ok := h.(*msg.ClientCall); ok && s.holdsOwn(m) {
			s.fail(m, why)
		}
	}
	s.unhold(s.holdsOwn)
}

// again is the call as its client made it, out of the frame that was not sent. The
// trace context in it stays.
func again(c *call) *msg.ClientCall {
	f, _ := wire.Scan(wire.Replace(c.unsent, c.unsent.ID, c.origID))
	if c.token != nil {
		f, _ = wire.Scan(wire.Replace(&f, f.Token, c.token))
	}
	return &msg.ClientCall{Session: c.session, Client: c.client, Call: c.number, Frame: f, For: c.behind, Retried: true, Timed: c.timed}
}

// hold keeps a call back, no longer than any other call waits.
func (s *State) hold(now time.Time, m *msg.ClientCall) {
	s.held = append(s.held, m)
	if s.cfg.RequestTimeout > 0 && !m.Timed {
		s.waits = append(s.waits, wait{m, now.Add(s.cfg.RequestTimeout)})
	}
}
