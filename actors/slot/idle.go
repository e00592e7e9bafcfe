package slot

import (
	"maps"
	"slices"
	"time"

	"mcpbroker/actors/msg"
)

// idleSince is when the clients of the slot fell idle. It is zero as long as one of
// them listens or waits, and where there is none.
func (s *State) idleSince() time.Time {
	var last time.Time
	if s.awaited() {
		return last
	}
	for _, m := range s.members {
		switch {
		case m.kind == msg.BrokerClient:
		case m.streaming:
			return time.Time{}
		case m.lastUsed.After(last):
			last = m.lastUsed
		}
	}
	return last
}

// awaited reports a client that waits for an answer. A check of the upstream, which
// is the broker's own call, is no use of the slot.
func (s *State) awaited() bool {
	if len(s.held)+len(s.initQueue)+s.queued > 0 {
		return true
	}
	for _, c := range s.pending {
		if c.client != nil && !s.ours(c.session) {
			return true
		}
	}
	return false
}

// endIdle ends the sessions of a slot nobody has used since the asker looked.
func (s *State) endIdle(now time.Time, m *msg.EndIdle) {
	since := s.idleSince()
	if since.IsZero() || since.After(m.Since) {
		s.tell(m.Asker, &msg.IdleEnded{})
		return
	}
	s.endSessions(now, m.Why)
	s.tell(m.Asker, &msg.IdleEnded{Ended: true})
}

// endSessions ends the sessions of all clients but the broker's own.
func (s *State) endSessions(now time.Time, why string) {
	for _, session := range slices.Sorted(maps.Keys(s.members)) {
		if gone := s.members[session]; gone.kind != msg.BrokerClient {
			s.tell(gone.ref, &msg.EndSession{Why: why})
			s.remove(now, gone)
		}
	}
}
