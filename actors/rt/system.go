package rt

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/eventstream"
)

// The protoactor types the rest of the broker works with.
type (
	PID     = actor.PID
	Actor   = actor.Actor
	Context = actor.Context

	Started    = actor.Started
	Stopping   = actor.Stopping
	Stopped    = actor.Stopped
	Restarting = actor.Restarting
	Terminated = actor.Terminated
)

// System is one actor system with its goroutines.
type System struct {
	actors *actor.ActorSystem
	jobs   *jobs
	runs   *dispatcher
	log    *slog.Logger
	tap    Tap
}

// Tap sees every message before its actor does, on the actor's goroutine.
// Tracing uses it, and so do scripted scenarios to make an actor fail: a panic
// in the tap is a panic in the actor.
type Tap func(self *PID, message any)

// NewSystem starts an empty system. A nil tap costs nothing.
func NewSystem(log *slog.Logger, tap Tap) *System {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	quiet := slog.New(&levelFloor{log.Handler(), slog.LevelError})
	j := newJobs(maxIdleJobs)
	s := &System{
		actors: actor.NewActorSystem(
			actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }),
		),
		jobs: j,
		runs: newDispatcher(j),
		log:  log,
		tap:  tap,
	}
	s.listen()
	return s
}

// Undeliverable is a message whose sender has to be told when the actor it was
// sent to has stopped. Undelivered runs on the sender's goroutine.
type Undeliverable interface{ Undelivered() }

// Refuse tells the sender of a message, if it has to be told, that nobody handles
// it. It fits Kind.Overflow and Kind.Crashed.
func Refuse(message any) {
	if m, ok := message.(Undeliverable); ok {
		m.Undelivered()
	}
}

// listen takes the place of the library's own listeners. One of them starts a
// goroutine for dead letters that outlives the system, another reports crashes
// at the root at a level nobody reads.
func (s *System) listen() {
	events := eventstream.NewEventStream()
	events.Subscribe(func(event any) {
		switch e := event.(type) {
		case *actor.DeadLetterEvent:
			switch m := e.Message.(type) {
			case *actor.Watch:
				s.tellTerminated(m.Watcher, e.PID)
			default:
				Refuse(m)
			}
		case *actor.SupervisorEvent:
			outcome := "restarted"
			if e.Directive == actor.StopDirective {
				outcome = "stopped"
			}
			logCrash(s.log, e.Child, e.Reason, outcome)
		}
	})
	s.actors.EventStream = events
}

// tellTerminated answers the watch of an actor that had ended before.
func (s *System) tellTerminated(watcher, ended *PID) {
	if p, ok := s.actors.ProcessRegistry.Get(watcher); ok {
		p.SendSystemMessage(watcher, &Terminated{Who: ended, Why: actor.TerminatedReason_NotFound})
	}
}

// Log returns the system's logger.
func (s *System) Log() *slog.Logger { return s.log }

// Send posts a message; it never blocks. A nil PID is a dead letter.
func (s *System) Send(to *PID, message any) {
	if to != nil {
		s.actors.Root.Send(to, message)
	}
}

// maxIdleJobs is how many goroutines a busy system keeps for the next job: one
// for each outbox of a large broadcast.
const maxIdleJobs = 1024

// Go runs fn beside the actors; it may block. It is for short jobs: the drain of
// an outbox, a ping.
func (s *System) Go(fn func()) { s.jobs.run(fn) }

// Stop asks an actor to stop; messages still queued go to its overflow.
func (s *System) Stop(pid *PID) { s.actors.Root.Stop(pid) }

// StopAndWait stops an actor and its children and waits for them.
func (s *System) StopAndWait(ctx context.Context, pid *PID) error {
	done := make(chan struct{})
	waiter := s.Spawn(Kind{Name: "stop-waiter"}, &stopWaiter{target: pid, done: done})
	defer s.Stop(waiter)
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop actor %s: %w", pid.Id, ctx.Err())
	}
}

type stopWaiter struct {
	target *PID
	done   chan struct{}
}

func (w *stopWaiter) Receive(c Context) {
	switch c.Message().(type) {
	case *Started:
		c.Watch(w.target)
		c.Stop(w.target)
	case *Terminated:
		close(w.done)
	}
}

// Close ends the workers. Every actor must have been stopped before.
func (s *System) Close() {
	s.actors.Shutdown()
	s.runs.close()
	s.jobs.close()
}

// levelFloor drops records below a level: the actor library reports each restart
// at Info, which the supervisor already logs in the broker's own words.
type levelFloor struct {
	slog.Handler
	floor slog.Level
}

func (h *levelFloor) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= h.floor && h.Handler.Enabled(ctx, level)
}

// Timer posts one message to an actor when it is due. The zero Timer is unarmed.
// Arm and Stop belong to the actor; the message it posts must carry what makes a
// late one recognisable (a generation or the due time).
type Timer struct {
	timer *time.Timer
}

// Arm schedules message for to, replacing what was scheduled before.
func (t *Timer) Arm(s *System, to *PID, after time.Duration, message any) {
	t.Stop()
	t.timer = time.AfterFunc(after, func() { s.Send(to, message) })
}

// Stop unarms the timer. A message already posted still arrives.
func (t *Timer) Stop() {
	if t.timer != nil {
		t.timer.Stop()
	}
}
