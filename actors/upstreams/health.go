package upstreams

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
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
	late     bool      // it is past its deadline, and the slot was asked what that says
	lookup   bool      // it is no check: it looks for the tool of the check
	pages    int       // of tools/list that were looked through
	next     time.Time
	misses   int  // in a row
	passed   bool // at least one, since it is up
	first    bool // none has passed or failed yet
	vague    int  // in a row counted neither way, before one did
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
	s.tell(s.slot, &msg.ClientCall{
		Session: s.session, Client: s.self, Call: s.lastCall, Frame: frame,
		Timed: s.phase == up || !s.cfg.Watch, // a watched slot has clients that wait for the same answer
	})
}

// answered takes the answer to a request of our own; a late one answers nothing.
func (s *State) answered(now time.Time, m *msg.CallReply) {
	if m.Call != s.check.call {
		return
	}
	lookup := s.check.lookup
	s.check.call, s.check.late, s.check.lookup = 0, false, false
	f, err := wire.Scan(m.Frame)
	if err != nil {
		err = fmt.Errorf("its answer does not parse: %w", err)
	} else {
		err = s.fault(&f)
	}
	switch {
	case s.phase == handshaking && err != nil:
		s.happen(now, news{event: rejected, err: fmt.Errorf("it refused initialize: %w", err)})
	case s.phase == handshaking:
		s.greeted(now, &f)
	case s.phase == up && lookup:
		s.looked(now, &f, err)
	case s.phase == up:
		s.checked(now, err, faulty)
	}
}

// fault is why an answer is a failure, nil when it is none.
func (s *State) fault(f *wire.Frame) error {
	switch {
	case f.Error.Present():
		return errors.New(s.excerpt(f.Raw(f.Error)))
	case string(wire.Member(f.Raw(f.Result), "isError")) == "true":
		return fmt.Errorf("the result says isError: %s", s.excerpt(f.Raw(f.Result)))
	case !f.Result.Present():
		return errors.New("its answer has neither a result nor an error")
	}
	return nil
}

// greeted takes the answer to initialize. One with a revision the broker does not know
// would leave clients with sessions whose every request is refused. A provider that came
// by itself is no connection of ours to be given up.
func (s *State) greeted(now time.Time, f *wire.Frame) {
	if err := s.strange(f); err != nil && !s.cfg.Watch {
		s.happen(now, news{event: rejected, err: fmt.Errorf("%w; this broker knows %s", err, strings.Join(mcp.Revisions(), ", "))})
		return
	}
	s.welcome(now, f)
}

// strange is what keeps clients from speaking to a server that has answered initialize.
func (s *State) strange(f *wire.Frame) error {
	result := f.Raw(f.Result)
	version := wire.Member(result, "protocolVersion")
	if revision, ok := wire.Unquote(version); ok {
		if mcp.KnownRevision(revision) {
			return nil
		}
		version = []byte(revision)
	}
	if version == nil {
		return fmt.Errorf("its answer to initialize has no protocolVersion: %s", s.excerpt(result))
	}
	return fmt.Errorf("it answered initialize with protocolVersion %s", s.excerpt(version))
}

