package upstreams

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/slot"
)

// Set is the upstreams of a broker. Its methods may be called from any goroutine
// that is not an actor's.
type Set struct {
	sys *rt.System
	pid *rt.PID
}

// Start spawns an empty set. identity is the JSON clientInfo of the broker,
// nextSession numbers its sessions, slots configures the slots of isolated
// upstreams.
func Start(sys *rt.System, registry msg.Ref, identity string, nextSession func() uint64, slots func(name string) slot.Config) *Set {
	k := &keeper{sys: sys, registry: registry, identity: identity, nextSession: nextSession, slots: slots, kept: map[string]*kept{}, stopping: map[string]*leaving{}}
	kind := rt.Kind{Name: "upstreams", Children: rt.DefaultRestart, Overflow: refuse, Crashed: k.crashed, Resume: true}
	return &Set{sys, sys.Spawn(kind, k)}
}

// ErrUnknown is returned for a slot without an upstream.
var ErrUnknown = errors.New("no such upstream")

// ErrNotOurs is returned for a watched slot whose provider the broker does not
// start.
var ErrNotOurs = errors.New("its provider comes by itself, so the broker cannot restart it")

// Restart makes the connection of one upstream again.
func (s *Set) Restart(ctx context.Context, slot string) error {
	refs, err := s.refs(ctx)
	if err != nil {
		return err
	}
	u, ok := refs[slot]
	if !ok {
		return fmt.Errorf("restart upstream %q: %w", slot, ErrUnknown)
	}
	if u.cfg.Watch {
		return fmt.Errorf("restart %q: %w", slot, ErrNotOurs)
	}
	if !u.behind { // else it is started anyway
		u.ref.Send(&msg.RestartInstance{})
	}
	return nil
}

// Stop ends all upstreams, in parallel, calls in flight with them. Stopping twice is fine.
func (s *Set) Stop(ctx context.Context) error {
	_, err := s.apply(ctx, &apply{atOnce: true})
	if errors.Is(err, rt.ErrStopped) {
		return nil
	}
	return errors.Join(err, s.sys.StopAndWait(context.WithoutCancel(ctx), s.pid))
}

func (s *Set) refs(ctx context.Context) (map[string]listed, error) {
	reply := make(chan map[string]listed, 1)
	s.sys.Send(s.pid, &list{reply})
	select {
	case refs, ok := <-reply:
		if !ok {
			return nil, fmt.Errorf("list the upstreams: %w", rt.ErrStopped)
		}
		return refs, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("list the upstreams: %w", ctx.Err())
	}
}

type list struct{ reply chan<- map[string]listed }

type listed struct {
	ref    msg.Ref
	cfg    Config
	behind bool // not started yet: ref is the last one of its slot, on its way out
}

// keeper is the actor behind a Set and the parent of the upstreams.
type keeper struct {
	sys         *rt.System
	self        *rt.PID
	registry    msg.Ref
	identity    string
	nextSession func() uint64
	slots       func(name string) slot.Config

	wanted   map[string]Config
	kept     map[string]*kept
	stopping map[string]*leaving
}

// leaving is the last upstream of a slot, on its way out.
type leaving struct {
	ref     *rt.Ref
	through chan struct{} // closed once the next one has been started
}

type kept struct {
	ref   *rt.Ref
	cfg   Config
	actor *Actor // nil for an isolator
}

// owner is what the registry knows as the owner of the slot. It may be asked once the
// actor has ended.
func (u *kept) owner() msg.Ref {
	if u.actor == nil || u.actor.self == nil {
		return nil // it has never owned a slot
	}
	return u.actor.self
}

// stopped: the old upstream of a slot has left it. With handover it has kept it
// for the next one. through is closed once that one has been started.
type stopped struct {
	slot     string
	owner    msg.Ref
	handover bool
	through  chan struct{}
	failures int // to handle this
}

// lost: an upstream was given up after too many crashes, and the failure of the keeper
// came between it and the next one.
type lost struct {
	who      *rt.PID
	failures int // to handle this
}

