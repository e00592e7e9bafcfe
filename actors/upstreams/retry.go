package upstreams

import (
	"errors"
	"fmt"
	"log/slog"
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
	s.cause = n.cause
	s.note(now, "ended: "+s.lastError+"; started again at once")
	s.phase = opening
	s.attempt(now, news{})
}

// prove forgets earlier failures of an upstream that has served long enough. One
// that has passed no check has not served.
func (s *State) prove(now time.Time) (proven bool) {
	checked := s.check.passed || s.cfg.Health.Off
	if s.upSince.IsZero() || !checked || now.Sub(s.upSince) < s.cfg.MinUptime {
		return false
	}
	s.failures, s.deaths, s.spared, s.soon = 0, 0, false, soon{lost: s.soon.lost}
	return true
}

// fail counts a failed attempt and waits for the next.
func (s *State) fail(now time.Time, n news) {
	s.lastError, s.denied, s.lacking, s.cause = text(n.err), n.denied, errors.Is(n.err, msg.ErrUnresolved), n.cause
	if n.cause == msg.CauseStart {
		s.deaths = 0
	}
	if s.trySoon(now, n) {
		return
	}
	if !s.soon.counted {
		s.failures++
	}
	s.soon.counted, s.soon.lost = false, false
	s.beAbsent(publicText(n.err), s.schedule(now))
	if s.cfg.Isolated {
		failed := s.Describe()
		failed.Verdict, failed.NextRetry = s.verdictNow(), time.Time{} // for the session, not for those that come
		s.tell(s.registry, &privateFailed{at: now, instance: failed})
	}
}

// beAbsent has calls answered at once, with why and what comes next.
func (s *State) beAbsent(why, next string) {
	s.absentWhy, s.absent = why, wire.UpstreamDown(s.cfg.Slot, why, next)
	s.tell(s.registry, &msg.HolderFailed{Slot: s.cfg.Slot, Owner: s.self, Err: s.absent})
}

// schedule sets when the next attempt is made, if any, and says so to clients.
func (s *State) schedule(now time.Time) string {
	if s.exhausted() {
		s.phase = givenUp
		s.note(now, fmt.Sprintf("%s; given up after %s (maxRestarts)", s.whatFailed(), attempts(s.failures)))
		s.log(slog.LevelWarn, `[broker] upstream "%s" is given up after %s in a row (maxRestarts): %s; once the cause is removed, run: broker restart %s`,
			s.cfg.Slot, attempts(s.failures), s.lastError, s.cfg.Slot)
		return fmt.Sprintf("It was given up after %s (maxRestarts); restart it with: broker restart %s", attempts(s.failures), s.cfg.Slot)
	}
	wait := s.delay()
	s.rest(now, wait)
	s.note(now, fmt.Sprintf("%s; the next attempt is in %s", s.whatFailed(), wait))
	return s.outlook()
}

// exhausted reports that no attempt is left.
func (s *State) exhausted() bool { return s.cfg.MaxRestarts > 0 && s.failures >= s.cfg.MaxRestarts }

// rest waits for the next attempt.
func (s *State) rest(now time.Time, wait time.Duration) {
	s.phase, s.waitFrom, s.nextTry = waiting, now, now.Add(wait)
}

// delay is the wait after the last failed attempt, by the schedule.
func (s *State) delay() time.Duration {
	switch {
	case s.slotFree:
		return 0
	case s.denied, s.cause == msg.CauseSlot:
		return s.cfg.Schedule.Slow // asking again soon does not change the answer
	}
	return s.cfg.Schedule.wait(max(s.failures, 1))
}

// outlook tells clients what follows the wait. The text is repeated for as long as that
// lasts, so it names a moment and not the time that is left.
func (s *State) outlook() string {
	switch {
	case s.cfg.Isolated:
		return "A new session starts another process"
	case s.cause == msg.CauseSlot:
		return "It is started once the slot is free"
	case s.cause == msg.CauseStart:
		return fmt.Sprintf("Attempt %d failed, the next one is at %s", s.failures, moment(s.nextTry))
	}
	return fmt.Sprintf("It is started again at %s", moment(s.nextTry))
}

// moment is a time for people and models, in full seconds, never too early.
func moment(at time.Time) string {
	return at.UTC().Add(time.Second - 1).Format("2006-01-02 15:04:05 (UTC)")
}

// whatFailed begins a line of the history.
func (s *State) whatFailed() string {
	switch s.cause {
	case msg.CauseEnded:
		return "ended while it served: " + s.lastError
	case msg.CauseChecks:
		return "its connection was ended: " + s.lastError
	}
	return fmt.Sprintf("attempt %d failed: %s", s.failures, s.lastError)
}

func attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}

// freed tries again for a slot that was not to be had.
func (s *State) freed(now time.Time) {
	switch {
	case s.phase == closing && s.whyCause == msg.CauseSlot:
		s.slotFree = true
	case s.cause == msg.CauseSlot:
		s.happen(now, news{event: freed})
	}
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
	case draining:
		return true
	case closing:
		return s.byHand
	case opening, claiming, handshaking:
		return s.handMade
	}
	return s.handMade && now.Sub(s.lastTry) < restartSpacing
}
