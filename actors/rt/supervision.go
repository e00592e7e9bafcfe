package rt

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Supervision decides about a child that panicked.
type Supervision interface {
	strategy(s *System) actor.SupervisorStrategy
}

// Restart restarts a crashed child from its committed state: the first time in a
// window at once, then after growing delays, and gives it up (stops it) when it
// crashed Most times within Window.
type Restart struct {
	First  time.Duration // delay before the second restart, doubled each time
	Cap    time.Duration
	Most   int
	Window time.Duration
}

// DefaultRestart is the schedule of slots.
var DefaultRestart = Restart{First: 100 * time.Millisecond, Cap: 10 * time.Second, Most: 10, Window: time.Minute}

func (r Restart) strategy(s *System) actor.SupervisorStrategy { return &restartChild{r, s} }

// Delay is the wait before restart number n of a window, n from 1.
func (r Restart) Delay(n int) time.Duration {
	if n <= 1 {
		return 0
	}
	return min(r.First<<min(n-2, 20), r.Cap)
}

type restartChild struct {
	Restart
	sys *System
}

func (r *restartChild) HandleFailure(_ *actor.ActorSystem, parent actor.Supervisor, child *PID, stats *actor.RestartStatistics, reason, _ any) {
	stats.Fail()
	n := stats.NumberOfFailures(r.Window)
	if n >= r.Most {
		logCrash(r.sys.log, child, reason, fmt.Sprintf("stopped after %d crashes within %s", n, r.Window))
		parent.StopChildren(child)
		return
	}
	delay := r.Delay(n)
	logCrash(r.sys.log, child, reason, fmt.Sprintf("restarted in %s", delay))
	if delay == 0 {
		parent.RestartChildren(child)
		return
	}
	time.AfterFunc(delay, func() { parent.RestartChildren(child) })
}

// resumeRoot lets an actor without a parent go on after a panic.
type resumeRoot struct{ sys *System }

func (r resumeRoot) HandleFailure(_ *actor.ActorSystem, guardian actor.Supervisor, child *PID, _ *actor.RestartStatistics, reason, _ any) {
	logCrash(r.sys.log, child, reason, "resumed")
	guardian.ResumeChildren(child)
}

type stopChild struct{ log *slog.Logger }

func (s stopChild) HandleFailure(_ *actor.ActorSystem, parent actor.Supervisor, child *PID, _ *actor.RestartStatistics, reason, _ any) {
	logCrash(s.log, child, reason, "stopped")
	parent.StopChildren(child)
}

func logCrash(log *slog.Logger, child *PID, reason any, outcome string) {
	attrs := []any{}
	if crash, ok := reason.(*Crash); ok {
		attrs = append(attrs, slog.String("stack", string(crash.Stack)))
	}
	log.Error(fmt.Sprintf("[broker] actor %s crashed: %v; %s", child.Id, reason, outcome), attrs...)
}
