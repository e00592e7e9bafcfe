package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// MaxDepth is how deeply arrays and objects may nest in one frame.
const MaxDepth = 128

// Scan failures. Callers compare with errors.Is; the wrapped text says where.
var (
	ErrSyntax    = errors.New("not valid JSON")
	ErrUTF8      = errors.New("not valid UTF-8")
	ErrDepth     = fmt.Errorf("nested deeper than %d levels", MaxDepth)
	ErrDuplicate = errors.New("duplicate member")
)

// Span is a half-open range of offsets into Frame.Bytes. The zero Span means
// absent: offset 0 of a frame is its opening brace, never a member value.
type Span struct{ Start, End int32 }

// Present reports whether the span points at something.
func (s Span) Present() bool { return s.End > 0 }

// Shape is the JSON type of a value.
type Shape uint8

const (
	Absent Shape = iota
	Object
	Array
	String
	Number
	Bool
	Null
)

// Frame is one scanned message. It is immutable once Scan returned it.
type Frame struct {
	Bytes []byte
	Shape Shape // of the whole message; the members below are set for Object only

	JSONRPC bool   // a "jsonrpc" member exists, whatever its value
	Method  []byte // decoded method name; nil when absent or not a string
	ID      Span   // raw id value
	IDShape Shape

	Params      Span // raw params value
	ParamsShape Shape
	Meta        Span // raw params._meta value
	MetaShape   Shape
	Result      Span
	Error       Span

	Token        Span // params._meta.progressToken: string or number
	Trace        Span // params._meta.traceparent, any type
	TraceValid   bool
	Caller       Span // params._meta[CallerKey], from the key's quote to the value's end
	CallerAlone  bool // it is the only member of _meta
	Progress     Span // params.progressToken (notifications/progress)
	RequestID    Span // params.requestId (notifications/cancelled)
	URI          Span // params.uri when it is a string
	Aggregate    bool // params.aggregate is exactly true
	LegacyType   Span // top-level "type" when it is a string
	LegacyJoin   bool // top-level "aggregate" is exactly true
	ProviderName Span // top-level "provider" when it is a string
	Payload      Span // top-level "payload"
}

// CallerKey is the _meta member that names the caller to a declaring provider.
// Only the broker writes it; what a client sends under it is removed.
const CallerKey = "io.cyanmycelium/caller"

// Raw returns the bytes of a span.
func (f *Frame) Raw(s Span) []byte { return f.Bytes[s.Start:s.End] }

// IsRequest reports a method with a string or number id: a message that is
// tracked and answered.
func (f *Frame) IsRequest() bool {
	return f.Method != nil && (f.IDShape == String || f.IDShape == Number)
}

// IsNotification reports a method without an id.
func (f *Frame) IsNotification() bool { return f.Method != nil && f.IDShape == Absent }

// IsResponse reports an id without a method.
func (f *Frame) IsResponse() bool {
	return f.Method == nil && (f.IDShape == String || f.IDShape == Number)
}

// Scan validates b and indexes it. The frame keeps b; the caller must not
// change it afterwards. A message that is valid JSON but not an object is
// returned with its Shape and no error.
func Scan(b []byte) (Frame, error) {
	if !utf8.Valid(b) {
		return Frame{}, ErrUTF8
	}
	s := scanner{b: b}
	s.space()
	f, err := s.frame()
	if err != nil {
		return Frame{}, err
	}
	s.space()
	if s.i != len(s.b) {
		return Frame{}, s.syntax("text after the message")
	}
	return f, nil
}

// member bits of the objects the scanner reads, for the duplicate check.
const (
	seenJSONRPC uint32 = 1 << iota
	seenID
	seenMethod
	seenParams
	seenResult
	seenError
	seenType
	seenJoin
	seenProvider
	seenPayload
	seenMeta
	seenProgress
	seenRequestID
	seenURI
	seenAggregate
	seenToken
	seenTrace
	seenCaller
)

// scanner walks b once. Offsets it records are relative to base, the start of
// the frame, so that a frame inside an envelope indexes its own bytes.
type scanner struct {
	b     []byte
	i     int
	base  int
	depth int
	seen  uint32
	f     Frame
}

// frame scans the value at s.i as a message; s.i ends just behind it.
func (s *scanner) frame() (Frame, error) {
	s.base, s.seen, s.f = s.i, 0, Frame{}
	shape, err := s.peek()
	if err != nil {
		return Frame{}, err
	}
	s.f.Shape = shape
	if shape == Object {
		err = s.object((*scanner).topMember)
	} else {
		err = s.skip()
	}
	if err != nil {
		return Frame{}, err
	}
	s.f.Bytes = s.b[s.base:s.i:s.i]
	return s.f, nil
}

