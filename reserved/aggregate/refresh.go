package aggregate

import "time"

// A member that says that a list has changed is asked for it at once, and after that
// no more than once in refreshEvery however often it says so: some say it whenever
// they are asked.
const refreshEvery = time.Second

// refresh fetches a list again, now or when its time has come.
func (s *State) refresh(m *member, k list) {
	due := m.refreshed[k].Add(refreshEvery)
	if m.refreshed[k].IsZero() || !due.After(s.now) {
		set(s, &m.refreshed[k], s.now)
		set(s, &m.want, m.want.with(k))
		return
	}
	set(s, &m.stale, m.stale.with(k))
	if next, waits := s.refreshes[m]; !waits || due.Before(next) {
		put(s, s.refreshes, m, due)
	}
}

// refreshDue fetches what has waited for its time.
func (s *State) refreshDue(m *member) {
	if due, waits := s.refreshes[m]; !waits || due.After(s.now) {
		return
	}
	drop(s, s.refreshes, m)
	stale := m.stale
	set(s, &m.stale, 0)
	for k := range kinds {
		if stale.has(k) {
			s.refresh(m, k)
		}
	}
	s.next(m)
}
