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
	k := &keeper{sys: sys, registry: registry, identity: identity, nextSession: nextSession, slots: slots, kept: map[string]*kept{}, stopping: map[string]chan struct{}{}}
	kind := rt.Kind{Name: "upstreams", Children: rt.DefaultRestart, Overflow: refuse, Crashed: k.crashed, Resume: true}
	return &Set{sys, sys.Spawn(kind, k)}
}

// Changes are what a new configuration came to, by slot.
type Changes struct{ Added, Removed, Changed []string }

// Apply makes the set that of list: upstreams that are not in it are stopped,
// changed ones are stopped and started, new ones started; the others go on as if
// nothing had happened. It returns once all that had to stop have stopped, and
// calls on those that start are held back and not refused.
func (s *Set) Apply(ctx context.Context, list []Config) (Changes, error) {
	reply := make(chan applied, 1)
	s.sys.Send(s.pid, &apply{list, reply})
	select {
	case a, ok := <-reply:
		if !ok {
			return Changes{}, fmt.Errorf("apply the upstreams: %w", rt.ErrStopped)
		}
		for _, through := range a.stopping {
			select {
			case <-through:
			case <-ctx.Done():
				return a.changes, fmt.Errorf("wait for upstreams to stop: %w", ctx.Err())
			}
		}
		_, err := s.Instances(ctx) // who answers has told the registry
		return a.changes, err
	case <-ctx.Done():
		return Changes{}, fmt.Errorf("apply the upstreams: %w", ctx.Err())
	}
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
	u.ref.Send(&msg.RestartInstance{})
	return nil
}

// Stop ends all upstreams, in parallel. Stopping twice is fine.
func (s *Set) Stop(ctx context.Context) error {
	_, err := s.Apply(ctx, nil)
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

type apply struct {
	list  []Config
	reply chan<- applied
}

type applied struct {
	changes  Changes
	stopping []<-chan struct{}
}

type list struct{ reply chan<- map[string]listed }

type listed struct {
	ref msg.Ref
	cfg Config
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
	stopping map[string]chan struct{} // the last incarnation of a slot is on its way out; closed once the next one has been started
}

type kept struct {
	ref *rt.Ref
	cfg Config
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

// ownsSlot reports an upstream that keeps an ordinary slot for itself.
func (c *Config) ownsSlot() bool { return !c.Isolated && !c.Watch }

// Receive implements rt.Actor.
func (k *keeper) Receive(c rt.Context) {
	switch m := c.Message().(type) {
	case *rt.Started:
		k.self = c.Self()
	case *apply:
		m.reply <- k.apply(c, m.list)
	case *stopped:
		k.follow(c, m)
	case *rt.Terminated:
		k.terminated(c, m)
	case *list:
		refs := make(map[string]listed, len(k.kept))
		for slot, u := range k.kept {
			refs[slot] = listed{u.ref, u.cfg}
		}
		m.reply <- refs
	}
}

func (k *keeper) apply(c rt.Context, list []Config) applied {
	var a applied
	k.wanted = map[string]Config{}
	for _, cfg := range list {
		k.wanted[cfg.Slot] = cfg
	}
	before := slices.Sorted(maps.Keys(k.kept))
	for _, slot := range before {
		cfg, stays := k.wanted[slot]
		switch {
		case stays && cfg.Fingerprint == k.kept[slot].cfg.Fingerprint:
			continue
		case stays:
			a.changes.Changed = append(a.changes.Changed, slot)
		default:
			a.changes.Removed = append(a.changes.Removed, slot)
		}
		k.halt(c, slot, stays && cfg.ownsSlot() && k.kept[slot].cfg.ownsSlot())
	}
	for _, cfg := range list {
		if !slices.Contains(before, cfg.Slot) {
			a.changes.Added = append(a.changes.Added, cfg.Slot)
		}
		k.start(c, cfg.Slot)
	}
	for _, slot := range slices.Sorted(maps.Keys(k.stopping)) {
		a.stopping = append(a.stopping, k.stopping[slot])
	}
	return a
}

// halt stops the upstream of a slot; the slot can be had again when it is through,
// with handover by the next upstream only.
func (k *keeper) halt(c rt.Context, slot string, handover bool) {
	self, done, owner, through := c.Self(), make(chan struct{}), k.kept[slot].ref, make(chan struct{})
	owner.Send(haltNow{done, handover})
	k.stopping[slot] = through
	delete(k.kept, slot)
	k.sys.Go(func() {
		<-done
		k.sys.Send(self, &stopped{slot: slot, owner: owner, handover: handover, through: through})
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
	if k.stopping[m.slot] == m.through {
		delete(k.stopping, m.slot)
	}
}

// maxFollows is how often what has stopped is followed by the next; after that it
// takes another Apply.
const maxFollows = 3

// crashed handles again that an upstream has stopped, which nobody tells twice.
func (k *keeper) crashed(message any) {
	m, ok := message.(*stopped)
	if !ok {
		rt.Refuse(message)
		return
	}
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
	k.kept[slot] = &kept{k.sys.Ref(k.spawn(c, cfg)), cfg}
}

func (k *keeper) spawn(c rt.Context, cfg Config) *rt.PID {
	if cfg.Isolated {
		i := &isolator{
			sys: k.sys, registry: k.registry, cfg: cfg, slot: k.slots(cfg.Slot), identity: k.identity, nextSession: k.nextSession,
			privates: map[uint64]*private{}, leaving: map[*private]struct{}{},
		}
		return k.sys.SpawnChild(c, &rt.Kind{Name: "isolator", Children: rt.DefaultRestart, Overflow: refuse, Crashed: i.crashed}, i)
	}
	a := newActor(k.sys, k.registry, cfg, k.identity, k.nextSession())
	return k.sys.SpawnChild(c, &rt.Kind{Name: "upstream", Overflow: refuse, Crashed: a.crashed}, a)
}

// refuse answers what an actor cannot take.
func refuse(message any) { rt.Refuse(message) }

// terminated starts again what was given up after too many crashes.
func (k *keeper) terminated(c rt.Context, m *rt.Terminated) {
	for slot, u := range k.kept {
		if u.ref.PID().Id == m.Who.Id {
			delete(k.kept, slot)
			k.start(c, slot)
			return
		}
	}
}

// ControlMessage implements rt.Control.
func (*apply) ControlMessage() {}

// ControlMessage implements rt.Control.
func (*stopped) ControlMessage() {}

// Undelivered implements rt.Undeliverable.
func (m *apply) Undelivered() { close(m.reply) }

// Undelivered implements rt.Undeliverable.
func (m *list) Undelivered() { close(m.reply) }
