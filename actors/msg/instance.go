package msg

import (
	"errors"
	"time"
)

// Verdict is what is known of an upstream (spec 06).
type Verdict string

const (
	Starting  Verdict = "starting"  // its first handshake is not finished
	Live      Verdict = "live"      // it answers the protocol; nothing watches what is behind it
	Healthy   Verdict = "healthy"   // a real call of its health check passed
	Degraded  Verdict = "degraded"  // some checks failed, fewer than the threshold in a row
	Unhealthy Verdict = "unhealthy" // too many did; the connection is being made again
	Failed    Verdict = "error"     // it cannot be started, and is tried again on a schedule
	Halted    Verdict = "stopped"   // the broker stops it
	Away      Verdict = "away"      // a provider that comes by itself is not there
	Unknown   Verdict = "unknown"   // its actor does not answer
)

// ErrUnresolved marks why an upstream was not started: a setting names a variable
// or a file that is not there. Such an error names the setting and what it lacks.
var ErrUnresolved = errors.New("unresolved setting")

// Instance describes the upstream behind a slot.
type Instance struct {
	Slot      string
	Kind      string // stdio, streamable-http, sse, websocket, bundle or provider
	Target    string // command line or URL, secrets masked
	Aggregate bool
	Isolated  bool // one connection for each client session; the verdict speaks of none of them
	Verdict   Verdict
	Check     string // the check behind the verdict: "tools/list", or the name of a tool

	PID      int       // of a child process, else 0
	Since    time.Time // up since; zero when down
	Restarts int       // attempts to connect after the first, the failed ones included
	Sessions int       // of an isolated upstream: clients with a process of their own

	Attempt     int       // failed attempts in a row
	LastAttempt time.Time // zero before the first
	NextRetry   time.Time // zero when none is scheduled
	Error       string    // why it is not up, or its last failed check
	Unresolved  bool      // a setting names a variable or a file that is not there, see ErrUnresolved
	Denied      bool      // it refused the broker's credentials
	GaveUp      bool      // maxRestarts is reached: only a restart by hand helps
	CrashLoop   bool      // it dies soon after each start
	ByHand      bool      // LastAttempt is what a restart by hand has come to
	Cause       Cause     // why it is not up, or was not last; empty is unknown, or no failure
	Unremedied  bool      // it serves and is unhealthy: its checks fail as they did before its connection was made again
	ToolMissing bool      // the tool of its check is not in its tools/list
	Behind      bool      // its settings were changed: it is started once the last one of its slot, whose PID and Error these are, has ended

	Events []InstanceEvent // the latest, oldest first
	Tail   []string        // the last lines of its stderr
}

// Cause is why an upstream is not up.
type Cause string

const (
	CauseStart  Cause = "start"  // an attempt to start it came to nothing
	CauseEnded  Cause = "ended"  // it ended by itself while it served
	CauseChecks Cause = "checks" // the broker ended it, since its checks failed
	CauseSlot   Cause = "slot"   // another provider holds its slot
)

// KindProvider is the kind of a watched provider that comes by itself.
const KindProvider = "provider"

// InstanceEvent is one line of an instance's history.
type InstanceEvent struct {
	At   time.Time
	Text string
}

// DescribeInstance asks the actor of an upstream; the reply channel must have
// room for one.
type DescribeInstance struct {
	control
	Reply chan<- Instance
}

// RestartInstance makes the connection again, at once and whatever its schedule.
// While a restart by hand is under way, and for 1 s after its start, another one
// is the same.
type RestartInstance struct{ control }
