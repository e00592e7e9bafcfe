package session

import (
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
)

// Actor is the shell around a session's State.
type Actor struct {
	sys   *rt.System
	state *State
	self  *rt.Ref
	timer rt.Timer
	gone  func()
}

// NewActor returns the actor of a session; gone is called, once, when it has ended
// and what was in flight is answered.
func NewActor(sys *rt.System, registry msg.Ref, cfg Config, gone func()) *Actor {
	return &Actor{sys: sys, state: New(cfg, registry), gone: gone}
}

// Receive implements rt.Actor.
func (a *Actor) Receive(c rt.Context) {
	switch m := c.Message().(type) {
	case *rt.Started:
		a.self = a.sys.Ref(c.Self())
		a.state.self = a.self
		a.step(c, started{})
	case *rt.Stopping:
		a.timer.Stop()
		if !a.state.ended {
			a.step(c, &msg.CloseSession{})
		}
		a.forget()
	case *rt.Stopped, *rt.Restarting:
	default:
		if a.state.ended {
			rt.Refuse(m)
			return
		}
		a.step(c, m)
	}
}

var scratch rt.Scratch[Effect]

func (a *Actor) step(c rt.Context, message any) {
	a.state.effects = scratch.Get()
	effects := a.state.Step(time.Now(), message)
	a.perform(c, effects)
	a.state.effects = nil
	scratch.Put(effects)
}

func (a *Actor) perform(c rt.Context, effects []Effect) {
	for i := range effects {
		switch e := &effects[i]; {
		case e.To != nil:
			e.To.Send(e.Message)
		case e.Sink != nil:
			e.tellSink()
		case e.Credit != nil:
			e.Credit.Give()
		case e.Stream != nil && e.Event != nil:
			e.Stream.Event(e.Event.id, e.Event.frame, e.Event.class, e.Event.key)
		case e.Stream != nil:
			e.Stream.End()
		case e.Idle > 0:
			a.timer.Arm(a.sys, c.Self(), e.Idle, &msg.IdleDue{Since: e.IdleSince})
		case e.Gone:
			a.forget()
		case e.Done != nil:
			close(e.Done)
		case e.Stop:
			c.Stop(c.Self())
		}
	}
}

func (a *Actor) forget() {
	if a.gone != nil {
		a.gone()
		a.gone = nil
	}
}

func (e *Effect) tellSink() {
	switch e.Tell {
	case Reply:
		e.Sink.Reply(e.Frame)
	case Event:
		e.Sink.Event(e.Frame, e.Class)
	case Accepted:
		e.Sink.Accepted()
	case Refuse:
		e.Sink.Refuse(e.Err)
	case Closed:
		e.Sink.Closed()
	}
}
