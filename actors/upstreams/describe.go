package upstreams

import (
	"cmp"
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

func (h history) with(now time.Time, text string) history {
	if len(h) >= maxEvents {
		h = h[len(h)-maxEvents+1:]
	}
	return append(append(history(nil), h...), msg.InstanceEvent{At: now, Text: text})
}

func (s *State) note(now time.Time, text string) { s.events = s.events.with(now, text) }

// Describe is what operators see.
func (s *State) Describe() msg.Instance {
	return msg.Instance{
		Slot: s.cfg.Slot, Kind: cmp.Or(s.detected, s.cfg.Kind), Target: s.cfg.Target, Aggregate: s.cfg.Aggregate,
		Verdict: s.verdict, Check: s.subject(),
		PID: s.pid, Since: s.upSince, Restarts: max(s.starts-1, 0),
		Attempt: s.failures, LastAttempt: s.lastTry, NextRetry: s.nextTry, Error: s.errorNow(),
		Unresolved: s.lacking, Denied: s.denied, GaveUp: s.phase == givenUp, CrashLoop: s.deaths >= 2, ByHand: s.handMade && s.phase != closing && s.phase != draining,
		Cause: s.causeNow(), Unremedied: s.remedy.vain && s.phase == up, ToolMissing: s.remedy.missing,
		Events: s.events, Tail: s.tail.all(),
	}
}

// errorNow is the last error, and what is left of the last connection.
func (s *State) errorNow() string {
	switch {
	case s.phase != closing && s.phase != halting:
		return s.lastError
	case s.lastError == "":
		return s.lingers()
	}
	return s.lastError + "; " + s.lingers()
}

func (s *State) causeNow() msg.Cause {
	switch {
	case s.remedy.vain && s.phase == up:
		return msg.CauseChecks
	case s.phase == closing:
		return s.whyCause
	}
	return s.cause
}
