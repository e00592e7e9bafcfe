package upstreams

import (
	"errors"
	"fmt"
	"time"

	"mcpbroker/actors/msg"
)

// A remote server that restarts is away for seconds. Before the schedule begins, a
// connection to it is tried again a few times soon; as long as that lasts, calls of a
// server that has been up wait.

// soonWaits are the times before each of these tries. One that would come no sooner than
// by the schedule is left out.
var soonWaits = [...]time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}

// soon are the tries ahead of the schedule. They begin anew once the upstream has proved
// itself, and with a restart by hand.
type soon struct {
	tries   int
	lost    bool // what they make again was up
	counted bool // what they make has never been up: the first counts as a failed attempt, for all
}

// trySoon waits for the next such try; false when there is none.
func (s *State) trySoon(now time.Time, n news) bool {
	lost := n.cause == msg.CauseEnded || n.cause == msg.CauseStart && !errors.As(n.err, new(slowError))
	if !s.cfg.remote() || !lost || s.denied || s.lacking || s.soon.tries == len(soonWaits) {
		return false
	}
	wait := soonWaits[s.soon.tries]
	if wait >= s.cfg.Schedule.First {
		return false
	}
	s.soon.tries++
	s.rest(now, wait)
	s.note(now, fmt.Sprintf("no connection: %s; tried again in %s", s.lastError, wait))
	if s.soon.lost {
		s.tell(s.registry, &msg.HolderExpected{Slot: s.cfg.Slot, Owner: s.self})
		return true
	}
	if !s.soon.counted {
		s.soon.counted = true
		s.failures++
	}
	s.beAbsent(publicText(n.err), "It is tried again at "+moment(s.nextTry))
	return true
}
