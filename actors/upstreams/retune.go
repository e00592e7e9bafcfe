package upstreams

import (
	"fmt"
	"time"

	"mcpbroker/actors/msg"
)

// retune is another configuration of the same connection.
type retune struct{ cfg Config }

// ControlMessage implements rt.Control.
func (*retune) ControlMessage() {}

// retune takes it over, in every phase: what is being waited for is waited for by the
// new settings.
func (s *State) retune(now time.Time, cfg Config) {
	before := s.cfg
	s.cfg = cfg.withDefaults()
	switch {
	case s.phase == givenUp && !s.exhausted():
		s.note(now, "maxRestarts was changed: it is tried again")
		s.happen(now, news{event: allowed})
	case s.phase == waiting:
		s.hasten(now)
	}
	if s.cfg.Health != before.Health {
		s.checkAnew(now)
	}
}

// hasten moves the next attempt to the time it has by another schedule, unless that is
// later: nobody who was told of an attempt waits for it any longer.
func (s *State) hasten(now time.Time) {
	at := s.waitFrom.Add(s.delay())
	switch {
	case !at.Before(s.nextTry):
		return
	case !at.After(now):
		s.happen(now, news{event: due})
		return
	}
	s.nextTry = at
	s.note(now, fmt.Sprintf("its schedule was changed: the next attempt is in %s", at.Sub(now)))
	if s.absent != nil {
		s.beAbsent(s.absentWhy, s.outlook())
	}
}

// checkAnew begins with another health check.
func (s *State) checkAnew(now time.Time) {
	s.remedy = remedy{}
	if s.phase != up {
		return
	}
	if s.check.call != 0 {
		s.tell(s.slot, &msg.CallerLeft{Session: s.session, Call: s.check.call})
	}
	s.check = check{toolless: s.check.toolless, first: true}
	if !s.cfg.Health.Off {
		s.check.next = now
	}
	s.lastError = ""
	s.note(now, fmt.Sprintf("its health check was changed: %s", s.subject()))
}