// ownsSlot reports an upstream that keeps an ordinary slot for itself.
func (c *Config) ownsSlot() bool { return !c.Isolated && !c.Watch }

// Receive implements rt.Actor.
func (k *keeper) Receive(c rt.Context) {
	switch m := c.Message().(type) {
	case *rt.Started:
		k.self = c.Self()
	case *apply:
		if m.take() {
			m.reply <- k.apply(c, m)
		}
	case *stopped:
		k.follow(c, m)
	case *rt.Terminated:
		k.terminated(c, m.Who)
	case *lost:
		k.terminated(c, m.who)
	case *list:
		m.reply <- k.list()
	}
}

// list is what is kept, and what is started once the last upstream of its slot has
// stopped.
func (k *keeper) list() map[string]listed {
	refs := make(map[string]listed, len(k.kept))
	for slot, last := range k.stopping {
		if cfg, wanted := k.wanted[slot]; wanted {
			refs[slot] = listed{ref: last.ref, cfg: cfg, behind: true}
		}
	}
	for slot, u := range k.kept {
		refs[slot] = listed{ref: u.ref, cfg: u.cfg}
	}
	return refs
}

func (k *keeper) apply(c rt.Context, m *apply) applied {
	a := applied{stopping: make(map[string]<-chan struct{}, len(k.stopping))}
	before := map[string]Config{}
	for slot, u := range k.list() {
		before[slot] = u.cfg
	}
	k.wanted = map[string]Config{}
	for _, cfg := range m.list {
		k.wanted[cfg.Slot] = cfg
	}
	for _, slot := range slices.Sorted(maps.Keys(before)) {
		cfg, stays := k.wanted[slot]
		switch {
		case stays && k.retune(slot, cfg, before[slot]):
			a.changes.Changed = append(a.changes.Changed, slot)
			continue
		case stays && cfg.Fingerprint == before[slot].Fingerprint:
			continue
		case stays:
			a.changes.Changed = append(a.changes.Changed, slot)
		default:
			a.changes.Removed = append(a.changes.Removed, slot)
		}
		if u := k.kept[slot]; u != nil {
			k.halt(c, slot, stays && cfg.ownsSlot() && u.cfg.ownsSlot(), m.atOnce)
		}
	}
	for _, cfg := range m.list {
		if _, was := before[cfg.Slot]; !was {
			a.changes.Added = append(a.changes.Added, cfg.Slot)
		}
		k.start(c, cfg.Slot)
	}
	for slot, last := range k.stopping {
		a.stopping[slot] = last.through
	}
	return a
}

// retune hands on what can be changed without another connection; false where nothing
// was changed, or more than that.
func (k *keeper) retune(slot string, cfg, before Config) bool {
	if cfg.Fingerprint != before.Fingerprint || cfg.tuning() == before.tuning() {
		return false
	}
	if u := k.kept[slot]; u != nil {
		u.cfg = cfg
		u.ref.Send(&retune{cfg})
	}
	return true
}

// halt stops the upstream of a slot; the slot can be had again when it is through,
// with handover by the next upstream only. Calls in flight get time unless atOnce.
func (k *keeper) halt(c rt.Context, slot string, handover, atOnce bool) {
	self, done, u, through := c.Self(), make(chan struct{}), k.kept[slot], make(chan struct{})
	u.ref.Send(haltNow{done: done, handover: handover, atOnce: atOnce})
	k.stopping[slot] = &leaving{u.ref, through}
	delete(k.kept, slot)
	k.sys.Go(func() {
		<-done
		k.sys.Send(self, &stopped{slot: slot, owner: u.owner(), handover: handover, through: through})
	})
}

// follow starts what comes behind an upstream that has stopped. It may be handled
// again after a failure half-way.
func (k *keeper) follow(c rt.Context, m *stopped) {
	k.free(m)
	k.start(c, m.slot)
	if next, wanted := k.wanted[m.slot]; m.handover && !(wanted && next.ownsSlot()) {
		k.registry.Send(&msg.DisownSlot{Slot: m.slot, Owner: m.owner})
	}
	close(m.through)
}

