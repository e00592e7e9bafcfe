package upstreams

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/slot"
	"mcpbroker/actors/wire"
)

// An isolated upstream has one connection for each client session, so that what
// its server keeps in memory is no client's but one's (spec 07 row 19). Each
// session gets a slot of its own under the same name, which nobody else can find,
// with an upstream of its own in it. The isolator stands in the registry in their
// place: it makes such a pair when a session joins and ends it when it leaves.

// maxIsolated is how many sessions an isolated upstream serves at once.
const maxIsolated = 256

// isolator is the actor that stands for an isolated upstream. A failure restarts
// it, which ends its pairs; their sessions come back for others.
type isolator struct {
	sys         *rt.System
	registry    msg.Ref
	cfg         Config
	slot        slot.Config
	identity    string
	nextSession func() uint64

	self     *rt.Ref
	since    time.Time
	privates map[uint64]*private
	waiting  queue                 // for room
	leaving  map[*private]struct{} // their upstreams are being stopped
	halts    []chan<- struct{}
	story    story

	restarting bool // its children are being stopped, which a new one would hold up for ever
}

// private is the slot and the upstream of one session.
type private struct {
	session  uint64
	kind     msg.ClientKind
	slot     *rt.Ref
	upstream *rt.Ref
	entry    *directory
	joined   bool // the slot has reported the session
	info     msg.SlotInfo
}

// directory is the registry of a private slot: there is one slot in it. The
// session enters once the slot has its owner, so that no call of it is refused.
type directory struct {
	owner *rt.Ref // the isolator
	p     *private
	join  atomic.Pointer[msg.JoinSlot] // of the session; nil once it has been passed on
}

// refuse tells a session that has not entered that it will not.
func (d *directory) refuse() {
	if join := d.join.Swap(nil); join != nil {
		join.Undelivered()
	}
}

// Send implements msg.Ref.
func (d *directory) Send(message any) {
	switch m := message.(type) {
	case *msg.SlotChanged:
		d.owner.Send(&privateChanged{d.p, m.Info})
	case *msg.HolderExpected:
		d.p.slot.Send(m)
		if join := d.join.Swap(nil); join != nil {
			d.p.slot.Send(join)
		}
	case *privateFailed, *privateServes:
		d.owner.Send(m)
	case *msg.OwnSlot, *msg.JoinSlot, *msg.ClaimSlot, *msg.HolderFailed, *msg.DisownSlot:
		d.p.slot.Send(message)
	}
}

// privateChanged is what a private slot says of itself.
type privateChanged struct {
	p    *private
	info msg.SlotInfo
}

// privateEnded: its upstream is through.
type privateEnded struct{ p *private }

// ControlMessage implements rt.Control.
func (*privateChanged) ControlMessage() {}

// ControlMessage implements rt.Control.
func (*privateEnded) ControlMessage() {}

// Receive implements rt.Actor.
func (i *isolator) Receive(c rt.Context) {
	switch m := c.Message().(type) {
	case *rt.Started:
		i.start(c)
	case *rt.Restarting:
		i.restarting = true
	case *rt.Stopping:
		i.registry.Send(&msg.ReleaseSlot{Slot: i.cfg.Slot, Ref: i.self})
		i.turnAway()
		i.through()
	case *rt.Terminated:
		i.lost(c, m.Who)
	case *msg.JoinSlot:
		i.join(c, m)
	case *msg.LeaveSlot:
		i.leave(m)
	case *msg.DescribeSlot:
		i.survey(m)
	case *msg.DescribeInstance:
		i.describe(m)
	case *privateChanged:
		i.changed(c, m)
	case *privateEnded:
		i.ended(c, m.p)
	case *privateFailed:
		i.story.failed(m)
	case *privateServes:
		i.story.serves(m)
	case *retune:
		i.cfg = m.cfg
		for _, p := range i.privates {
			p.upstream.Send(m)
		}
	case roomMade:
		i.roomMade(c)
	case *msg.RestartInstance:
		for _, p := range i.privates {
			p.upstream.Send(m)
		}
	case *msg.ClaimSlot:
		err := wire.ManagedSlot(i.cfg.Slot)
		m.Claimant.Send(m.Refused(err, "managed by an upstream"))
	case haltNow:
		i.halt(c, m)
	}
}

func (i *isolator) start(c rt.Context) {
	i.restarting = false
	if i.self != nil {
		i.letIn(c)
		return
	}
	i.self, i.since = i.sys.Ref(c.Self()), time.Now()
	i.registry.Send(&msg.HoldReserved{Slot: i.cfg.Slot, Ref: i.self})
	i.tell()
}

func (i *isolator) tell() { i.registry.Send(&msg.SlotChanged{Info: i.info()}) }

func (i *isolator) join(c rt.Context, m *msg.JoinSlot) {
	if p := i.privates[m.Session]; p != nil {
		p.slot.Send(asCaller(m))
		return
	}
	switch {
	case len(i.halts) > 0:
		m.Undelivered()
	case len(i.privates) >= maxIsolated:
		i.await(m)
	default:
		i.enter(c, m)
	}
}

