package upstreams

import (
	"errors"
	"fmt"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// tryAgain follows the end of a service. The first one is forgiven: the upstream
// is started again at once. Before that can happen again it has to prove itself.
func (s *State) tryAgain(now time.Time, n news) {
	if s.spared || n.denied {
		s.fail(now, n)
		return
	}
	s.spared = true
	s.lastError = text(n.err)
	s.note(now, "ended: "+s.lastError+"; started again at once")
	s.phase = opening
	s.attempt(now, news{})
}

// prove forgets earlier failures of an upstream that has served long enough. One
// that has passed no check has not served.
func (s *State) prove(now time.Time) (proven bool) {
	if s.upSince.IsZero() || !s.check.passed || now.Sub(s.upSince) < s.cfg.MinUptime {
		return false
	}
	s.failures, s.deaths, s.spared = 0, 0, false
	return true
}

// endService counts a service that was too short to prove anything.
func (s *State) endService(now time.Time) {
	if !s.prove(now) && !s.upSince.IsZero() {
		s.deaths++
	}
}

// fail counts a failed attempt and waits for the next.
func (s *State) fail(now time.Time, n news) {
	s.failures++
	s.lastError, s.denied, s.lacking = text(n.err), n.denied, errors.Is(n.err, msg.ErrUnresolved)
	if len(n.tail) > 0 {
		s.tail = n.tail
	}
	next := ""
	if s.cfg.MaxRestarts > 0 && s.failures >= s.cfg.MaxRestarts {
		s.phase = givenUp
		next = fmt.Sprintf("It was given up after %d attempts (maxRestarts); restart it with: broker restart %s", s.failures, s.cfg.Slot)
	} else {
		s.phase = waiting
		wait := s.cfg.Schedule.wait(s.failures)
		if s.denied {
			wait = s.cfg.Schedule.Slow // asking again soon does not change the answer
		}
		s.nextTry = now.Add(wait)
		next = fmt.Sprintf("Attempt %d failed, the next one is in %s", s.failures, wait)
	}
	s.note(now, fmt.Sprintf("attempt %d failed: %s", s.failures, s.lastError))
	s.absent = wire.UpstreamDown(s.cfg.Slot, s.lastError, next)
	s.tell(s.registry, &msg.HolderFailed{Slot: s.cfg.Slot, Owner: s.self, Err: s.absent})
}

// restartSpacing is how soon after a start by hand a second one is another restart.
const restartSpacing = time.Second

// restartByHand makes the connection again, whatever the schedule. However many
// ask at once, it is made again once.
func (s *State) restartByHand(now time.Time) {
	if s.restarting(now) {
		return
	}
	s.note(now, "restart asked for by an operator")
	s.happen(now, news{event: restart, err: errors.New("it is being restarted by an operator")})
}

// restarting tells whether a restart by hand is under way, or its start so recent
// that one asked for now is the same.
func (s *State) restarting(now time.Time) bool {
	switch s.phase {
	case closing:
		return s.byHand
	case opening, claiming, handshaking:
		return s.handMade
	}
	return s.handMade && now.Sub(s.lastTry) < restartSpacing
}
