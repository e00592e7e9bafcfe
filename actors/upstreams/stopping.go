package upstreams

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"mcpbroker/actors/msg"
)

// lastWord is how long a driver has, behind its grace, to say that it has ended. One
// that says nothing is given up: nobody waits for ever for a process that cannot be
// ended.
const lastWord = 5 * time.Second

// closed is the end of a driver that was told to stop.
func (s *State) closed(now time.Time, n news) {
	why, byHand, served := s.why, s.byHand, !s.upSince.IsZero()
	cause := s.whyCause
	s.lose(n)
	switch {
	case byHand:
		s.attempt(now, news{})
		return
	case served && !n.denied:
		s.tryAgain(now, news{err: why, cause: cause})
		return
	}
	if cause == msg.CauseEnded {
		cause = msg.CauseStart // it had not begun to serve
	}
	denied := s.denied || n.denied
	if n.denied && n.err != nil {
		why = n.err
	}
	s.fail(now, news{err: why, denied: denied, cause: cause})
}

// stopDriver ends a connection; why it is not wanted any more is the outcome of
// the attempt.
func (s *State) stopDriver(now time.Time, n news) {
	s.why, s.denied, s.byHand, s.whyCause = n.err, n.denied, n.event == restart, cmp.Or(n.cause, causeOf(n.event))
	s.stopBy = now.Add(s.cfg.Grace + lastWord)
	s.prove(now)
	if !s.ending() && s.startsAtOnce() {
		s.tell(s.registry, &msg.HolderExpected{Slot: s.cfg.Slot, Owner: s.self})
	}
	if s.driver == nil {
		s.effects = append(s.effects, Effect{Cancel: true})
		return
	}
	s.effects = append(s.effects, Effect{Driver: s.driver, Grace: s.cfg.Grace})
}

// stopOpened stops a driver that opened after it had been given up.
func (s *State) stopOpened(_ time.Time, n news) {
	s.pid = n.pid
	s.effects = append(s.effects, Effect{Driver: s.driver, Grace: s.cfg.Grace})
}

// startsAtOnce tells whether the end of the driver is followed by a start, and not
// by a wait: calls that come meanwhile are held back.
func (s *State) startsAtOnce() bool { return s.byHand || !s.upSince.IsZero() && !s.spared }

// startAgain makes the attempt that follows a stop under way the operator's.
func (s *State) startAgain(time.Time, news) {
	s.byHand = true
	s.tell(s.registry, &msg.HolderExpected{Slot: s.cfg.Slot, Owner: s.self})
}

func (s *State) leaveAndStop(now time.Time, n news) {
	s.leave(n)
	s.stopDriver(now, n)
}

// abandon goes on without a driver that does not end. Should it say something after all,
// it is of an older generation.
func (s *State) abandon(now time.Time, n news) {
	s.log(slog.LevelWarn, `[broker] upstream "%s": %s; the broker goes on without its end`, s.cfg.Slot, text(n.err))
	s.note(now, text(n.err))
	if s.driver == nil {
		s.effects = append(s.effects, Effect{Cancel: true, Stray: true})
	} else {
		s.stopStray(s.driver)
	}
	s.gen++
	if s.phase == halted {
		s.halt(now, news{})
		return
	}
	s.closed(now, news{})
}

// stopStray ends, without a grace, a driver that is none of ours any more.
func (s *State) stopStray(d msg.Driver) {
	s.effects = append(s.effects, Effect{Driver: d, Stray: true})
}

// lingers says what is left of a connection that is being ended.
func (s *State) lingers() string {
	if s.pid != 0 {
		return fmt.Sprintf("its old process %d has not ended", s.pid)
	}
	return "its old connection has not ended"
}

// overtime is why it is not waited for any longer.
func (s *State) overtime() error {
	return fmt.Errorf("%s within %s of being told to", s.lingers(), s.cfg.Grace+lastWord)
}

// causeOf is what an event that leads to a stop tells of the connection.
func causeOf(e event) msg.Cause {
	switch e {
	case missed:
		return msg.CauseChecks
	case evicted:
		return msg.CauseEnded
	case restart, halt:
		return ""
	}
	return msg.CauseStart
}

// halt is the end.
func (s *State) halt(_ time.Time, n news) {
	s.lose(n)
	s.nextTry, s.absent = time.Time{}, nil
	switch {
	case s.cfg.Watch:
	case s.handover:
		s.tell(s.registry, &msg.HolderExpected{Slot: s.cfg.Slot, Owner: s.self})
	default:
		s.tell(s.registry, &msg.DisownSlot{Slot: s.cfg.Slot, Owner: s.self})
	}
	if s.slot != nil {
		s.tell(s.slot, &msg.LeaveSlot{Session: s.session})
		s.slot = nil
	}
	for _, done := range s.haltDone {
		s.effects = append(s.effects, Effect{Done: done})
	}
	s.haltDone = nil
	s.effects = append(s.effects, Effect{Stop: true})
}
