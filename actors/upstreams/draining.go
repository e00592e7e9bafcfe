package upstreams

import (
	"fmt"
	"time"

	"mcpbroker/actors/msg"
)

// An upstream that is taken away though it serves, for other settings or by an operator,
// finishes the calls that clients have in flight; the slot holds back what comes
// meanwhile. One whose checks failed is not waited for, and neither is any when the
// broker stops: it has waited for all calls before.

// drainTime is how long calls in flight have.
const drainTime = 5 * time.Second

// drain begins a stop; why is told to those whose calls take too long.
func (s *State) drain(now time.Time, n news) {
	s.why, s.drainBy = n.err, now.Add(drainTime)
	if n.atOnce {
		s.drainNoMore(now, n)
		return
	}
	s.tell(s.holding, &msg.DrainProvider{Gen: s.slotGen, Owner: s.self})
}

// drainNoMore is a halt while there may be calls in flight. Where they have been waited
// for already, that goes on.
func (s *State) drainNoMore(now time.Time, n news) {
	if n.atOnce {
		s.phase = halting
		s.leaveDrained(now, n)
	}
}

// leaveDrained ends the connection, and what is still in flight with it.
func (s *State) leaveDrained(now time.Time, n news) {
	if n.event == overdue {
		s.note(now, fmt.Sprintf("calls in flight were not over within %s: they fail", drainTime))
	}
	stop := news{event: restart, err: s.why}
	if s.ending() {
		stop = news{event: halt}
	}
	s.leaveAndStop(now, stop)
}

// diedDraining is a driver that ended by itself meanwhile.
func (s *State) diedDraining(now time.Time, n news) {
	s.prove(now)
	s.byHand = true
	s.closed(now, n)
}

// ending reports that there will be no other connection of ours.
func (s *State) ending() bool {
	return s.phase == parting || s.phase == halting || s.phase == halted
}
