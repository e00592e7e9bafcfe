package slot

import (
	"context"
	"log/slog"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/wire"
)

// Actor is the shell around a State. The value outlives a restart: the state in
// it is what the last completed message left.
type Actor struct {
	sys      *rt.System
	registry msg.Ref
	state    *State
	self     *rt.Ref
	timer    rt.Timer
	restarts int
	refused  [][]byte // frames of the last step that its conduit did not take
}

// NewActor returns the actor of a slot; registry hears of its changes.
func NewActor(sys *rt.System, registry msg.Ref, name string, cfg Config) *Actor {
	return &Actor{sys: sys, registry: registry, state: New(name, cfg)}
}

// Kind returns how the actor is to be spawned.
func (a *Actor) Kind() rt.Kind {
	return rt.Kind{Name: "slot", Overflow: a.refuse, Crashed: a.crashed}
}

// Receive implements rt.Actor.
func (a *Actor) Receive(c rt.Context) {
	switch m := c.Message().(type) {
	case *rt.Started:
		if a.self == nil {
			a.self = a.sys.Ref(c.Self())
			a.state.self = a.self
		}
	case *rt.Stopping:
		a.timer.Stop()
		if !a.state.retired {
			a.step(c, giveUp{})
		}
	case *rt.Restarting:
		a.restarts++
	case *rt.Stopped:
	case *msg.DescribeSlot:
		m.Reply <- a.info()
	default:
		if refused := (refused{a.refused}); len(refused.frames) > 0 {
			a.refused = nil
			a.step(c, refused)
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
		case e.Conduit != nil:
			if !e.Conduit.Send(e.Frame, e.Class) {
				a.refused = append(a.refused, e.Frame)
			}
		case e.Credit != nil:
			e.Credit.Give()
		case e.WakeGen != 0:
			a.timer.Arm(a.sys, c.Self(), e.Wake, &msg.TimerDue{Gen: e.WakeGen})
		case e.Changed:
			a.registry.Send(&msg.SlotChanged{Info: a.info()})
			if e.Asked {
				a.registry.Send(&msg.SlotRetired{Name: a.state.name})
			}
		case e.Failing:
			a.registry.Send(&msg.SlotFailing{Name: a.state.name, Ref: a.self})
		case e.Retired:
			a.registry.Send(&msg.SlotRetired{Name: a.state.name, Gone: true})
			c.Stop(c.Self())
		case e.Log != "":
			a.sys.Log().Log(context.Background(), e.Level, e.Log)
		}
	}
}

func (a *Actor) info() msg.SlotInfo {
	info := a.state.Info()
	info.Restarts = a.restarts
	return info
}

// refuse answers what found the mailbox full or the slot gone. It runs on the
// sender's goroutine.
func (a *Actor) refuse(message any) {
	switch m := message.(type) {
	case *msg.ClientCall:
		m.Client.Send(&msg.CallFailed{Call: m.Call, Err: wire.SlotBusy(a.state.name, "the slot's queue", rt.DefaultMailbox)})
	case *msg.ClientNote:
		a.sys.Log().Warn("[broker] a client notification was dropped: the queue of its slot is full", slog.String("slot", a.state.name))
	default:
		rt.Refuse(m)
	}
}

// crashed answers the one caller of the message whose handling failed.
func (a *Actor) crashed(message any) {
	switch m := message.(type) {
	case *msg.ClientCall:
		m.Client.Send(&msg.CallFailed{Call: m.Call, Err: wire.Crashed(a.state.name)})
	case *msg.ProviderFrame:
		m.Undelivered()
		if id, ok := wire.ParseBrokerID(m.Frame.Raw(m.Frame.ID)); ok && m.Frame.IsResponse() {
			a.self.Send(&msg.CallCrashed{ID: id})
		}
	case *msg.ProviderRefusal:
		m.Undelivered()
		if id, ok := wire.ParseBrokerID(m.ID); ok {
			a.self.Send(&msg.CallCrashed{ID: id})
		}
	case *msg.JoinSlot:
		m.Client.Send(&msg.JoinRefused{Err: wire.Crashed(a.state.name)})
	case *msg.ClaimSlot:
		m.Claimant.Send(m.Refused(wire.CrashedClaim(a.state.name), ""))
	case *msg.TimerDue, *msg.ProviderGone, *msg.LivenessReport, *msg.LeaveSlot, *msg.CallerLeft, *msg.CallerLate,
		*msg.WithdrawClaim, *msg.CallCrashed, *msg.RetireSlot, *msg.AskUndeliverable, *msg.StreamChanged,
		*msg.OwnSlot, *msg.DisownSlot, *msg.HolderExpected, *msg.HolderFailed, *msg.ProviderRenewed, *msg.DrainProvider:
		// Facts that nobody tells twice are handled again after the restart; a
		// slot that fails at one each time is given up.
		a.self.Send(message)
	default:
		rt.Refuse(m)
	}
}
