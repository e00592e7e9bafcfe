package rt

import (
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"
)

// Crash is what a supervisor learns about an actor that panicked.
type Crash struct {
	Cause   any
	Message string // type of the message being handled
	Stack   []byte
}

func (c *Crash) Error() string { return fmt.Sprintf("%v while handling %s", c.Cause, c.Message) }

func newCrash(cause, message any) *Crash {
	return &Crash{Cause: cause, Message: fmt.Sprintf("%T", message), Stack: debug.Stack()}
}

// guarded is the actor protoactor sees. A panic while an actor is stopping would
// lose the stop, so it is logged and swallowed; any other panic reaches the
// supervisor through the mailbox.
type guarded struct {
	inner Actor
	sys   *System
	box   *mailbox
}

func (g *guarded) Receive(c Context) {
	switch c.Message().(type) {
	case *actor.Stopping:
		defer g.swallow(c)
	case *actor.Stopped:
		defer g.box.discard()
		defer g.swallow(c)
	case *actor.Started, *actor.Restarting, *actor.Terminated:
	default:
		if g.sys.tap != nil {
			g.sys.tap(c.Self(), c.Message())
		}
	}
	g.inner.Receive(c)
}

func (g *guarded) swallow(c Context) {
	if cause := recover(); cause != nil {
		crash := newCrash(cause, c.Message())
		g.sys.log.Error(fmt.Sprintf("[broker] actor %s: %v", c.Self().Id, crash), slog.String("stack", string(crash.Stack)))
	}
}
