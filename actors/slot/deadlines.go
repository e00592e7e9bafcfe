package slot

import (
	"cmp"
	"slices"
	"time"

	"mcpbroker/actors/msg"
)

// deadlines is a min-heap of calls by deadline. Calls without one are not in it.
type deadlines struct{ heap []*call }

func (d *deadlines) push(c *call) {
	if c.deadline.IsZero() {
		return
	}
	c.index = len(d.heap)
	d.heap = append(d.heap, c)
	d.up(c.index)
}

func (d *deadlines) remove(c *call) {
	if c.deadline.IsZero() {
		return
	}
	i, last := c.index, len(d.heap)-1
	d.swap(i, last)
	d.heap[last] = nil
	d.heap = d.heap[:last]
	if i < last {
		d.fix(i)
	}
}

func (d *deadlines) move(c *call, to time.Time) {
	c.deadline = to
	d.fix(c.index)
}

func (d *deadlines) first() *call {
	if len(d.heap) == 0 {
		return nil
	}
	return d.heap[0]
}

func (d *deadlines) fix(i int) {
	if !d.up(i) {
		d.down(i)
	}
}

func (d *deadlines) up(i int) (moved bool) {
	for i > 0 {
		parent := (i - 1) / 2
		if !d.less(i, parent) {
			break
		}
		d.swap(i, parent)
		i, moved = parent, true
	}
	return moved
}

func (d *deadlines) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(d.heap); child++ {
			if d.less(child, least) {
				least = child
			}
		}
		if least == i {
			return
		}
		d.swap(i, least)
		i = least
	}
}

// less orders by deadline, then by age, so that a sweep is deterministic. What a
// client was asked ends before the call it belongs to, which goes on without it.
func (d *deadlines) less(i, j int) bool {
	a, b := d.heap[i], d.heap[j]
	if !a.deadline.Equal(b.deadline) {
		return a.deadline.Before(b.deadline)
	}
	if asks := a.role == clientAsk; asks != (b.role == clientAsk) {
		return asks
	}
	return a.id < b.id
}

func (d *deadlines) swap(i, j int) {
	d.heap[i], d.heap[j] = d.heap[j], d.heap[i]
	d.heap[i].index, d.heap[j].index = i, j
}

func sortCalls(calls []*call) {
	slices.SortFunc(calls, func(a, b *call) int { return cmp.Compare(a.id, b.id) })
}

// wake asks for a timer when the slot's next due time is earlier than the one
// the shell's timer is armed for. A timer that fires too early is re-armed, so
// the relay path touches it once per deadline, not once per call.
func (s *State) wake(now time.Time) {
	next := s.holdUntil
	if c := s.deadlines.first(); c != nil && (next.IsZero() || c.deadline.Before(next)) {
		next = c.deadline
	}
	if len(s.waits) > 0 && (next.IsZero() || s.waits[0].until.Before(next)) {
		next = s.waits[0].until
	}
	if next.IsZero() || (!s.armed.IsZero() && !next.Before(s.armed)) {
		return
	}
	s.armed = next
	s.timerGen++
	s.effects = append(s.effects, Effect{Wake: max(next.Sub(now), time.Nanosecond), WakeGen: s.timerGen})
}

func (s *State) timerDue(now time.Time, m *msg.TimerDue) {
	if m.Gen != s.timerGen {
		return
	}
	s.armed = time.Time{}
	for c := s.deadlines.first(); c != nil && !c.deadline.After(now); c = s.deadlines.first() {
		s.expire(now, c)
	}
	s.expireWaits(now)
	if !s.holdUntil.IsZero() && !now.Before(s.holdUntil) {
		s.release(now)
	}
}

// abandoned remembers the ids of calls that ended without the provider's answer
// (F-24), the last rememberedIDs of them.
type abandoned struct {
	ring []uint64
	next int
	set  map[uint64]struct{}
}

func (a *abandoned) has(id uint64) bool { _, ok := a.set[id]; return ok }

func (s *State) abandon(id uint64) {
	a := &s.abandoned
	if a.set == nil {
		a.set = map[uint64]struct{}{}
	}
	if len(a.ring) < rememberedIDs {
		a.ring = append(a.ring, id)
		a.set[id] = struct{}{}
		s.undo(func() { a.ring = a.ring[:len(a.ring)-1]; delete(a.set, id) })
		return
	}
	at, old := a.next, a.ring[a.next]
	delete(a.set, old)
	a.set[id] = struct{}{}
	a.ring[at] = id
	a.next = (at + 1) % rememberedIDs
	s.undo(func() { delete(a.set, id); a.set[old] = struct{}{}; a.ring[at] = old; a.next = at })
}
