// Package roster keeps the client sessions of a reserved slot. It holds no
// goroutine and no clock.
package roster

import (
	"maps"
	"slices"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// DefaultMax is how many sessions a roster holds where nothing else is said.
const DefaultMax = 10000

// Roster is the sessions of one reserved slot. T is what its server keeps of each.
type Roster[T any] struct {
	slot    string
	max     int
	members map[uint64]*Member[T]
}

// Member is one session. Data is the zero T when it joins.
type Member[T any] struct {
	Session   uint64
	Ref       msg.Ref
	Kind      msg.ClientKind
	Streaming bool
	LastUsed  time.Time
	Data      T
}

// Send is one message to send.
type Send struct {
	To      msg.Ref
	Message any
}

// New returns an empty roster of at most limit sessions; 0 means DefaultMax.
func New[T any](slot string, limit int) *Roster[T] {
	if limit <= 0 {
		limit = DefaultMax
	}
	return &Roster[T]{slot: slot, max: limit, members: map[uint64]*Member[T]{}}
}

// Join adds a session, whose messages go to self from then on. At the bound the
// session that has been idle longest and has no stream is evicted; where there is
// none the newcomer is refused, and member is nil. A session that joins again is
// the member it was. What is to be sent is in sends.
func (r *Roster[T]) Join(now time.Time, m *msg.JoinSlot, self msg.Ref) (member, evicted *Member[T], sends []Send) {
	joined := Send{m.Client, &msg.SlotJoined{Ref: self, Session: m.Session}}
	if known := r.members[m.Session]; known != nil {
		return known, nil, []Send{joined}
	}
	if len(r.members) >= r.max {
		evicted = r.idlest()
		if evicted == nil {
			return nil, nil, []Send{{m.Client, &msg.JoinRefused{Err: wire.TooManySessions(r.slot, r.max)}}}
		}
		delete(r.members, evicted.Session)
		sends = append(sends, Send{evicted.Ref, &msg.EndSession{Why: "maxSessionsPerSlot"}})
	}
	member = &Member[T]{Session: m.Session, Ref: m.Client, Kind: m.Kind, LastUsed: now}
	r.members[m.Session] = member
	return member, evicted, append(sends, joined)
}

// idlest is the session to give up; nil when every one streams, or is the
// broker's own.
func (r *Roster[T]) idlest() *Member[T] {
	var idlest *Member[T]
	for _, m := range r.members {
		if m.Streaming || m.Kind == msg.BrokerClient {
			continue
		}
		if idlest == nil || m.LastUsed.Before(idlest.LastUsed) || m.LastUsed.Equal(idlest.LastUsed) && m.Session < idlest.Session {
			idlest = m
		}
	}
	return idlest
}

// Leave removes a session and returns it; nil when it is unknown.
func (r *Roster[T]) Leave(session uint64) *Member[T] {
	m := r.members[session]
	delete(r.members, session)
	return m
}

// Get returns a session; nil when it is unknown.
func (r *Roster[T]) Get(session uint64) *Member[T] { return r.members[session] }

// Touch remembers that a session was used.
func (r *Roster[T]) Touch(now time.Time, session uint64) {
	if m := r.members[session]; m != nil {
		m.LastUsed = now
	}
}

// StreamChanged remembers whether a session has a stream open.
func (r *Roster[T]) StreamChanged(now time.Time, m *msg.StreamChanged) {
	if member := r.members[m.Session]; member != nil {
		member.Streaming, member.LastUsed = m.Open, now
	}
}

// All lists the sessions by number.
func (r *Roster[T]) All() []*Member[T] {
	return slices.SortedFunc(maps.Values(r.members), func(a, b *Member[T]) int {
		if a.Session < b.Session {
			return -1
		}
		return 1
	})
}

// Count enters the sessions into an inventory line.
func (r *Roster[T]) Count(info *msg.SlotInfo) {
	for _, m := range r.members {
		m.Kind.Count(info)
	}
}
