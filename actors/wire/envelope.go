package wire

import (
	"fmt"
	"unicode/utf8"
)

// Envelope is one frame of the multiplexed tunnel: a JSON-RPC message with the
// name of the slot it belongs to (spec 01 3.1).
type Envelope struct {
	Slot    string
	Payload Frame // indexes its own bytes, not the envelope's
}

// ScanEnvelope validates b once and indexes both layers. ok is false for valid
// JSON that is no envelope: then outer holds the message as Scan sees it, so
// that a framing mismatch can be told apart.
func ScanEnvelope(b []byte) (env Envelope, outer Frame, ok bool, err error) {
	if !utf8.Valid(b) {
		return Envelope{}, Frame{}, false, ErrUTF8
	}
	s := envelopeScanner{scanner: scanner{b: b}}
	s.space()
	if shape, err := s.peek(); err != nil {
		return Envelope{}, Frame{}, false, err
	} else if shape == Object {
		if err := s.object(s.member); err != nil {
			return Envelope{}, Frame{}, false, err
		}
		s.space()
		if s.i != len(s.b) {
			return Envelope{}, Frame{}, false, s.syntax("text after the envelope")
		}
	}
	if s.slot == "" || s.payload.Shape == Absent {
		outer, err = Scan(b)
		return Envelope{}, outer, false, err
	}
	return Envelope{Slot: s.slot, Payload: s.payload}, Frame{}, true, nil
}

type envelopeScanner struct {
	scanner
	slot    string
	payload Frame
	known   uint32
}

// member reads one member of the envelope itself. The embedded scanner's own
// fields belong to the payload while frame runs, so the duplicate check of this
// level is kept apart.
func (s *envelopeScanner) member(sc *scanner, key []byte, _ int) error {
	switch string(key) {
	case "provider":
		if err := s.first(seenProvider, key); err != nil {
			return err
		}
		sc.base = 0
		span, shape, err := sc.measured()
		if err != nil || shape != String {
			return err
		}
		name, err := unquote(sc.at(span))
		s.slot = string(name)
		return err
	case "payload":
		if err := s.first(seenPayload, key); err != nil {
			return err
		}
		depth := sc.depth
		sc.depth = 0 // the payload has all of MaxDepth, as without an envelope
		var err error
		s.payload, err = sc.frame()
		sc.depth = depth
		return err
	}
	return sc.skip()
}

func (s *envelopeScanner) first(bit uint32, key []byte) error {
	if s.known&bit != 0 {
		return fmt.Errorf("%w %q", ErrDuplicate, key)
	}
	s.known |= bit
	return nil
}

// Wrap returns the envelope that carries payload to slot: compact, provider
// first.
func Wrap(slot string, payload []byte) []byte {
	b := make([]byte, 0, len(slot)+len(payload)+32)
	b = append(b, `{"provider":`...)
	b = AppendString(b, slot)
	b = append(b, `,"payload":`...)
	b = append(b, payload...)
	return append(b, '}')
}
