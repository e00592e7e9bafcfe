package aggregate

import "time"

// Why a member is not in _all whose provider has left. The last one is of a slot whose
// present provider does not ask to join: it misses nothing, and is kept for its names.
const (
	disconnected = "provider disconnected"
	unheard      = "never answered initialize"
	stopped      = "its upstream is not running"
	unasked      = "its provider has not asked to join"
)

// fading is how long a slot that never was a member is told of as missing after its
// provider has left. It is more than lies between two attempts of an upstream.
const fading = 10 * time.Minute

func (m *member) away() bool {
	switch m.reason {
	case disconnected, unheard, stopped, unasked:
		return true
	}
	return false
}

// farewell is what is said of a member whose provider leaves, or has left.
func (m *member) farewell() string {
	switch {
	case m.away() && m.reason != unasked:
		return m.reason
	case !m.greeted && m.reason != unasked:
		return unheard
	case m.upstream:
		return stopped
	}
	return disconnected
}

// vacated: the slot has no provider, and none is being started in its place.
func (s *State) vacated(m *member) {
	if !m.away() || m.reason == unasked || m.before != nil {
		s.leave(m, m.farewell())
	}
	if !m.was && s.retries[m.slot] == nil {
		set(s, &m.retryAt, s.now.Add(fading))
		put(s, s.retries, m.slot, m)
	}
}

// stayAway: the slot's provider does not ask to join, not yet or not at all.
func (s *State) stayAway(m *member) {
	s.leave(m, unasked)
	if len(m.names) == 0 {
		s.forget(m)
	}
}
