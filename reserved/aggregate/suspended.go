package aggregate

import (
	"slices"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
	"mcpbroker/reserved/roster"
)

// A member whose slot waits for its owner to connect again is suspended, not gone
// (spec 06, discovery cache): its lists stay in the catalogs, marked, and calls of
// it wait. The next provider of the slot is greeted by a member of its own, as
// ever (F-12), which takes the suspended one's place once its lists are there. If
// they are the same bytes, no client hears of any of this.
//
// A suspended member keeps its session for the calls that are on their way through
// it: those the slot had sent fail there, those it holds are served by the next
// provider. The last to be answered ends the session.

// wait is what is kept of a call until its member is back.
type wait struct {
	frame wire.Frame
	trace string
	kind  list   // of what it calls; from resources on it is not looked up
	name  string // in _all
	own   string // as the member publishes it
}

// serving is the member of a slot whose lists count: the suspended one while its
// successor is being greeted.
func (s *State) serving(slot string) *member {
	m := s.members[slot]
	if m != nil && m.before != nil {
		return m.before
	}
	return m
}

// suspend keeps the lists of a member without a provider.
func (s *State) suspend(m *member) {
	switch {
	case m.before != nil:
		s.depart(m, m.farewell()) // the one before goes on standing in
		return
	case m.suspended:
		return
	}
	set(s, &m.suspended, true)
	drop(s, s.retries, m.slot)
	s.dropFetches(m)
	s.statusChanged()
	s.leaveIdle(m)
}

// stands tells whether a slot's lists are in the catalogs.
func (m *member) stands() bool { return m.joined || m.before != nil }

// succeeded makes room for a slot's next provider. The member that is suspended
// meanwhile comes back; any other has left.
func (s *State) succeeded(m *member) (before *member) {
	switch {
	case m == nil:
		return nil
	case m.suspended:
		return m
	case m.before != nil:
		s.depart(m, m.farewell())
		return m.before
	}
	s.leave(m, m.farewell())
	return nil
}

// resume puts a member in the place of the one before it. Only a difference
// between their lists is news to clients.
func (s *State) resume(m *member) {
	before := m.before
	set(s, &m.before, nil)
	set(s, &before.joined, false)
	joined := slices.Clone(s.joined)
	joined[slices.Index(joined, before)] = m
	set(s, &s.joined, joined)
	changed := false
	for k := range kinds {
		old := before.lists[k]
		s.hold(before, k, nil)
		changed = s.replaced(m, k, old, m.lists[k]) || changed
	}
	s.statusChanged()
	if changed || !slices.Equal(before.brokers, m.brokers) {
		s.broadcast()
	}
	s.release(before, m)
}

// await holds a call back until its member is back. From now on it has the time that a
// slot gives it, its way to the member and its answer included; a member that shows that
// it works on it has the slot mind the time.
func (s *State) await(c *call, m *msg.ClientCall, r *route) {
	own, _ := wire.Unquote(r.original)
	c.wait = &wait{frame: r.frame, trace: m.Trace, kind: r.kind, name: r.name, own: own}
	if r.to.waits == nil {
		set(s, &r.to.waits, map[uint64]*call{})
	}
	put(s, r.to.waits, c.number, c)
	if s.cfg.RequestTimeout <= 0 {
		return
	}
	c.due = s.now.Add(s.cfg.RequestTimeout)
	if s.expiry.IsZero() {
		set(s, &s.expiry, c.due)
	}
}

// inHand: the member works on a call.
func (s *State) inHand(c *call) {
	if c.wait == nil && !c.due.IsZero() {
		set(s, &c.due, time.Time{})
	}
}

// mayWait refuses a call that its slot would refuse when it is sent on.
func (m *member) mayWait() *wire.Error {
	if m.suspended && m.maxPending > 0 && len(m.waits) >= m.maxPending {
		return wire.SlotBusy(m.slot, "maxPendingPerSlot", m.maxPending)
	}
	return nil
}

// release sends on what waited for a member, in the order it came. What is not in
// the new lists is unknown.
func (s *State) release(before, m *member) {
	var published [resources]map[string]bool
	for _, c := range byNumber(before.waits) {
		w := c.wait
		if w.kind < resources {
			if published[w.kind] == nil {
				published[w.kind] = m.published(w.kind)
			}
			if !published[w.kind][w.own] {
				s.callFailed(c, wire.UnknownAggregated(lists[w.kind].item, w.name))
				continue
			}
		}
		drop(s, before.waits, c.number)
		set(s, &c.wait, nil)
		set(s, &c.member, m)
		s.dispatch(c, &w.frame, w.trace)
	}
	s.leaveIdle(before)
}

// published is the set of names in a list, as the member spells them.
func (m *member) published(k list) map[string]bool {
	names := make(map[string]bool, m.lists[k].len())
	for i := range m.lists[k].len() {
		name, _ := wire.Unquote(m.lists[k].entries[i].original)
		names[name] = true
	}
	return names
}

// leaveIdle ends the session of a suspended member that no call needs any more.
func (s *State) leaveIdle(m *member) {
	if m.suspended && m.session != 0 && len(m.calls) == 0 {
		s.leaveSlot(m)
	}
}

// expire answers the calls that waited too long, or were sent too late. All have equally
// long, so the oldest is the first.
func (s *State) expire() {
	if s.expiry.IsZero() || s.expiry.After(s.now) {
		return
	}
	set(s, &s.expiry, time.Time{})
	for _, c := range byNumber(s.calls) {
		if c.due.IsZero() {
			continue
		}
		if c.due.After(s.now) {
			set(s, &s.expiry, c.due)
			return
		}
		s.ended(c)
		s.tell(c.client.Ref, &msg.CallFailed{Call: c.theirs, Err: wire.NoAnswer(c.member.slot, s.cfg.RequestTimeout)})
	}
}

// strays are the members of a slot, its present one apart, that have a session for
// the sake of their calls, oldest first.
func (s *State) strays(slot string) []*member {
	var all []*member
	for _, m := range s.joining {
		if m.slot == slot && s.members[slot] != m {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b *member) int { return int(a.session) - int(b.session) })
	return all
}

// ended withdraws a call nobody waits for any more.
func (s *State) ended(c *call) {
	s.finish(c)
	if c.wait == nil {
		s.tell(c.member.to, &msg.CallerLeft{Session: c.member.session, Call: c.number})
	}
}

// cancelled passes a client's cancellation on; a call that waits ends with it.
func (s *State) cancelled(c *roster.Member[client], f *wire.Frame) {
	call := callWithID(c.Data.calls, f.Raw(f.RequestID))
	switch {
	case call == nil:
	case call.wait != nil:
		s.callFailed(call, wire.Withdrawn())
	default:
		s.tell(call.member.to, &msg.ClientNote{Session: call.member.session, Frame: *f, Call: call.number})
	}
}