func (s *State) welcome(now time.Time, f *wire.Frame) {
	note, _ := wire.Scan([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	s.tell(s.slot, &msg.ClientNote{Session: s.session, Frame: note})
	s.tail.stray = ""
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
	late, lookup := s.check.late, s.check.lookup
	s.check.call, s.check.late, s.check.lookup = 0, false, false
	switch {
	case lookup:
	case s.phase == handshaking && m.Err.Busy:
		s.check.next = now.Add(busyWait)
	case s.phase == handshaking:
		s.happen(now, news{event: rejected, err: s.quoteStray(errors.New(m.Err.Message))})
	case s.phase == up && m.Err.Busy:
		s.happen(now, news{event: busy, err: errors.New(m.Err.Message)})
	case s.phase == up && late:
		s.checked(now, s.noAnswer(strings.TrimPrefix(m.Err.Message, "no answer")), mute)
	case s.phase == up:
		s.checked(now, errors.New(m.Err.Message), faulty)
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

// latePatience is how long the slot has to say what it means that a check is late.
const latePatience = 5 * time.Second

// checkTimedOut: the deadline is ours, whatever the server promises. Whether it says
// anything of the server, the slot knows: who works on a call may have no time for a
// check.
func (s *State) checkTimedOut(now time.Time) {
	switch {
	case s.check.lookup:
		s.tell(s.slot, &msg.CallerLeft{Session: s.session, Call: s.check.call})
		s.check.call, s.check.lookup = 0, false
	case s.check.late, s.slot == nil:
		s.check.call, s.check.late = 0, false
		s.checked(now, s.noAnswer(""), mute)
	default:
		s.check.late, s.check.deadline = true, now.Add(latePatience)
		s.tell(s.slot, &msg.CallerLate{Session: s.session, Call: s.check.call})
	}
}

func (s *State) noAnswer(more string) error {
	return fmt.Errorf("no answer within %s%s", s.cfg.Health.Timeout, more)
}

func (s *State) checked(now time.Time, err error, how manner) {
	s.check.next = s.nextCheck(now)
	if err == nil {
		s.happen(now, news{event: passed})
		return
	}
	s.happen(now, news{event: missed, err: err, manner: how})
}

func (s *State) nextCheck(now time.Time) time.Time {
	if s.cfg.Health.Off {
		return time.Time{}
	}
	return now.Add(s.cfg.Health.Interval)
}

func (s *State) checkPassed(now time.Time, _ news) {
	s.check.misses, s.check.passed, s.check.first = 0, true, false
	s.lastError, s.cause, s.remedy = "", "", remedy{}
	s.prove(now)
	s.note(now, s.checkName()+" passed")
}

func (s *State) checkMissed(now time.Time, n news) {
	first := s.check.first
	s.check.misses, s.check.first = s.check.misses+1, false
	s.lastError = s.checkName() + " failed: " + text(n.err)
	s.note(now, s.lastError)
	if !s.unremedied(now, n, first) && s.check.misses >= s.cfg.Health.Threshold {
		s.remake(now, n)
	}
}

// remake ends a connection whose checks fail.
func (s *State) remake(now time.Time, n news) {
	s.verdict, s.remedy = msg.Unhealthy, remedy{tried: n.manner}
	s.log(slog.LevelWarn, `[broker] upstream "%s" is unhealthy: %s (%d in a row); its connection is being made again`, s.cfg.Slot, s.lastError, s.check.misses)
	err := fmt.Errorf("%d checks in a row failed, the last one with: %s", s.check.misses, text(n.err))
	if s.check.misses == 1 {
		err = fmt.Errorf("1 check failed: %s", text(n.err))
	}
	s.phase = closing
	s.leaveAndStop(now, news{event: missed, err: err})
}

// checkBusy: it neither passed nor failed. The verdict waits for the first that does, so
// until then the next one is made sooner.
func (s *State) checkBusy(now time.Time, n news) {
	s.check.next = s.nextCheck(now)
	if s.check.first && s.check.misses == 0 && !s.cfg.Health.Off {
		s.check.next = now.Add(min(time.Second<<min(s.check.vague, maxVague), s.cfg.Health.Interval))
		s.check.vague++
	}
	s.note(now, s.checkName()+" does not count: "+text(n.err))
}

// maxVague bounds how often that wait doubles: to more than an hour.
const maxVague = 12

// checkName says which check ran.
func (s *State) checkName() string {
	if s.cfg.Health.Tool != "" {
		return "Readiness check (" + s.cfg.Health.Tool + ")"
	}
	return "Liveness check (" + s.subject() + ")"
}

func (s *State) subject() string {
	switch {
	case s.cfg.Health.Off:
		return mcp.Initialize
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
	switch {
	case s.verdict == msg.Failed, s.verdict == msg.Degraded:
		level, why = slog.LevelWarn, ": "+s.lastError
	case s.verdict == msg.Starting && s.cause == msg.CauseEnded:
		why = ": " + s.lastError
	}
	if s.verdict != msg.Unhealthy { // said already
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
	case parting, halting, halted:
		return msg.Halted
	case waiting, givenUp:
		switch {
		case s.cause == msg.CauseChecks:
			return msg.Unhealthy
		case s.soon.lost:
			return msg.Starting
		}
		return msg.Failed
	case away:
		return msg.Away
	case up:
		switch {
		case s.remedy.vain:
			return msg.Unhealthy
		case s.cfg.Health.Off:
			return msg.Live
		case s.cfg.Watch && s.check.misses >= s.cfg.Health.Threshold:
			return msg.Unhealthy
		case s.check.misses > 0:
			return msg.Degraded
		case s.check.passed && s.cfg.Health.Tool != "":
			return msg.Healthy
		case s.check.passed:
			return msg.Live
		}
		return msg.Starting // until a check says something
	case draining, closing:
		if s.verdict == msg.Unhealthy || s.verdict == msg.Failed {
			return s.verdict
		}
		return msg.Starting
	}
	// Without an error to show, what has failed before says nothing of this start.
	if s.failures > 0 && s.cause != msg.CauseChecks && s.lastError != "" {
		return msg.Failed
	}
	return msg.Starting
}
