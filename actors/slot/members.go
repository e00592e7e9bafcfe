package slot

import (
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

func (s *State) join(now time.Time, m *msg.JoinSlot) {
	if s.members[m.Session] != nil {
		s.tell(m.Client, &msg.SlotJoined{Ref: s.self, Session: m.Session})
		return
	}
	ours := m.Kind == msg.BrokerClient
	if !ours && s.callers() >= s.cfg.MaxSessions && !s.makeRoom(now) {
		s.tell(m.Client, &msg.JoinRefused{Err: wire.TooManySessions(s.name, s.cfg.MaxSessions)})
		return
	}
	added := &member{ref: m.Client, session: m.Session, kind: m.Kind, lastUsed: now}
	if s.members == nil {
		s.members = map[uint64]*member{}
	}
	s.members[m.Session] = added
	s.undo(func() { delete(s.members, m.Session) })
	s.tell(m.Client, &msg.SlotJoined{Ref: s.self, Session: m.Session})
	if ours {
		s.reserved++
		return
	}
	if s.callers() == 1 {
		s.changed()
	}
}

// callers is how many clients the slot has. The reserved slots are none: they
// neither keep a slot alive nor take the place of a client.
func (s *State) callers() int { return len(s.members) - s.reserved }

// makeRoom ends the session that has been idle longest and has no stream.
func (s *State) makeRoom(now time.Time) bool {
	var oldest *member
	for _, m := range s.members {
		if !m.streaming && m.kind != msg.BrokerClient && (oldest == nil || m.idleLonger(oldest)) {
			oldest = m
		}
	}
	if oldest == nil {
		return false
	}
	s.tell(oldest.ref, &msg.EndSession{Why: "maxSessionsPerSlot"})
	s.remove(now, oldest)
	return true
}

func (m *member) idleLonger(other *member) bool {
	return m.lastUsed.Before(other.lastUsed) || m.lastUsed.Equal(other.lastUsed) && m.session < other.session
}

func (s *State) leave(now time.Time, m *msg.LeaveSlot) {
	if gone := s.members[m.Session]; gone != nil {
		s.remove(now, gone)
	}
}

func (s *State) remove(now time.Time, gone *member) {
	delete(s.members, gone.session)
	s.undo(func() { s.members[gone.session] = gone })
	for _, c := range s.inOrder() {
		if c.session == gone.session && c.client != nil {
			s.leaveCall(c)
		}
	}
	s.initQueue = without(s.initQueue, func(q *msg.ClientCall) bool { return q.Session == gone.session })
	s.unhold(func(h any) bool {
		switch h := h.(type) {
		case *msg.ClientCall:
			return h.Session == gone.session
		case *msg.ClientNote:
			return h.Session == gone.session
		}
		return false
	})
	s.leaveSubscriptions(now, gone.session)
	if gone.kind == msg.BrokerClient {
		s.reserved--
		return
	}
	if s.callers() == 0 {
		s.changed()
	}
}

// touch comes last in a step, behind everything that may fail, and so needs no
// undo.
func (s *State) touch(session uint64, now time.Time) {
	if m := s.members[session]; m != nil {
		m.lastUsed = now
	}
}

func (s *State) streamChanged(now time.Time, m *msg.StreamChanged) {
	if member := s.members[m.Session]; member != nil {
		before := member.streaming
		member.streaming = m.Open
		s.undo(func() { member.streaming = before })
	}
	s.touch(m.Session, now)
	if s.lastGen == 0 {
		s.changed() // whether it may be asked to end, see msg.SlotInfo.Unserved
	}
}

// broadcast sends a notification of the provider to every session. They share
// one message.
func (s *State) broadcast(f *wire.Frame) {
	note := notification(f)
	for _, m := range s.members {
		s.tell(m.ref, note)
	}
}

// without returns list less what matches. The list is copied: a rolled back step
// must find the old one unchanged.
func without[T any](list []T, match func(T) bool) []T {
	for i := range list {
		if !match(list[i]) {
			continue
		}
		kept := append([]T(nil), list[:i]...)
		for _, item := range list[i+1:] {
			if !match(item) {
				kept = append(kept, item)
			}
		}
		return kept
	}
	return list
}
