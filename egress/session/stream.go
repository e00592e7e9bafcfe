package session

import (
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
)

// Bounds of the history from which a stream is served and resumed.
const (
	HistoryEvents = 1000
	HistoryBytes  = 256 << 10
)

// event is one message on the session's stream.
type event struct {
	id    uint64
	frame []byte
	class mcp.Class
	key   string
}

// history keeps the last events of a session, delivered or not. It is a queue of
// at most HistoryEvents events and HistoryBytes bytes; the newest event always
// fits.
type history struct {
	events    []event
	bytes     int
	lastID    uint64
	delivered uint64 // id of the last event a stream has taken
}

// add appends a message. One that replaces an undelivered event of its key takes
// that event's place in the account, not in the order.
func (h *history) add(frame []byte, class mcp.Class, key string) *event {
	if class == mcp.Coalesced {
		h.forget(key)
	}
	h.lastID++
	h.events = append(h.events, event{h.lastID, frame, class, key})
	h.bytes += len(frame)
	drop := 0
	for drop < len(h.events)-1 && (len(h.events)-drop > HistoryEvents || h.bytes > HistoryBytes) {
		h.bytes -= len(h.events[drop].frame)
		h.events[drop] = event{}
		drop++
	}
	h.events = h.events[drop:]
	return &h.events[len(h.events)-1]
}

func (h *history) forget(key string) {
	for i := range h.events {
		if e := &h.events[i]; e.id > h.delivered && e.class == mcp.Coalesced && e.key == key {
			h.bytes -= len(e.frame)
			h.events = append(h.events[:i], h.events[i+1:]...)
			return
		}
	}
}

// after lists the events behind id.
func (h *history) after(id uint64) []event {
	for i := range h.events {
		if h.events[i].id > id {
			return h.events[i:]
		}
	}
	return nil
}

// deliver puts a message into the history and on the stream, if one is open. On a
// transport that cannot resume there is nothing to keep it for.
func (s *State) deliver(frame []byte, class mcp.Class, key string) {
	if !s.cfg.Resumable {
		if s.stream != nil {
			s.effects = append(s.effects, Effect{Stream: s.stream, Event: &event{0, frame, class, key}})
		}
		return
	}
	e := s.history.add(frame, class, key)
	if s.stream != nil {
		s.send(*e)
	}
}

func (s *State) send(e event) {
	s.history.delivered = e.id
	s.effects = append(s.effects, Effect{Stream: s.stream, Event: &e})
}

// streamOpened ends the older stream and serves the new one: from the event the
// client names, else from the first one no stream has taken.
func (s *State) streamOpened(m *msg.StreamOpened) {
	if s.stream != nil {
		s.effects = append(s.effects, Effect{Stream: s.stream})
	}
	s.stream = m.Stream
	if s.slot != nil {
		s.tell(s.slot, &msg.StreamChanged{Session: s.cfg.Number, Open: true})
	}
	from := s.history.delivered
	if m.Resume {
		from = min(m.LastEvent, s.history.lastID)
	}
	for _, e := range s.history.after(from) {
		s.send(e)
	}
}

func (s *State) streamGone(m *msg.StreamGone) {
	if s.stream != m.Stream {
		return
	}
	s.stream = nil
	if s.slot != nil {
		s.tell(s.slot, &msg.StreamChanged{Session: s.cfg.Number, Open: false})
	}
}

func (s *State) used(now time.Time) { s.lastUsed = now }

func (s *State) armIdle(after time.Duration) {
	if s.cfg.IdleTimeout > 0 {
		s.effects = append(s.effects, Effect{Idle: after, IdleSince: s.lastUsed})
	}
}

// idleDue ends a session nobody used since the timer was armed. An open stream
// and a call in flight are use.
func (s *State) idleDue(now time.Time, m *msg.IdleDue) {
	if s.stream != nil || len(s.calls) > 0 {
		s.lastUsed = now
	}
	idle := now.Sub(s.lastUsed)
	if idle >= s.cfg.IdleTimeout {
		s.end(nil)
		return
	}
	s.armIdle(s.cfg.IdleTimeout - idle)
}
