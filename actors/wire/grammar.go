package wire

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// This file is the JSON grammar of the scanner: it validates and skips values
// without building anything.

func (s *scanner) syntax(what string) error {
	return fmt.Errorf("%w: %s at byte %d", ErrSyntax, what, s.i)
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

// peek tells the shape of the value that begins at s.i.
func (s *scanner) peek() (Shape, error) {
	if s.i >= len(s.b) {
		return Absent, s.syntax("unexpected end")
	}
	switch c := s.b[s.i]; {
	case c == '{':
		return Object, nil
	case c == '[':
		return Array, nil
	case c == '"':
		return String, nil
	case c == '-' || (c >= '0' && c <= '9'):
		return Number, nil
	case c == 't' || c == 'f':
		return Bool, nil
	case c == 'n':
		return Null, nil
	}
	return Absent, s.syntax("unexpected character")
}

// object reads the object at s.i and calls member for each key, with s.i at the
// value; member must consume exactly the value.
func (s *scanner) object(member func(s *scanner, key []byte, keyStart int) error) error {
	if s.depth++; s.depth > MaxDepth {
		return ErrDepth
	}
	s.i++
	s.space()
	if s.i < len(s.b) && s.b[s.i] == '}' {
		s.i++
		s.depth--
		return nil
	}
	for {
		keyStart := s.i
		if err := s.str(); err != nil {
			return err
		}
		key, err := unquote(s.b[keyStart:s.i])
		if err != nil {
			return err
		}
		if err := s.colon(); err != nil {
			return err
		}
		if err := member(s, key, keyStart); err != nil {
			return err
		}
		more, err := s.comma('}')
		if err != nil {
			return err
		}
		if !more {
			s.depth--
			return nil
		}
	}
}

func (s *scanner) colon() error {
	s.space()
	if s.i >= len(s.b) || s.b[s.i] != ':' {
		return s.syntax("expected a colon")
	}
	s.i++
	s.space()
	return nil
}

// comma consumes the separator behind an element: true when another follows.
func (s *scanner) comma(end byte) (bool, error) {
	s.space()
	if s.i >= len(s.b) {
		return false, s.syntax("unexpected end")
	}
	switch s.b[s.i] {
	case ',':
		s.i++
		s.space()
		return true, nil
	case end:
		s.i++
		return false, nil
	}
	return false, s.syntax("expected a comma")
}

// skip validates the value at s.i and moves behind it. It is iterative: the
// open containers are bits of a small array, so depth costs no stack.
func (s *scanner) skip() error {
	var objects [MaxDepth/64 + 1]uint64
	open := 0
	for {
		closed, err := s.skipToken(&objects, &open)
		if err != nil {
			return err
		}
		for closed {
			if open == 0 {
				return nil
			}
			end := byte(']')
			isObject := objects[(open-1)/64]>>((open-1)%64)&1 == 1
			if isObject {
				end = '}'
			}
			more, err := s.comma(end)
			if err != nil {
				return err
			}
			if more {
				closed = false
				if isObject {
					if err := s.key(); err != nil {
						return err
					}
				}
				continue
			}
			open--
		}
	}
}

// skipToken consumes one scalar (closed is true) or opens one container; an
// empty container counts as a scalar.
func (s *scanner) skipToken(objects *[MaxDepth/64 + 1]uint64, open *int) (closed bool, err error) {
	shape, err := s.peek()
	if err != nil {
		return false, err
	}
	switch shape {
	case String:
		return true, s.str()
	case Number:
		return true, s.number()
	case Bool, Null:
		return true, s.literal()
	}
	if s.depth+*open >= MaxDepth {
		return false, ErrDepth
	}
	s.i++
	s.space()
	end := byte(']')
	if shape == Object {
		end = '}'
	}
	if s.i < len(s.b) && s.b[s.i] == end {
		s.i++
		return true, nil
	}
	bit := uint64(1) << (*open % 64)
	if shape == Object {
		objects[*open/64] |= bit
		err = s.key()
	} else {
		objects[*open/64] &^= bit
	}
	*open++
	return false, err
}

func (s *scanner) key() error {
	if err := s.str(); err != nil {
		return err
	}
	return s.colon()
}

func (s *scanner) literal() error {
	for _, word := range [...]string{"true", "false", "null"} {
		if len(s.b)-s.i >= len(word) && string(s.b[s.i:s.i+len(word)]) == word {
			s.i += len(word)
			return nil
		}
	}
	return s.syntax("unknown literal")
}

func (s *scanner) number() error {
	if s.b[s.i] == '-' {
		s.i++
	}
	if s.i < len(s.b) && s.b[s.i] == '0' {
		s.i++
	} else if !s.digits() {
		return s.syntax("bad number")
	}
	if s.i < len(s.b) && s.b[s.i] == '.' {
		s.i++
		if !s.digits() {
			return s.syntax("bad fraction")
		}
	}
	if s.i < len(s.b) && (s.b[s.i] == 'e' || s.b[s.i] == 'E') {
		s.i++
		if s.i < len(s.b) && (s.b[s.i] == '+' || s.b[s.i] == '-') {
			s.i++
		}
		if !s.digits() {
			return s.syntax("bad exponent")
		}
	}
	return nil
}

func (s *scanner) digits() bool {
	start := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > start
}

const (
	each  = 0x0101010101010101
	high  = 0x8080808080808080
	quote = each * '"'
	slash = each * '\\'
)

// str validates the string at s.i, eight bytes at a time while none of them is
// a quote, a backslash or a control character.
func (s *scanner) str() error {
	if s.i >= len(s.b) || s.b[s.i] != '"' {
		return s.syntax("expected a string")
	}
	s.i++
	for {
		for s.i+8 <= len(s.b) {
			w := binary.LittleEndian.Uint64(s.b[s.i:])
			q, e := w^quote, w^slash
			stop := ((w-each*0x20)&^w | (q-each)&^q | (e-each)&^e) & high
			if stop != 0 {
				s.i += bits.TrailingZeros64(stop) / 8
				break
			}
			s.i += 8
		}
		if s.i >= len(s.b) {
			return s.syntax("unterminated string")
		}
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return nil
		case c == '\\':
			if err := s.escape(); err != nil {
				return err
			}
		case c < 0x20:
			return s.syntax("control character in a string")
		default:
			s.i++
		}
	}
}

func (s *scanner) escape() error {
	if s.i+1 >= len(s.b) {
		return s.syntax("unterminated escape")
	}
	switch s.b[s.i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.i += 2
		return nil
	case 'u':
		if s.i+6 > len(s.b) {
			return s.syntax("unterminated escape")
		}
		for _, c := range s.b[s.i+2 : s.i+6] {
			if !isHex(c) {
				return s.syntax("bad escape")
			}
		}
		s.i += 6
		return nil
	}
	return s.syntax("bad escape")
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
