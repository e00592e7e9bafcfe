package upstreams

import (
	"time"

	"mcpbroker/actors/msg"
)

// phase is where an upstream stands.
type phase string

const (
	idle        phase = "idle"        // not started yet
	opening     phase = "opening"     // a driver is being started
	claiming    phase = "claiming"    // it runs and asks for the slot
	handshaking phase = "handshaking" // it holds the slot and is sent initialize
	up          phase = "up"          // it serves
	draining    phase = "draining"    // it finishes the calls it has, to be started again
	closing     phase = "closing"     // its driver is being stopped, to be started again
	waiting     phase = "waiting"     // for the next attempt
	givenUp     phase = "given up"    // for a restart by hand
	parting     phase = "parting"     // it finishes the calls it has, for good
	halting     phase = "halting"     // its driver is being stopped, for good
	halted      phase = "halted"
)

// event is what happens to it.
type event string

const (
	start    event = "start"    // the actor runs
	opened   event = "opened"   // the driver has a connection
	ended    event = "ended"    // the driver is through
	granted  event = "granted"  // the slot is ours
	refused  event = "refused"  // the slot is not to be had
	freed    event = "freed"    // the slot that was not to be had is free
	evicted  event = "evicted"  // the slot failed and let us go
	welcomed event = "welcomed" // initialize was answered
	rejected event = "rejected" // it was refused, or not answered in time
	passed   event = "passed"   // a check passed
	missed   event = "missed"   // a check failed
	busy     event = "busy"     // a check came to nothing, which says nothing
	due      event = "due"      // the time of the next attempt has come
	allowed  event = "allowed"  // another maxRestarts lets it go on
	restart  event = "restart"  // an operator wants a fresh connection
	drained  event = "drained"  // the slot has no calls of clients in flight any more
	overdue  event = "overdue"  // what is waited for has not come in time: that, or the driver's end
	halt     event = "halt"     // the broker stops, or the upstream left the configuration
)

// news is an event with what belongs to it.
type news struct {
	event  event
	err    error
	exit   string // how the process ended
	tail   []string
	pid    int
	denied bool     // the server refused our credentials
	unsent [][]byte // frames the driver took and never wrote
	cause  msg.Cause
	manner manner // of a check that failed
	atOnce bool   // of a halt: calls in flight get no time
}

// rule is one row of the table: in a phase an event leads to another phase. do
// may lead elsewhere by itself (a failed attempt waits, or is given up).
type rule struct {
	from phase
	on   event
	to   phase
	do   func(*State, time.Time, news)
}

// rules is the life of an upstream (spec 06). What is not in it changes nothing.
var rules = []rule{
	{idle, start, opening, (*State).attempt},

	{opening, opened, claiming, (*State).claim},
	{opening, ended, waiting, (*State).attemptFailed},
	{opening, rejected, closing, (*State).stopDriver},
	{opening, restart, closing, (*State).stopDriver},
	{opening, halt, halting, (*State).stopDriver},

	{claiming, granted, handshaking, (*State).attach},
	{claiming, refused, closing, (*State).stopDriver},
	{claiming, rejected, closing, (*State).stopDriver},
	{claiming, ended, waiting, (*State).attemptFailed},
	{claiming, restart, closing, (*State).stopDriver},
	{claiming, halt, halting, (*State).stopDriver},

	{handshaking, welcomed, up, (*State).serve},
	{handshaking, rejected, closing, (*State).leaveAndStop},
	{handshaking, ended, waiting, (*State).attemptFailed},
	{handshaking, evicted, closing, (*State).stopDriver},
	{handshaking, restart, closing, (*State).leaveAndStop},
	{handshaking, halt, halting, (*State).leaveAndStop},

	{up, passed, up, (*State).checkPassed},
	{up, missed, up, (*State).checkMissed},
	{up, busy, up, (*State).checkBusy},
	{up, ended, opening, (*State).died},
	{up, evicted, closing, (*State).stopDriver},
	{up, restart, draining, (*State).drain},
	{up, halt, parting, (*State).drain},

	{draining, drained, closing, (*State).leaveDrained},
	{draining, overdue, closing, (*State).leaveDrained},
	{draining, evicted, closing, (*State).leaveDrained},
	{draining, ended, opening, (*State).diedDraining},
	{draining, halt, parting, (*State).drainNoMore},

	{parting, drained, halting, (*State).leaveDrained},
	{parting, overdue, halting, (*State).leaveDrained},
	{parting, evicted, halting, (*State).leaveDrained},
	{parting, ended, halted, (*State).halt},

	{closing, opened, closing, (*State).stopOpened},
	{closing, ended, opening, (*State).closed},
	{closing, overdue, opening, (*State).abandon},
	{closing, restart, closing, (*State).startAgain},
	{closing, halt, halting, nil},

	{waiting, due, opening, (*State).attempt},
	{waiting, freed, opening, (*State).attempt},
	{waiting, restart, opening, (*State).attempt},
	{waiting, halt, halted, (*State).halt},

	{givenUp, allowed, opening, (*State).attempt},
	{givenUp, restart, opening, (*State).attempt},
	{givenUp, halt, halted, (*State).halt},

	{idle, halt, halted, (*State).halt},
	{halting, opened, halting, (*State).stopOpened},
	{halting, ended, halted, (*State).halt},
	{halting, overdue, halted, (*State).abandon},
}

// happen plays one event.
func (s *State) happen(now time.Time, n news) {
	table := s.table()
	for i := range table {
		r := &table[i]
		if r.from != s.phase || r.on != n.event {
			continue
		}
		s.phase = r.to
		if r.do != nil {
			r.do(s, now, n)
		}
		return
	}
}
