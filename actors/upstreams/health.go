package upstreams

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// check is how the upstream is watched while it serves, and how it is greeted
// before. Each goes the way of every call: through the slot.
type check struct {
	call     uint64    // in flight; 0 is none
	deadline time.Time // of the one in flight
	next     time.Time
	misses   int  // in a row
	passed   bool // at least one, since it is up
	toolless bool // the server offers no tools: it is pinged
}

// greet sends initialize.
func (s *State) greet(now time.Time) {
	params := fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{},"clientInfo":%s}`, mcp.Revision20251125, s.identity)
	s.call(mcp.Initialize, params)
}

// call sends a request of our own.
func (s *State) call(method, params string) {
	s.lastCall++
	s.check.call = s.lastCall
	frame, err := wire.Scan([]byte(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, s.lastCall, method, params)))
	if err != nil {
		panic(fmt.Sprintf("a request of the broker's own does not scan: %v", err))
	}
	s.tell(s.slot, &msg.ClientCall{Session: s.session, Client: s.self, Call: s.lastCall, Frame: frame})
}

// answered takes the answer to a request of our own; a late one answers nothing.
func (s *State) answered(now time.Time, m *msg.CallReply) {
	if m.Call != s.check.call {
		return
	}
	s.check.call = 0
	f, err := wire.Scan(m.Frame)
	if err != nil {
		err = fmt.Errorf("its answer does not parse: %w", err)
	} else {
		err = fault(&f)
	}
	switch {
	case s.phase == handshaking && err != nil:
		s.happen(now, news{event: rejected, err: fmt.Errorf("it refused initialize: %w", err)})
	case s.phase == handshaking:
		s.welcome(now, &f)
	case s.phase == up:
		s.checked(now, err)
	}
}

// fault is why an answer is a failure, nil when it is none.
func fault(f *wire.Frame) error {
	switch {
	case f.Error.Present():
		return errors.New(wire.Excerpt(f.Raw(f.Error)))
	case string(wire.Member(f.Raw(f.Result), "isError")) == "true":
		return fmt.Errorf("the result says isError: %s", wire.Excerpt(f.Raw(f.Result)))
	case !f.Result.Present():
		return errors.New("its answer has neither a result nor an error")
	}
	return nil
}

func (s *State) welcome(now time.Time, f *wire.Frame) {
	note, _ := wire.Scan([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	s.tell(s.slot, &msg.ClientNote{Session: s.session, Frame: note})
	s.happen(now, news{event: welcomed})
	capabilities := wire.Member(f.Raw(f.Result), "capabilities")
	s.check.toolless = wire.Member(capabilities, "tools") == nil
}

// busyWait is how long initialize waits for room in the queue of its own slot.
const busyWait = time.Second

// unanswered is a request that came to nothing. A full queue is no failure of the
// upstream.
func (s *State) unanswered(now time.Time, m *msg.CallFailed) {
	if m.Call != s.check.call {
		return
	}
	s.check.call = 0
	switch {
	case s.phase == handshaking && m.Err.Busy:
		s.check.next = now.Add(busyWait)
	case s.phase == handshaking:
		s.happen(now, news{event: rejected, err: errors.New(m.Err.Message)})
	case s.phase == up && m.Err.Busy:
		s.check.next = now.Add(s.cfg.Health.Interval)
	case s.phase == up:
		s.checked(now, errors.New(m.Err.Message))
	}
}

// beginCheck asks the upstream whether it works.
func (s *State) beginCheck(now time.Time) {
	if s.slot == nil {
		s.check.next = now.Add(time.Second)
		s.joinSlot()
		return
	}
	s.check.deadline = now.Add(s.cfg.Health.Timeout)
	switch h := s.cfg.Health; {
	case h.Tool != "":
		name := string(wire.AppendString(nil, h.Tool))
		s.call(mcp.ToolsCall, `{"name":`+name+`,"arguments":`+h.Args+`}`)
	case s.check.toolless:
		s.call(mcp.Ping, "{}")
	default:
		s.call("tools/list", "{}")
	}
}

// checkTimedOut: the deadline is ours, whatever the server promises.
func (s *State) checkTimedOut(now time.Time) {
	s.tell(s.slot, &msg.CallerLeft{Session: s.session, Call: s.check.call})
	s.check.call = 0
	s.checked(now, fmt.Errorf("no answer within %s", s.cfg.Health.Timeout))
}

func (s *State) checked(now time.Time, err error) {
	s.check.next = now.Add(s.cfg.Health.Interval)
	if err == nil {
		s.happen(now, news{event: passed})
		return
	}
	s.happen(now, news{event: missed, err: err})
}

func (s *State) checkPassed(now time.Time, _ news) {
	s.check.misses, s.check.passed, s.lastError = 0, true, ""
	s.prove(now)
	s.note(now, s.checkName()+" passed")
}

func (s *State) checkMissed(now time.Time, n news) {
	s.check.misses++
	s.lastError = s.checkName() + " failed: " + text(n.err)
	s.note(now, s.lastError)
	if s.check.misses >= s.cfg.Health.Threshold {
		s.verdict = msg.Unhealthy
		s.log(slog.LevelWarn, `[broker] upstream "%s" is unhealthy: %s (%d in a row); its connection is being made again`, s.cfg.Slot, s.lastError, s.check.misses)
		s.phase = closing
		s.leaveAndStop(now, news{event: missed, err: fmt.Errorf("%d checks in a row failed, the last one with: %s", s.check.misses, text(n.err))})
	}
}

// checkName says which check ran.
func (s *State) checkName() string {
	if s.cfg.Health.Tool != "" {
		return "Readiness check (" + s.cfg.Health.Tool + ")"
	}
	return "Liveness check (" + s.subject() + ")"
}

func (s *State) subject() string {
	switch {
	case s.cfg.Health.Tool != "":
		return s.cfg.Health.Tool
	case s.check.toolless:
		return mcp.Ping
	}
	return "tools/list"
}

// judge draws the verdict, and logs a change of it once.
func (s *State) judge(now time.Time) {
	before := s.verdict
	s.verdict = s.verdictNow()
	if s.verdict == before {
		return
	}
	s.note(now, fmt.Sprintf("%s, was %s", s.verdict, before))
	level, why := slog.LevelInfo, ""
	if s.cfg.Isolated {
		level = slog.LevelDebug // one for each session
	}
	if s.verdict == msg.Failed || s.verdict == msg.Degraded {
		level, why = slog.LevelWarn, ": "+s.lastError
	}
	if s.verdict != msg.Unhealthy && s.verdict != msg.Starting { // said already, or not worth a line
		s.log(level, `[broker] %s "%s" is %s, was %s%s`, s.noun(), s.cfg.Slot, s.verdict, before, why)
	}
}

func (s *State) noun() string {
	if s.cfg.Watch {
		return "provider"
	}
	return "upstream"
}

func (s *State) verdictNow() msg.Verdict {
	switch s.phase {
	case halting, halted:
		return msg.Halted
	case waiting, givenUp:
		return msg.Failed
	case away:
		return msg.Away
	case up:
		switch {
		case s.cfg.Watch && s.check.misses >= s.cfg.Health.Threshold:
			return msg.Unhealthy
		case s.check.misses > 0:
			return msg.Degraded
		case s.check.passed && s.cfg.Health.Tool != "":
			return msg.Healthy
		case s.check.passed:
			return msg.Live
		}
	case closing:
		return s.verdict
	}
	// Without an error to show, what has failed before says nothing of this start.
	if s.failures > 0 && (s.phase == up || s.lastError != "") {
		return msg.Failed
	}
	return msg.Starting
}
