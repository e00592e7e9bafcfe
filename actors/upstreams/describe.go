package upstreams

import (
	"time"

	"mcpbroker/actors/msg"
)

// Bounds of what is remembered for operators.
const (
	maxEvents    = 50
	maxTail      = 50
	maxTailBytes = 500 // of one line
)

// history is the latest events, oldest first. It is replaced, never changed in
// place: a step that fails must find the old one.
type history []msg.InstanceEvent

func (s *State) note(now time.Time, text string) {
	kept := s.events
	if len(kept) >= maxEvents {
		kept = kept[len(kept)-maxEvents+1:]
	}
	s.events = append(append(history(nil), kept...), msg.InstanceEvent{At: now, Text: text})
}

// hear remembers a line of stderr.
func (s *State) hear(line string) {
	if len(line) > maxTailBytes {
		line = line[:maxTailBytes]
	}
	kept := s.tail
	if len(kept) >= maxTail {
		kept = kept[len(kept)-maxTail+1:]
	}
	s.tail = append(append([]string(nil), kept...), line)
}

// Describe is what operators see.
func (s *State) Describe() msg.Instance {
	return msg.Instance{
		Slot: s.cfg.Slot, Kind: s.cfg.Kind, Target: s.cfg.Target, Aggregate: s.cfg.Aggregate,
		Verdict: s.verdict, Check: s.subject(),
		PID: s.pid, Since: s.upSince, Restarts: max(s.starts-1, 0),
		Attempt: s.failures, LastAttempt: s.lastTry, NextRetry: s.nextTry, Error: s.lastError,
		Unresolved: s.lacking, Denied: s.denied, GaveUp: s.phase == givenUp, CrashLoop: s.deaths >= 2, ByHand: s.handMade && s.phase != closing,
		Events: s.events, Tail: s.tail,
	}
}