func (s *scanner) topMember(key []byte, _ int) error {
	switch string(key) {
	case "jsonrpc":
		s.f.JSONRPC = true
		return s.once(seenJSONRPC, key, s.skip)
	case "id":
		var err error
		s.f.ID, s.f.IDShape, err = s.value(seenID, key)
		return err
	case "method":
		return s.once(seenMethod, key, s.method)
	case "params":
		return s.once(seenParams, key, s.params)
	case "result":
		var err error
		s.f.Result, _, err = s.value(seenResult, key)
		return err
	case "error":
		var err error
		s.f.Error, _, err = s.value(seenError, key)
		return err
	case "type":
		return s.stringValue(seenType, key, &s.f.LegacyType)
	case "aggregate":
		return s.trueValue(seenJoin, key, &s.f.LegacyJoin)
	case "provider":
		return s.stringValue(seenProvider, key, &s.f.ProviderName)
	case "payload":
		var err error
		s.f.Payload, _, err = s.value(seenPayload, key)
		return err
	}
	return s.skip()
}

func (s *scanner) method() error {
	span, shape, err := s.measured()
	if err != nil || shape != String {
		return err
	}
	text, err := unquote(s.at(span))
	s.f.Method = text
	return err
}

func (s *scanner) params() error {
	start := s.i
	shape, err := s.peek()
	if err != nil {
		return err
	}
	s.f.ParamsShape = shape
	if shape == Object {
		err = s.object((*scanner).paramsMember)
	} else {
		err = s.skip()
	}
	s.f.Params = s.since(start)
	return err
}

func (s *scanner) paramsMember(key []byte, _ int) error {
	switch string(key) {
	case "_meta":
		return s.once(seenMeta, key, s.meta)
	case "progressToken":
		var err error
		s.f.Progress, _, err = s.value(seenProgress, key)
		return err
	case "requestId":
		var err error
		s.f.RequestID, _, err = s.value(seenRequestID, key)
		return err
	case "uri":
		return s.stringValue(seenURI, key, &s.f.URI)
	case "aggregate":
		return s.trueValue(seenAggregate, key, &s.f.Aggregate)
	}
	return s.skip()
}

func (s *scanner) meta() error {
	start := s.i
	shape, err := s.peek()
	if err != nil {
		return err
	}
	s.f.MetaShape = shape
	members := 0
	if shape == Object {
		err = s.object(func(s *scanner, key []byte, keyStart int) error {
			members++
			return s.metaMember(key, keyStart)
		})
	} else {
		err = s.skip()
	}
	s.f.Meta = s.since(start)
	s.f.CallerAlone = s.f.Caller.Present() && members == 1
	return err
}

func (s *scanner) metaMember(key []byte, keyStart int) error {
	switch string(key) {
	case "progressToken":
		span, shape, err := s.value(seenToken, key)
		if shape == String || shape == Number {
			s.f.Token = span
		}
		return err
	case "traceparent":
		span, shape, err := s.value(seenTrace, key)
		s.f.Trace = span
		s.f.TraceValid = err == nil && shape == String && ValidTraceparent(s.inner(span))
		return err
	case CallerKey:
		_, _, err := s.value(seenCaller, key)
		s.f.Caller = s.since(keyStart)
		return err
	}
	return s.skip()
}

// once runs read for a member that may stand in its object only once.
func (s *scanner) once(bit uint32, key []byte, read func() error) error {
	if s.seen&bit != 0 {
		return fmt.Errorf("%w %q", ErrDuplicate, key)
	}
	s.seen |= bit
	return read()
}

func (s *scanner) value(bit uint32, key []byte) (span Span, shape Shape, err error) {
	if s.seen&bit != 0 {
		return Span{}, Absent, fmt.Errorf("%w %q", ErrDuplicate, key)
	}
	s.seen |= bit
	return s.measured()
}

func (s *scanner) measured() (Span, Shape, error) {
	start := s.i
	shape, err := s.peek()
	if err == nil {
		err = s.skip()
	}
	return s.since(start), shape, err
}

func (s *scanner) stringValue(bit uint32, key []byte, to *Span) error {
	span, shape, err := s.value(bit, key)
	if shape == String {
		*to = span
	}
	return err
}

func (s *scanner) trueValue(bit uint32, key []byte, to *bool) error {
	span, shape, err := s.value(bit, key)
	*to = err == nil && shape == Bool && string(s.at(span)) == "true"
	return err
}

func (s *scanner) since(start int) Span {
	return Span{int32(start - s.base), int32(s.i - s.base)}
}

func (s *scanner) at(span Span) []byte {
	return s.b[s.base+int(span.Start) : s.base+int(span.End)]
}

func (s *scanner) inner(span Span) []byte {
	raw := s.at(span)
	return raw[1 : len(raw)-1]
}

// unquote decodes a validated JSON string. The common string without escapes
// is returned in place.
func unquote(raw []byte) ([]byte, error) {
	inner := raw[1 : len(raw)-1]
	for _, c := range inner {
		if c == '\\' {
			var text string
			if err := json.Unmarshal(raw, &text); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrSyntax, err)
			}
			return []byte(text), nil
		}
	}
	return inner, nil
}

// Unquote returns the text of a raw JSON string and whether raw is one. It
// expects a value out of a scanned frame.
func Unquote(raw []byte) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	text, err := unquote(raw)
	return string(text), err == nil
}
