package session

import (
	"bytes"

	"mcpbroker/actors/msg"
)

// Drain asks a session to end as soon as the client has the answers it waits for
// (spec 01 5.12). Until then new requests are refused; all else goes on, so that
// a client can still cancel a call, and answer what the provider asks about one.
type Drain struct{}

// ControlMessage implements rt.Control: a flood of calls must not lose the stop.
func (*Drain) ControlMessage() {}

// checkDrained ends a draining session that owes nothing.
func (s *State) checkDrained() {
	if s.draining && !s.ended && !s.owes() {
		s.end(nil)
	}
}

// owes tells whether the client waits for an answer, or the slot for a message.
func (s *State) owes() bool {
	for _, c := range s.calls {
		if !c.disowned {
			return true
		}
	}
	return len(s.waiting) > 0
}

// disown: the client does not want the answer to id any more, and a provider
// need not send one.
func (s *State) disown(id []byte) {
	for _, c := range s.calls {
		if len(id) > 0 && bytes.Equal(c.id, id) {
			c.disowned = true
		}
	}
}

func (s *State) end(done chan<- struct{}) {
	s.ended = true
	told := map[msg.Sink]bool{}
	for _, c := range s.calls {
		if !told[c.sink] {
			told[c.sink] = true
			s.effects = append(s.effects, Effect{Sink: c.sink, Tell: Closed})
		}
	}
	s.calls, s.waiting = nil, nil
	if s.stream != nil {
		s.effects = append(s.effects, Effect{Stream: s.stream})
		s.stream = nil
	}
	// First: a session its slot does not count any more is given no more messages.
	s.effects = append(s.effects, Effect{Gone: true})
	switch leave := (&msg.LeaveSlot{Slot: s.cfg.Slot, Session: s.cfg.Number}); {
	case s.slot != nil:
		s.tell(s.slot, leave)
	case s.joining:
		s.tell(s.registry, leave)
	}
	if done != nil {
		s.effects = append(s.effects, Effect{Done: done})
	}
	s.effects = append(s.effects, Effect{Stop: true})
}
