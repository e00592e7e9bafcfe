package wire

// Elements calls each with the raw bytes of every element of a scanned array,
// in order.
func Elements(array []byte, each func(raw []byte)) {
	s := scanner{b: array}
	s.space()
	s.i++
	s.space()
	for s.i < len(s.b) && s.b[s.i] != ']' {
		start := s.i
		if s.skip() != nil {
			return
		}
		each(s.b[start:s.i:s.i])
		if more, err := s.comma(']'); err != nil || !more {
			return
		}
	}
}

// Member returns the raw value of a member of a scanned object, nil when the
// object has none. It is for the few messages a session looks into once, not for
// the relay path.
func Member(object []byte, name string) []byte {
	at := MemberAt(object, name)
	if !at.Present() {
		return nil
	}
	return object[at.Start:at.End:at.End]
}

// MemberAt returns where Member finds the value.
func MemberAt(object []byte, name string) Span {
	s := scanner{b: object}
	s.space()
	if shape, err := s.peek(); err != nil || shape != Object {
		return Span{}
	}
	var found Span
	_ = s.object(func(s *scanner, key []byte, _ int) error {
		start := s.i
		err := s.skip()
		if string(key) == name {
			found = Span{int32(start), int32(s.i)}
		}
		return err
	})
	return found
}