// enter makes the pair of a session.
func (i *isolator) enter(c rt.Context, m *msg.JoinSlot) {
	p := &private{session: m.Session, kind: m.Kind}
	registry := &directory{owner: i.self, p: p}
	registry.join.Store(asCaller(m))
	p.entry = registry
	s := slot.NewActor(i.sys, registry, i.cfg.Slot, i.slot)
	slotKind := s.Kind()
	p.slot = i.sys.Ref(i.sys.SpawnChild(c, &slotKind, s))
	u := newActor(i.sys, registry, i.cfg, i.identity, i.nextSession())
	p.upstream = i.sys.Ref(i.sys.SpawnChild(c, &rt.Kind{Name: "upstream", Overflow: refuse, Crashed: u.crashed}, u))
	i.privates[m.Session] = p
	i.tell()
}

// asCaller lets a session of the broker's own keep its private slot alive.
func asCaller(m *msg.JoinSlot) *msg.JoinSlot {
	own := *m
	if own.Kind == msg.BrokerClient {
		own.Kind = msg.HTTPClient
	}
	return &own
}

// changed ends the pair of a session that has left.
func (i *isolator) changed(c rt.Context, m *privateChanged) {
	m.p.info = m.info
	m.p.joined = m.p.joined || m.info.Callers() > 0
	if m.info.Callers() > 0 || !m.p.joined || i.privates[m.p.session] != m.p {
		return
	}
	delete(i.privates, m.p.session)
	i.end(m.p, true)
	i.tell()
	i.letIn(c)
}

// end stops the upstream of a session; the slot follows once it is through. Calls in
// flight get time unless atOnce.
func (i *isolator) end(p *private, atOnce bool) {
	done := make(chan struct{})
	i.leaving[p] = struct{}{}
	p.upstream.Send(haltNow{done: done, atOnce: atOnce})
	i.sys.Go(func() {
		<-done
		i.self.Send(&privateEnded{p})
	})
}

// lost ends a pair of which one has stopped that nobody told to: it was given up
// after too many failures.
func (i *isolator) lost(c rt.Context, who *rt.PID) {
	for _, p := range i.privates {
		if p.slot.PID().Id == who.Id || p.upstream.PID().Id == who.Id {
			delete(i.privates, p.session)
			i.end(p, true)
			i.tell()
			if !i.restarting {
				i.letIn(c)
			}
			return
		}
	}
}

func (i *isolator) ended(c rt.Context, p *private) {
	delete(i.leaving, p)
	p.entry.refuse()
	c.Stop(p.slot.PID())
	if len(i.halts) > 0 && len(i.leaving) == 0 {
		c.Stop(c.Self())
	}
}

// halt ends all pairs.
func (i *isolator) halt(c rt.Context, m haltNow) {
	i.halts = append(i.halts, m.done)
	i.turnAway()
	for session, p := range i.privates {
		delete(i.privates, session)
		i.end(p, m.atOnce)
	}
	if len(i.leaving) == 0 {
		c.Stop(c.Self())
	}
}

// crashed handles again, after the restart, the facts nobody tells twice.
func (i *isolator) crashed(message any) {
	switch message.(type) {
	case haltNow, *privateChanged, *privateEnded, *privateFailed, *privateServes, *retune, roomMade, *msg.LeaveSlot:
		i.self.Send(message)
	default:
		refuse(message)
	}
}

func (i *isolator) through() {
	for _, done := range i.halts {
		close(done)
	}
	i.halts = nil
}

// survey asks the private slots how they are now, beside the actor. For one that
// does not answer counts what it said last.
func (i *isolator) survey(m *msg.DescribeSlot) {
	info := i.info()
	info.PendingCount, info.SubscriptionCount = 0, 0
	var slots []*rt.Ref
	var last []msg.SlotInfo
	for _, p := range i.privates {
		slots, last = append(slots, p.slot), append(last, p.info)
	}
	i.sys.Go(func() {
		for n, now := range ask(slots, m.Slot) {
			if now == nil {
				now = &last[n]
			}
			info.PendingCount += now.PendingCount
			info.SubscriptionCount += now.SubscriptionCount
			if at := now.OldestPending; !at.IsZero() && (info.OldestPending.IsZero() || at.Before(info.OldestPending)) {
				info.OldestPending = at
			}
		}
		m.Reply <- info
	})
}

// info is the line of all private slots together. The slot counts as served: a
// session that joins is.
func (i *isolator) info() msg.SlotInfo {
	info := msg.SlotInfo{
		Name: i.cfg.Slot, Transport: msg.Upstream, Connected: true, Aggregate: i.cfg.Aggregate,
		ConnectedSince: i.since, Gen: 1, Answered: true, MaxPending: i.slot.MaxPending,
	}
	for _, p := range i.privates {
		p.kind.Count(&info)
		info.PendingCount += p.info.PendingCount
		info.SubscriptionCount += p.info.SubscriptionCount
	}
	return info
}

// inOrder lists the pairs by the numbers of their sessions.
func (i *isolator) inOrder() []*private {
	all := make([]*private, 0, len(i.privates))
	for _, session := range slices.Sorted(maps.Keys(i.privates)) {
		all = append(all, i.privates[session])
	}
	return all
}
