package slot

import (
	"slices"
	"time"

	"mcpbroker/actors/msg"
)

// load is what MaxPending bounds: all clients' requests that wait for the
// provider. What the slot asks of its own is bounded by the number of URIs, and
// must not keep clients out after a reconnect. The broker's own are few, and a check
// must keep nobody from the provider it looks after.
func (s *State) load() int {
	n := len(s.pending) - s.own + len(s.held) + len(s.initQueue) + s.queued
	if s.reserved == 0 {
		return n
	}
	for _, h := range s.held {
		if s.holdsOwn(h) {
			n--
		}
	}
	for _, q := range s.initQueue {
		if s.brokersOwn(q.Session, q.For) {
			n--
		}
	}
	return n
}

// noLoad: a pending call does not count, see load.
func (c *call) noLoad() bool { return c.ours || c.role.own() }

// full: there is no room for a call.
func (s *State) full(m *msg.ClientCall) bool {
	return s.load() >= s.cfg.MaxPending && !s.brokersOwn(m.Session, m.For)
}

// brokersOwn reports a message the broker sends on its own account: a check, or what
// a reserved slot asks for no client of its.
func (s *State) brokersOwn(session uint64, behind *msg.Origin) bool {
	return behind == nil && s.ours(session)
}

// holdsOwn reports that what is held back is the broker's own.
func (s *State) holdsOwn(held any) bool {
	switch m := held.(type) {
	case *msg.ClientCall:
		return s.brokersOwn(m.Session, m.For)
	case *msg.ClientNote:
		return s.ours(m.Session)
	}
	return false
}

// oldestPending is when the oldest unanswered request was sent. One of the broker's
// own does not count, but for an initialize whose answer clients wait for as well.
func (s *State) oldestPending() time.Time {
	var oldest time.Time
	for _, c := range s.pending {
		if c.ours && !(c.id == s.initLeader && s.clientsQueue()) {
			continue
		}
		if oldest.IsZero() || c.started.Before(oldest) {
			oldest = c.started
		}
	}
	return oldest
}

// clientsQueue: a client waits for the initialize in flight.
func (s *State) clientsQueue() bool {
	return slices.ContainsFunc(s.initQueue, func(q *msg.ClientCall) bool { return !s.brokersOwn(q.Session, q.For) })
}
