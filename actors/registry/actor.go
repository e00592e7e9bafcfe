package registry

import (
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/slot"
	"mcpbroker/actors/wire"
)

// Actor is the shell around the registry's State and the parent of all slots.
type Actor struct {
	sys    *rt.System
	slots  func(name string) slot.Config
	state  *State
	self   *rt.Ref
	byPID  map[string]string // slot actor's id to its name
	byName map[string]*rt.PID

	stopping bool // slots that end now are not replaced
}

// Start spawns the registry. slots gives each new slot its configuration.
func Start(sys *rt.System, cfg Config, slots func(name string) slot.Config) *rt.Ref {
	a := &Actor{sys: sys, slots: slots, state: New(cfg), byPID: map[string]string{}, byName: map[string]*rt.PID{}}
	kind := rt.Kind{Name: "registry", Mailbox: 1 << 14, Headroom: 1 << 16, Overflow: rt.Refuse, Crashed: crashed, Children: rt.DefaultRestart, Resume: true}
	return sys.Ref(sys.Spawn(kind, a))
}

// Receive implements rt.Actor.
func (a *Actor) Receive(c rt.Context) {
	switch m := c.Message().(type) {
	case *rt.Started:
		if a.self == nil {
			a.self = a.sys.Ref(c.Self())
		}
	case *rt.Stopping:
		a.stopping = true
	case *rt.Stopped, *rt.Restarting:
	case *rt.Terminated:
		a.slotTerminated(c, m)
	case *msg.SlotFailing:
		a.slotFailing(c, m)
	case *msg.ListInventory:
		m.Reply <- a.state.Inventory()
	case *msg.DescribeSlot:
		if e := a.state.Lookup(m.Slot); e != nil && !e.retiring {
			e.Ref.Send(m)
			return
		}
		close(m.Reply)
	default:
		a.perform(c, a.state.Step(time.Now(), m))
	}
}

func (a *Actor) perform(c rt.Context, effects []Effect) {
	for i := range effects {
		switch e := &effects[i]; {
		case e.Create != nil:
			a.create(c, e.Create)
		case e.Stop != nil:
			a.stop(c, e.Stop)
		case e.To != nil:
			e.To.Ref.Send(e.Message)
		case e.Direct != nil:
			e.Direct.Send(e.Message)
		}
	}
}

func (a *Actor) create(c rt.Context, e *Entry) {
	s := slot.NewActor(a.sys, a.self, e.Name, a.slots(e.Name))
	kind := s.Kind()
	pid := a.sys.SpawnChild(c, &kind, s)
	e.Ref = a.sys.Ref(pid)
	a.byPID[pid.Id] = e.Name
	a.byName[e.Name] = pid
}

// stop ends a slot whose place in the table is taken already.
func (a *Actor) stop(c rt.Context, e *Entry) {
	if pid := a.byName[e.Name]; pid != nil {
		delete(a.byName, e.Name)
		c.Stop(pid)
	}
}

// slotFailing is for the slot that has the name now: the end of one, which the
// system reports, overtakes what it said before.
func (a *Actor) slotFailing(c rt.Context, m *msg.SlotFailing) {
	ref, ok := m.Ref.(*rt.Ref)
	if current := a.byName[m.Name]; ok && current != nil && current.Id == ref.PID().Id {
		a.perform(c, a.state.Step(time.Now(), m))
	}
}

// slotTerminated removes a slot that was given up. A slot that retired has its
// place in the table taken already, perhaps by a successor of the same name.
func (a *Actor) slotTerminated(c rt.Context, m *rt.Terminated) {
	name := a.byPID[m.Who.Id]
	delete(a.byPID, m.Who.Id)
	if current := a.byName[name]; current == nil || current.Id != m.Who.Id {
		return
	}
	delete(a.byName, name)
	if !a.stopping {
		a.perform(c, a.state.Step(time.Now(), &msg.SlotDied{Name: name}))
	}
}

// crashed answers the one caller of the message whose handling failed.
func crashed(message any) {
	switch m := message.(type) {
	case *msg.JoinSlot:
		m.Client.Send(&msg.JoinRefused{Err: wire.Crashed(m.Slot)})
	case *msg.ClaimSlot:
		m.Claimant.Send(m.Refused(wire.CrashedClaim(m.Slot), ""))
	default:
		rt.Refuse(message)
	}
}
