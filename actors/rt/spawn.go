package rt

import (
	"errors"

	"github.com/asynkron/protoactor-go/actor"
)

// Kind is what all actors of one sort share.
type Kind struct {
	Name string // appears in logs and in the actor's id

	// Mailbox bounds ordinary messages, Headroom what Control messages may use
	// on top. 0 means the default.
	Mailbox, Headroom int

	// Overflow is told, on the sender's goroutine, of each message that found
	// the mailbox full or its actor stopped.
	Overflow func(message any)

	// Crashed is told of the message whose handler panicked, before the restart.
	Crashed func(message any)

	// Resume lets an actor at the root go on after a panic, without the message
	// that caused it. It is for parents: a restart would stop their children.
	Resume bool

	// Children decides what happens to a child that panicked; nil stops it.
	Children Supervision
}

func (k *Kind) mailbox() int {
	if k.Mailbox > 0 {
		return k.Mailbox
	}
	return DefaultMailbox
}

func (k *Kind) headroom() int {
	if k.Headroom > 0 {
		return k.Headroom
	}
	return DefaultHeadroom
}

func (k *Kind) overflow(message any) {
	if k.Overflow != nil {
		k.Overflow(message)
	}
}

func (k *Kind) crashed(message any) {
	if k.Crashed != nil {
		k.Crashed(message)
	}
}

// cradle is where props find the actor they are to spawn, and its mailbox. The
// library asks for both, in this order, before Spawn returns; on a restart it
// asks for the actor again and gets the same value.
type cradle struct {
	actor Actor
	box   *mailbox
}

func newCradle(kind *Kind, a Actor) *cradle { return &cradle{a, newMailbox(kind)} }

// props is the only place that makes protoactor Props: mailbox, dispatcher,
// guard and supervision are not optional.
func (s *System) props(kind *Kind, c *cradle) *actor.Props {
	var supervision actor.SupervisorStrategy = stopChild{s.log}
	if kind.Children != nil {
		supervision = kind.Children.strategy(s)
	}
	return actor.PropsFromProducer(
		func() actor.Actor { return &guarded{inner: c.actor, sys: s, box: c.box} },
		actor.WithMailbox(func() actor.Mailbox { return c.box }),
		actor.WithDispatcher(s.runs),
		actor.WithSupervisor(supervision),
	)
}

// Spawn starts an actor at the root of the system. Every incarnation is the same
// value: what it keeps outside its committed state must survive a restart.
func (s *System) Spawn(kind Kind, a Actor) *PID {
	props := s.props(&kind, newCradle(&kind, a))
	if kind.Resume {
		props.Configure(actor.WithGuardian(resumeRoot{s}))
	}
	return s.actors.Root.SpawnPrefix(props, kind.Name+"-")
}

// SpawnChild starts a child of the actor whose context is given.
func (s *System) SpawnChild(c Context, kind *Kind, a Actor) *PID {
	return c.SpawnPrefix(s.props(kind, newCradle(kind, a)), kind.Name+"-")
}

// ErrStopped is returned where the actor asked is not running any more.
var ErrStopped = errors.New("the broker is stopping")

// Ref is the address of an actor as messages carry it.
type Ref struct {
	sys *System
	pid *PID
}

// Ref returns the address of pid. Hold one per actor: refs are compared.
func (s *System) Ref(pid *PID) *Ref { return &Ref{s, pid} }

// Send implements msg.Ref.
func (r *Ref) Send(message any) { r.sys.Send(r.pid, message) }

// PID returns the actor's own address.
func (r *Ref) PID() *PID { return r.pid }
