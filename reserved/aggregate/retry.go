package aggregate

import "time"

// What fails for a reason of the broker's own, a deadline or a full queue, is
// tried again: after firstRetry, then twice as long each time. What a provider
// refuses is not.
const (
	firstRetry = 5 * time.Second
	lastRetry  = 5 * time.Minute
)

// retryDue is the server's own timer.
type retryDue struct {
	control
	gen uint64
}

func (s *State) retryLater(m *member) { s.retryAfter(m, &m.failures) }

// retryAfter is the same with a count of its own; of two tries the earlier stands.
func (s *State) retryAfter(m *member, failures *int) {
	due := s.now.Add(min(firstRetry<<min(*failures, 10), lastRetry))
	set(s, failures, *failures+1)
	if s.retries[m.slot] == nil || due.Before(m.retryAt) {
		set(s, &m.retryAt, due)
	}
	put(s, s.retries, m.slot, m)
}

// wake asks for a timer when the next try is due before the shell's timer.
func (s *State) wake() {
	next := s.expiry
	for _, m := range s.retries {
		if next.IsZero() || m.retryAt.Before(next) {
			next = m.retryAt
		}
	}
	for _, due := range s.refreshes {
		if next.IsZero() || due.Before(next) {
			next = due
		}
	}
	if next.IsZero() || !s.armed.IsZero() && !next.Before(s.armed) {
		return
	}
	set(s, &s.armed, next)
	set(s, &s.timerGen, s.timerGen+1)
	s.effects = append(s.effects, Effect{Wake: max(next.Sub(s.now), time.Nanosecond), WakeGen: s.timerGen})
}

func (s *State) retryDue(due *retryDue) {
	if due.gen != s.timerGen {
		return
	}
	set(s, &s.armed, time.Time{})
	s.expire()
	for _, m := range s.bySlot() {
		s.refreshDue(m)
		if s.retries[m.slot] == nil || m.retryAt.After(s.now) {
			continue
		}
		drop(s, s.retries, m.slot)
		if m.away() {
			s.forget(m)
			continue
		}
		if m.session == 0 {
			s.enter(m)
			continue
		}
		for k := range kinds {
			if m.lists[k].incomplete() {
				set(s, &m.want, m.want.with(k))
			}
		}
		s.next(m)
	}
}
