package aggregate

// A step that panics must leave no trace. Every change of the state goes through
// the functions below, which remember how to undo it.

func (s *State) begin() {
	const keep = 64
	clear(s.effects)
	clear(s.journal)
	s.effects, s.journal = s.effects[:0], s.journal[:0]
	if cap(s.journal) > keep {
		s.journal = nil
	}
}

// rollback undoes a half-done step, newest change first.
func (s *State) rollback() {
	for i := len(s.journal) - 1; i >= 0; i-- {
		s.journal[i]()
	}
	clear(s.effects)
	s.effects, s.journal = s.effects[:0], nil
}

func (s *State) undo(fn func()) { s.journal = append(s.journal, fn) }

// set assigns a field.
func set[T any](s *State, at *T, value T) {
	before := *at
	*at = value
	s.undo(func() { *at = before })
}

// put enters a value into a map.
func put[K comparable, V any](s *State, table map[K]V, key K, value V) {
	before, had := table[key]
	table[key] = value
	s.undo(func() {
		if had {
			table[key] = before
			return
		}
		delete(table, key)
	})
}

// drop takes a value out of a map.
func drop[K comparable, V any](s *State, table map[K]V, key K) {
	before, had := table[key]
	if !had {
		return
	}
	delete(table, key)
	s.undo(func() { table[key] = before })
}
