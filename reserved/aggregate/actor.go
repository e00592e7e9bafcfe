package aggregate

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/wire"
)

// Actor is the shell around a State.
type Actor struct {
	sys      *rt.System
	registry msg.Ref
	state    *State
	self     *rt.Ref
	timer    rt.Timer
}

// mailbox holds what all sessions and all members send at once.
const (
	mailbox  = 1 << 14
	headroom = 1 << 16
)

// Start spawns the server. It watches the registry's slots and joins those that
// ask for it; clients reach it once the registry has been told to hold the slot
// for it.
func Start(sys *rt.System, registry msg.Ref, cfg Config) *rt.Ref {
	if cfg.Trace == nil {
		cfg.Trace = rt.FreshTraceparent
	}
	if cfg.ID == "" {
		cfg.ID = rand.Text()
	}
	a := &Actor{sys: sys, registry: registry}
	a.state = NewState(cfg, registry, func(session uint64) msg.Ref { return &memberRef{self: a.self, session: session} })
	kind := rt.Kind{Name: "aggregate", Mailbox: mailbox, Headroom: headroom, Overflow: a.refuse, Crashed: a.crashed, Resume: true}
	return sys.Ref(sys.Spawn(kind, a))
}

// Receive implements rt.Actor.
func (a *Actor) Receive(c rt.Context) {
	switch m := c.Message().(type) {
	case *rt.Started:
		a.self = a.sys.Ref(c.Self())
		a.state.self = a.self
		a.step(started{})
	case *rt.Stopping:
		a.timer.Stop()
		a.step(giveUp{})
	case *rt.Stopped, *rt.Restarting:
	case *msg.DescribeSlot:
		m.Reply <- a.state.Info()
	case *DescribeMembers:
		m.Reply <- a.state.Members()
	case *again:
		a.step(m.message)
	case *listChanged:
		m.taken()
		a.step(m)
	default:
		a.step(m)
	}
}

func (a *Actor) step(message any) {
	effects := a.state.Step(time.Now(), message)
	for i := range effects {
		a.perform(&effects[i])
	}
}

func (a *Actor) perform(e *Effect) {
	switch {
	case e.To != nil:
		e.To.Send(e.Message)
	case e.Log != "":
		a.sys.Log().Log(context.Background(), e.Level, e.Log)
	case e.WakeGen != 0:
		a.timer.Arm(a.sys, a.self.PID(), e.Wake, &retryDue{gen: e.WakeGen})
	case e.Changed:
		a.registry.Send(&msg.SlotChanged{Info: a.state.Info()})
	}
}

// refuse answers what found the mailbox full or the server gone. It runs on the
// sender's goroutine.
func (a *Actor) refuse(message any) {
	switch m := message.(type) {
	case *msg.ClientCall:
		m.Client.Send(&msg.CallFailed{Call: m.Call, Err: wire.SlotBusy(wire.SlotAggregate, "the slot's queue", mailbox)})
	case *msg.ClientNote:
		a.sys.Log().Warn("[broker] a client notification was dropped: the queue of its slot is full", slog.String("slot", wire.SlotAggregate))
	case *listChanged:
		m.taken()
	default:
		rt.Refuse(m)
	}
}

// again is a message that is handled once more after it failed.
type again struct {
	control
	message any
	tries   int
}

// maxTries bounds how often a fact that nobody tells twice is handled.
const maxTries = 3

// crashed answers the one caller of the message whose handling failed.
func (a *Actor) crashed(message any) {
	tries := 1
	if m, ok := message.(*again); ok {
		message, tries = m.message, m.tries+1
	}
	switch m := message.(type) {
	case *msg.ClientCall:
		m.Client.Send(&msg.CallFailed{Call: m.Call, Err: wire.Crashed(wire.SlotAggregate)})
	case *msg.JoinSlot:
		m.Client.Send(&msg.JoinRefused{Err: wire.Crashed(wire.SlotAggregate)})
	case *fromMember:
		a.memberCrashed(m, tries)
	case *msg.ClientNote, *msg.ClientAnswer, *rt.Started, *rt.Stopping:
	case rt.Undeliverable:
		m.Undelivered()
	default:
		a.retry(message, tries)
	}
}

func (a *Actor) memberCrashed(m *fromMember, tries int) {
	if reply, ok := m.message.(*msg.CallReply); ok {
		a.self.Send(&callCrashed{session: m.session, call: reply.Call})
		return
	}
	a.retry(m, tries)
}

func (a *Actor) retry(message any, tries int) {
	if tries >= maxTries {
		a.sys.Log().Error(fmt.Sprintf("[broker] aggregate: a message was given up after %d tries: %T", tries, message))
		return
	}
	a.self.Send(&again{message: message, tries: tries})
}
