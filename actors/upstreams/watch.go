package upstreams

import (
	"fmt"
	"log/slog"
	"time"

	"mcpbroker/actors/msg"
)

// A slot whose provider comes by itself can be watched like an upstream: whoever
// holds it is greeted and checked, and the verdict is shown. The broker cannot
// make such a provider again, so an unhealthy one stays unhealthy until a check
// passes.

const (
	away phase = "away" // nobody holds the slot

	attached event = "attached" // a provider has taken the slot
	detached event = "detached" // and left it
)

// watchedRules is the life of a watched slot.
var watchedRules = []rule{
	{idle, start, away, nil},
	{idle, halt, halted, (*State).halt},

	{away, attached, handshaking, (*State).meet},
	{away, halt, halted, (*State).halt},

	{handshaking, attached, handshaking, (*State).meet},
	{handshaking, welcomed, up, (*State).serve},
	{handshaking, rejected, up, (*State).unwelcome},
	{handshaking, detached, away, (*State).part},
	{handshaking, halt, halted, (*State).halt},

	{up, attached, handshaking, (*State).meet},
	{up, passed, up, (*State).checkPassed},
	{up, missed, up, (*State).watchMissed},
	{up, busy, up, (*State).checkBusy},
	{up, detached, away, (*State).part},
	{up, halt, halted, (*State).halt},
}

func (s *State) table() []rule {
	if s.cfg.Watch {
		return watchedRules
	}
	return rules
}

// observed takes what the registry says of the slot.
func (s *State) observed(now time.Time, info *msg.SlotInfo) {
	switch holder := (holderID{info.Gen, info.ConnectedSince}); {
	case !info.Connected:
		s.watched = holderID{}
		s.happen(now, news{event: detached})
	case holder != s.watched:
		s.watched = holder
		s.happen(now, news{event: attached})
	}
}

// holderID tells one provider of a slot from the next.
type holderID struct {
	gen   uint64
	since time.Time
}

// meet greets a provider that has come.
func (s *State) meet(now time.Time, _ news) {
	s.starts++
	s.lastTry, s.check = now, check{}
	s.note(now, fmt.Sprintf("provider %d attached", s.starts))
	if s.slot == nil {
		s.joinSlot()
		return
	}
	s.greet(now)
}

func (s *State) part(now time.Time, _ news) {
	s.upSince, s.check = time.Time{}, check{}
	s.note(now, "provider left")
}

// unwelcome is a provider that does not answer initialize as it should: a failed
// check like any other.
func (s *State) unwelcome(now time.Time, n news) {
	s.serve(now, n)
	s.check.next = now.Add(s.cfg.Health.Interval)
	s.watchMissed(now, n)
}

func (s *State) watchMissed(now time.Time, n news) {
	s.check.misses++
	s.lastError = s.checkName() + " failed: " + text(n.err)
	s.note(now, s.lastError)
	if s.check.misses == s.cfg.Health.Threshold {
		s.log(slog.LevelWarn, `[broker] provider "%s" is unhealthy: %s (%d in a row)`, s.cfg.Slot, s.lastError, s.check.misses)
	}
}
