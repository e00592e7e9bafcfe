package upstreams

import (
	"context"
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
	case *rt.Stopping:
		a.timer.Stop()
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
	for _, done := range a.state.haltDone {
		close(done)
	}
	a.state.haltDone = nil
}

func (a *Actor) step(c rt.Context, message any) {
	for _, e := range a.state.Step(time.Now(), message) {
		a.perform(c, &e)
	}
}

func (a *Actor) perform(c rt.Context, e *Effect) {
	switch {
	case e.To != nil:
		e.To.Send(e.Message)
	case e.Start != 0:
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

// crashed handles again, after the restart, the facts nobody tells twice.
func (a *Actor) crashed(message any) {
	switch m := message.(type) {
	case *msg.UpstreamOpened, *msg.UpstreamEnded, *msg.ClaimGranted, *msg.ClaimRefused, *msg.EvictHolder,
		*msg.SlotJoined, *msg.SlotLost, *msg.CallReply, *msg.CallFailed, *msg.SlotObserved, *msg.SlotForgotten,
		timerDue, haltNow, started:
		a.self.Send(message)
	case rt.Undeliverable:
		m.Undelivered()
	}
}
