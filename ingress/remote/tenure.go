package remote

// A session in whose place there is another one may still live at the server. It is ended
// there, behind the calls under way in it.

// tenure tells which sessions are in use. The zero value is none. Guarded by streamable.mu.
type tenure struct {
	calls    map[int]int     // under way, by the number of their session
	replaced map[int]session // to be ended behind the last of them
}

// enter counts a call in a session, until it exits.
func (s *streamable) enter(in session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tenure.calls == nil {
		s.tenure.calls, s.tenure.replaced = map[int]int{}, map[int]session{}
	}
	s.tenure.calls[in.number]++
}

func (s *streamable) exit(in session) {
	s.mu.Lock()
	t := &s.tenure
	t.calls[in.number]--
	last := t.calls[in.number] == 0
	old, replaced := t.replaced[in.number]
	if last {
		delete(t.calls, in.number)
		delete(t.replaced, in.number)
	}
	s.mu.Unlock()
	if last && replaced {
		s.spawn(func() { s.end(old) })
	}
}

// retire ends a session that is not used any more, once its calls are over.
func (s *streamable) retire(old session) {
	s.mu.Lock()
	busy := s.tenure.calls[old.number] > 0
	if busy {
		s.tenure.replaced[old.number] = old
	}
	s.mu.Unlock()
	if !busy {
		s.end(old)
	}
}

// end ends a session at the server. One that was started again may have given the same id
// to the present session.
func (s *streamable) end(old session) {
	if old.id != s.current().id {
		s.forget(s.ctx, old, s.pace.goodbye)
	}
}
