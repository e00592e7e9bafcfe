package upstreams

import (
	"context"
	"errors"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
)

// Actor is the shell around a State. The value outlives a restart.
type Actor struct {
	sys    *rt.System
	state  *State
	self   *rt.Ref
	timer  rt.Timer
	cancel func() // of the driver being started

	rest  []Effect // of the last step, to be performed
	doing Effect   // is being performed while busy
	busy  bool     // the last step is committed, and not all of it performed
}

func newActor(sys *rt.System, registry msg.Ref, cfg Config, identity string, session uint64) *Actor {
	state := New(cfg, identity, session)
	state.registry = registry
	return &Actor{sys: sys, state: state}
}

// Receive implements rt.Actor.
func (a *Actor) Receive(c rt.Context) {
	switch m := c.Message().(type) {
	case *rt.Started:
		if a.self == nil {
			a.self = a.sys.Ref(c.Self())
			a.state.self = a.self
			a.self.Send(started{})
		}
		a.performRest(c)
	case *rt.Stopping:
		a.timer.Stop()
		a.tellRest()
		a.abandon()
	case *rt.Stopped, *rt.Restarting:
	case *msg.DescribeInstance:
		m.Reply <- a.state.Describe()
	default:
		a.step(c, m)
	}
}

// abandon ends what an actor that is given up leaves behind.
func (a *Actor) abandon() {
	defer func() { // a driver that cannot be stopped keeps nobody waiting
		for _, done := range a.state.haltDone {
			close(done)
		}
		a.state.haltDone = nil
	}()
	if a.state.cfg.Watch {
		a.state.registry.Send(&msg.UnwatchSlots{Watcher: a.self})
	}
	if holding := a.state.holding; holding != nil {
		holding.Send(&msg.ProviderGone{Gen: a.state.slotGen})
	}
	if slot := a.state.slot; slot != nil {
		slot.Send(&msg.LeaveSlot{Session: a.state.session})
	}
	if driver := a.state.driver; driver != nil {
		driver.Stop(a.state.cfg.Grace)
	} else if a.cancel != nil {
		a.cancel()
	}
}

func (a *Actor) step(c rt.Context, message any) {
	a.rest = a.state.Step(time.Now(), message)
	a.performRest(c)
}

// performRest does what the last step has come to. An effect that panics is left
// out; the restarted actor goes on behind it, since the state believes it all done.
func (a *Actor) performRest(c rt.Context) {
	a.busy = true
	for len(a.rest) > 0 {
		a.doing, a.rest = a.rest[0], a.rest[1:]
		a.perform(c, &a.doing)
	}
	a.busy, a.doing, a.rest = false, Effect{}, nil
}

// tellRest tells others what an actor that is given up has not come to tell them.
func (a *Actor) tellRest() {
	for i := range a.rest {
		switch e := &a.rest[i]; {
		case e.To != nil:
			e.To.Send(e.Message)
		case e.Done != nil:
			close(e.Done)
		}
	}
	a.rest = nil
}

func (a *Actor) perform(c rt.Context, e *Effect) {
	switch {
	case e.To != nil:
		e.To.Send(e.Message)
	case e.Start != 0:
		a.cancel = nil
		a.cancel = a.state.cfg.Start(a.self, e.Start)
	case e.Cancel:
		if a.cancel != nil {
			a.cancel()
		}
	case e.Driver != nil && e.Slot != nil:
		e.Driver.Attach(e.Slot, e.Gen)
	case e.Driver != nil:
		e.Driver.Stop(e.Grace)
	case e.WakeGen != 0:
		a.timer.Arm(a.sys, c.Self(), e.Wake, timerDue{e.WakeGen})
	case e.Log != "":
		a.sys.Log().Log(context.Background(), e.Level, e.Log)
	case e.Done != nil:
		close(e.Done)
	case e.Stop:
		c.Stop(c.Self())
	}
}

// How a driver ends whose start, or whose stop, panicked. One that did not hear of its
// stop may live on: what it says is that of an older generation by then.
var (
	errStart = errors.New("the broker failed while starting it")
	errStop  = errors.New("the broker failed while stopping it")
)

// crashed handles again, after the restart, the facts nobody tells twice. Where
// the step is committed its message has been handled.
func (a *Actor) crashed(message any) {
	if a.busy {
		a.busy = false
		switch e := &a.doing; {
		case e.Start != 0:
			a.self.Send(&msg.UpstreamEnded{Gen: e.Start, Err: errStart})
		case e.Stray:
		case e.Cancel, e.Driver != nil && e.Slot == nil:
			a.self.Send(&msg.UpstreamEnded{Gen: a.state.gen, Err: errStop})
		}
		return
	}
	switch m := message.(type) {
	case *msg.UpstreamOpened, *msg.UpstreamDetected, *msg.UpstreamEnded, *msg.ClaimGranted, *msg.ClaimRefused, *msg.EvictHolder,
		*msg.ProviderDrained, *msg.SlotJoined, *msg.SlotLost, *msg.SlotReplaced, *msg.CallReply, *msg.CallFailed, *msg.SlotObserved, *msg.SlotForgotten, *msg.SlotFree, *retune,
		timerDue, haltNow, started:
		a.self.Send(message)
	default:
		rt.Refuse(m)
	}
}