// free makes room for the next upstream, unless another one is on its way out of
// the slot by now.
func (k *keeper) free(m *stopped) {
	if last := k.stopping[m.slot]; last != nil && last.through == m.through {
		delete(k.stopping, m.slot)
	}
}

// maxFollows is how often what has stopped is followed by the next; after that it
// takes another Apply.
const maxFollows = 3

// crashed handles again that an upstream has stopped, which nobody tells twice.
func (k *keeper) crashed(message any) {
	switch m := message.(type) {
	case *stopped:
		k.followAgain(m)
	case *rt.Terminated:
		k.replaceAgain(&lost{who: m.Who})
	case *lost:
		k.replaceAgain(m)
	default:
		rt.Refuse(message)
	}
}

func (k *keeper) followAgain(m *stopped) {
	if m.failures++; m.failures < maxFollows {
		k.sys.Send(k.self, m)
		return
	}
	k.sys.Log().Error(fmt.Sprintf("[broker] upstream %q was stopped, and the next one could not be started", m.slot))
	k.free(m)
	if m.handover {
		k.registry.Send(&msg.DisownSlot{Slot: m.slot, Owner: m.owner})
	}
	close(m.through)
}

// start starts what is wanted in a slot and not there.
func (k *keeper) start(c rt.Context, slot string) {
	cfg, wanted := k.wanted[slot]
	if !wanted || k.kept[slot] != nil || k.stopping[slot] != nil {
		return
	}
	k.kept[slot] = k.spawn(c, cfg)
}

func (k *keeper) spawn(c rt.Context, cfg Config) *kept {
	if cfg.Isolated {
		i := &isolator{
			sys: k.sys, registry: k.registry, cfg: cfg, slot: k.slots(cfg.Slot), identity: k.identity, nextSession: k.nextSession,
			privates: map[uint64]*private{}, leaving: map[*private]struct{}{},
		}
		pid := k.sys.SpawnChild(c, &rt.Kind{Name: "isolator", Children: rt.DefaultRestart, Overflow: refuse, Crashed: i.crashed}, i)
		return &kept{ref: k.sys.Ref(pid), cfg: cfg}
	}
	a := newActor(k.sys, k.registry, cfg, k.identity, k.nextSession())
	pid := k.sys.SpawnChild(c, &rt.Kind{Name: "upstream", Overflow: refuse, Crashed: a.crashed}, a)
	return &kept{ref: k.sys.Ref(pid), cfg: cfg, actor: a}
}

// refuse answers what an actor cannot take.
func refuse(message any) { rt.Refuse(message) }

// terminated starts again what was given up after too many crashes. It may be handled
// again after a failure: what was given up is listed until the next one is.
func (k *keeper) terminated(c rt.Context, who *rt.PID) {
	if slot, u := k.find(who); u != nil { // and not halted meanwhile
		k.kept[slot] = k.spawn(c, k.wanted[slot])
	}
}

func (k *keeper) replaceAgain(m *lost) {
	if m.failures++; m.failures < maxFollows {
		k.sys.Send(k.self, m)
		return
	}
	if slot, u := k.find(m.who); u != nil {
		k.sys.Log().Error(fmt.Sprintf("[broker] upstream %q was given up, and the next one could not be started", slot))
		delete(k.kept, slot)
		if u.cfg.ownsSlot() {
			k.registry.Send(&msg.DisownSlot{Slot: slot, Owner: u.owner()})
		}
	}
}

func (k *keeper) find(who *rt.PID) (slot string, u *kept) {
	for slot, u := range k.kept {
		if u.ref.PID().Id == who.Id {
			return slot, u
		}
	}
	return "", nil
}

// ControlMessage implements rt.Control.
func (*stopped) ControlMessage() {}

// ControlMessage implements rt.Control.
func (*lost) ControlMessage() {}

// Undelivered implements rt.Undeliverable.
func (m *list) Undelivered() { close(m.reply) }
