package upstreams

import (
	"fmt"
	"time"
)

// timer acts on what has come due.
func (s *State) timer(now time.Time, m timerDue) {
	if m.gen != s.timerGen {
		return
	}
	s.armed = time.Time{}
	next := s.nextDue()
	if next.IsZero() || now.Before(next) {
		return
	}
	switch {
	case s.phase == draining, s.phase == parting:
		s.happen(now, news{event: overdue})
	case s.phase == closing, s.phase == halting:
		s.happen(now, news{event: overdue, err: s.overtime()})
	case s.phase == waiting:
		s.happen(now, news{event: due})
	case s.phase == up && s.check.call != 0:
		s.checkTimedOut(now)
	case s.phase == up:
		s.beginCheck(now)
	case s.phase == handshaking && now.Before(s.startDue()):
		s.check.next = time.Time{}
		s.greet(now)
	default:
		s.happen(now, news{event: rejected, err: s.quoteStray(s.tooSlow())})
	}
}

// nextDue is when the present phase needs the clock; zero is never.
func (s *State) nextDue() time.Time {
	switch s.phase {
	case waiting:
		return s.nextTry
	case handshaking:
		if next := s.check.next; !next.IsZero() && next.Before(s.startDue()) {
			return next
		}
		return s.startDue()
	case opening, claiming:
		return s.startDue()
	case draining, parting:
		return s.drainBy
	case closing, halting:
		return s.stopBy
	case up:
		if s.check.call != 0 {
			return s.check.deadline
		}
		return s.check.next
	}
	return time.Time{}
}

// startDue is when the present attempt has taken too long.
func (s *State) startDue() time.Time { return s.lastTry.Add(s.cfg.StartTimeout) }

func (s *State) tooSlow() error {
	if s.phase == handshaking {
		return slowError(fmt.Sprintf("it did not answer initialize within %s", s.cfg.StartTimeout))
	}
	return slowError(fmt.Sprintf("it did not start within %s", s.cfg.StartTimeout))
}

// slowError is a start that took longer than StartTimeout.
type slowError string

func (e slowError) Error() string { return string(e) }

// wake arms the timer for what comes due first.
func (s *State) wake(now time.Time) {
	next := s.nextDue()
	if next.IsZero() || next.Equal(s.armed) {
		return
	}
	s.armed = next
	s.timerGen++
	s.effects = append(s.effects, Effect{Wake: max(next.Sub(now), 0), WakeGen: s.timerGen})
}
