package registry

import (
	"slices"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// Config of the registry. MaxSlots 0 means 10000; reserved slots do not count.
type Config struct{ MaxSlots int }

// State is the registry between two messages.
type State struct {
	cfg      Config
	entries  map[string]*Entry
	order    []string // of creation
	retiring int
	reserved int
	watchers []watcher

	effects []Effect
}

// watcher hears of one slot, or of all where slot is empty.
type watcher struct {
	ref  msg.Ref
	slot string
}

// Entry is one slot of the table.
type Entry struct {
	Name string
	Ref  msg.Ref // set by the shell when it performs Create

	reserved bool    // served by the broker itself
	owner    msg.Ref // the only one whose claims are let through, nil for anybody
	info     msg.SlotInfo
	lastUsed time.Time
	retiring bool
	queue    []any // what came while it was being retired
}

// Effect is one thing the shell does after a step, in order.
type Effect struct {
	Create  *Entry // start the slot's actor and set its Ref
	Stop    *Entry // stop the slot's actor
	To      *Entry // send Message to the entry's slot
	Direct  msg.Ref
	Message any
}

// New returns an empty registry.
func New(cfg Config) *State {
	if cfg.MaxSlots == 0 {
		cfg.MaxSlots = 10000
	}
	return &State{cfg: cfg, entries: map[string]*Entry{}}
}

// Step applies one message. Effects are valid until the next step.
func (s *State) Step(now time.Time, message any) []Effect {
	clear(s.effects)
	s.effects = s.effects[:0]
	switch m := message.(type) {
	case *msg.JoinSlot:
		s.refer(now, m.Slot, m)
	case *msg.ClaimSlot:
		s.claim(now, m)
	case *msg.WithdrawClaim:
		s.forwardIfKnown(m.Slot, m)
	case *msg.LeaveSlot:
		s.forwardIfKnown(m.Slot, m)
	case *msg.OwnSlot:
		s.own(now, m)
	case *msg.DisownSlot:
		s.disown(m)
	case *msg.HolderExpected:
		s.forwardIfKnown(m.Slot, m)
	case *msg.HolderFailed:
		s.forwardIfKnown(m.Slot, m)
	case *msg.HoldReserved:
		s.hold(m)
	case *msg.ReleaseSlot:
		s.release(m)
	case *msg.WatchSlots:
		s.watch(m)
	case *msg.UnwatchSlots:
		s.watchers = slices.DeleteFunc(s.watchers, func(w watcher) bool { return w.ref == m.Watcher })
	case *msg.SlotChanged:
		s.changed(now, m)
	case *msg.SlotRetired:
		s.retired(now, m)
	case *msg.SlotFailing:
		s.failing(m)
	case *msg.SlotDied:
		s.died(now, m)
	}
	return s.effects
}

func (s *State) claim(now time.Time, m *msg.ClaimSlot) {
	if wire.Reserved(m.Slot) {
		s.reply(m.Claimant, m.Refused(wire.ReservedSlot(m.Slot), "reserved system slot"))
		return
	}
	if e := s.entries[m.Slot]; e != nil && e.owner != nil && e.owner != m.Claimant {
		s.reply(m.Claimant, m.Refused(wire.ManagedSlot(m.Slot), "managed by an upstream"))
		return
	}
	s.refer(now, m.Slot, m)
}

// own keeps a slot for one claimant. The slot is made now, so that it is listed
// while its upstream has not started yet.
func (s *State) own(now time.Time, m *msg.OwnSlot) {
	s.refer(now, m.Slot, m)
	if e := s.entries[m.Slot]; e != nil {
		e.owner = m.Owner
	}
}

func (s *State) disown(m *msg.DisownSlot) {
	if e := s.entries[m.Slot]; e != nil && e.owner == m.Owner {
		e.owner = nil
		s.forward(e, m)
		s.retireEntry(e, &msg.RetireSlot{}) // unless somebody uses it
	}
}

// hold enters a slot the broker serves itself. It is never retired. An ordinary
// slot of that name ends, and its sessions come to the new one.
func (s *State) hold(m *msg.HoldReserved) {
	old := s.entries[m.Slot]
	if old != nil {
		s.remove(old)
	}
	e := s.enter(m.Slot)
	e.Ref, e.reserved = m.Ref, true
	if old != nil {
		for _, message := range old.queue {
			s.forward(e, message)
		}
	}
	s.reserved++
	s.observe(e)
}

// remove takes a slot out, whoever refers to it.
func (s *State) remove(e *Entry) {
	switch {
	case e.reserved:
		s.reserved--
	case e.retiring:
		s.retiring--
		fallthrough
	default:
		s.effects = append(s.effects, Effect{Stop: e})
	}
	s.forget(e.Name)
}

func (s *State) release(m *msg.ReleaseSlot) {
	if e := s.entries[m.Slot]; e != nil && e.reserved && e.Ref == m.Ref {
		s.remove(e)
	}
}

func (s *State) watch(m *msg.WatchSlots) {
	s.watchers = append(s.watchers, watcher{m.Watcher, m.Slot})
	s.each(func(e *Entry) {
		if m.Slot == "" || m.Slot == e.Name {
			s.reply(m.Watcher, &msg.SlotObserved{Info: e.info})
		}
	})
}

// tellWatchers tells those who watch the slot of that name.
func (s *State) tellWatchers(name string, message any) {
	for _, w := range s.watchers {
		if w.slot == "" || w.slot == name {
			s.reply(w.ref, message)
		}
	}
}

func (s *State) changed(now time.Time, m *msg.SlotChanged) {
	e := s.entries[m.Info.Name]
	if e == nil {
		return
	}
	e.info, e.lastUsed = m.Info, now
	s.observe(e)
}

func (s *State) observe(e *Entry) { s.tellWatchers(e.Name, &msg.SlotObserved{Info: e.info}) }

// refer passes a message to the slot of that name, creating it if need be.
func (s *State) refer(now time.Time, name string, message any) {
	e := s.entries[name]
	if e == nil {
		if len(s.entries)-s.retiring-s.reserved >= s.cfg.MaxSlots && !s.makeRoom(now) {
			s.refuse(name, message)
			return
		}
		e = s.create(name)
	}
	e.lastUsed = now
	s.forward(e, message)
}

func (s *State) create(name string) *Entry {
	e := s.enter(name)
	s.effects = append(s.effects, Effect{Create: e})
	s.observe(e)
	return e
}

func (s *State) enter(name string) *Entry {
	e := &Entry{Name: name, info: msg.SlotInfo{Name: name, Transport: msg.NoProvider}}
	s.entries[name] = e
	s.order = append(s.order, name)
	return e
}

func (s *State) forget(name string) {
	delete(s.entries, name)
	if i := slices.Index(s.order, name); i >= 0 {
		s.order = slices.Delete(s.order, i, i+1)
	}
	s.tellWatchers(name, &msg.SlotForgotten{Name: name})
}

func (s *State) forward(e *Entry, message any) {
	if e.retiring {
		e.queue = append(e.queue, message)
		return
	}
	s.effects = append(s.effects, Effect{To: e, Message: message})
}

func (s *State) forwardIfKnown(name string, message any) {
	if e := s.entries[name]; e != nil {
		s.forward(e, message)
	}
}

func (s *State) refuse(name string, message any) {
	err := wire.TooManySlots(name, s.cfg.MaxSlots)
	switch m := message.(type) {
	case *msg.JoinSlot:
		s.reply(m.Client, &msg.JoinRefused{Err: err})
	case *msg.ClaimSlot:
		s.reply(m.Claimant, m.Refused(err, ""))
	}
}

func (s *State) reply(to msg.Ref, message any) {
	s.effects = append(s.effects, Effect{Direct: to, Message: message})
}

// makeRoom asks the slot that has been unused longest to end (F-06) or, where none
// is, the one whose clients have waited longest for a provider that never came. The
// slot has the last word; until it has spoken the table is one over.
func (s *State) makeRoom(now time.Time) bool {
	if e := s.longest(now, (*msg.SlotInfo).Unused); e != nil {
		s.retireEntry(e, &msg.RetireSlot{})
		return true
	}
	if e := s.longest(now, (*msg.SlotInfo).Unserved); e != nil {
		s.retireEntry(e, &msg.RetireSlot{Unserved: true})
		return true
	}
	return false
}

// longest is the slot without an owner that was used last, of those that may go.
func (s *State) longest(now time.Time, mayGo func(*msg.SlotInfo) bool) *Entry {
	var oldest *Entry
	for _, e := range s.entries {
		if e.retiring || e.reserved || e.owner != nil || !mayGo(&e.info) || !e.lastUsed.Before(now) {
			continue
		}
		if oldest == nil || e.lastUsed.Before(oldest.lastUsed) || e.lastUsed.Equal(oldest.lastUsed) && e.Name < oldest.Name {
			oldest = e
		}
	}
	return oldest
}

// retireEntry asks a slot to end, unless it is asked already. The slot has the
// last word.
func (s *State) retireEntry(e *Entry, m *msg.RetireSlot) {
	if e.retiring {
		return
	}
	s.forward(e, m)
	e.retiring = true
	s.retiring++
}

func (s *State) retired(now time.Time, m *msg.SlotRetired) {
	e := s.entries[m.Name]
	if e == nil || !e.retiring {
		return
	}
	e.retiring = false
	s.retiring--
	queue := e.queue
	e.queue = nil
	if m.Gone {
		s.forget(m.Name)
	}
	s.again(now, m.Name, queue)
}

// failing keeps a slot that gives up from getting what its successor is for.
func (s *State) failing(m *msg.SlotFailing) {
	if e := s.entries[m.Name]; e != nil && !e.reserved && !e.retiring {
		e.retiring = true
		s.retiring++
	}
}

// died removes a slot whose actor was given up; what still refers to it starts a
// fresh one. One that has an owner is replaced at once: it stays the owner's.
func (s *State) died(now time.Time, m *msg.SlotDied) {
	e := s.entries[m.Name]
	if e == nil {
		return
	}
	if e.retiring {
		s.retiring--
	}
	s.forget(m.Name)
	if e.owner != nil {
		s.own(now, &msg.OwnSlot{Slot: m.Name, Owner: e.owner})
		s.reply(e.owner, &msg.SlotReplaced{Slot: m.Name})
	}
	s.again(now, m.Name, e.queue)
}

func (s *State) again(now time.Time, name string, queue []any) {
	for _, message := range queue {
		switch m := message.(type) {
		case *msg.OwnSlot:
			s.own(now, m)
		case *msg.JoinSlot, *msg.ClaimSlot:
			s.refer(now, name, message)
		default:
			s.forwardIfKnown(name, message)
		}
	}
}

func (s *State) each(fn func(*Entry)) {
	for _, name := range s.order {
		fn(s.entries[name])
	}
}

// Inventory lists the slots in the order they were created, as they last reported
// themselves.
func (s *State) Inventory() []msg.SlotInfo {
	list := make([]msg.SlotInfo, 0, len(s.entries))
	s.each(func(e *Entry) { list = append(list, e.info) })
	return list
}

// Lookup returns the entry of a slot, nil when there is none.
func (s *State) Lookup(name string) *Entry { return s.entries[name] }
