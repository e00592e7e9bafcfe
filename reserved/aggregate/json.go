package aggregate

import (
	"bytes"

	"mcpbroker/actors/wire"
)

// The walks below run over bytes out of a scanned frame, so they only need to
// find where a value ends.

// eachMember calls each for the members of an object, in order. The key is raw,
// with its quotes; the span is the value's place in object.
func eachMember(object []byte, each func(key []byte, at wire.Span)) {
	i := skipSpace(object, 0)
	if i >= len(object) || object[i] != '{' {
		return
	}
	for i = skipSpace(object, i+1); i < len(object) && object[i] == '"'; i = nextItem(object, i) {
		key := i
		i = endOfValue(object, i)
		name := object[key:i]
		i = skipSpace(object, skipSpace(object, i)+1) // over the colon
		from := i
		i = endOfValue(object, i)
		each(name, wire.Span{Start: int32(from), End: int32(i)})
	}
}

// eachElement calls each for the elements of an array, in order.
func eachElement(array []byte, each func(at wire.Span)) {
	i := skipSpace(array, 0)
	if i >= len(array) || array[i] != '[' {
		return
	}
	for i = skipSpace(array, i+1); i < len(array) && array[i] != ']'; i = nextItem(array, i) {
		from := i
		i = endOfValue(array, i)
		each(wire.Span{Start: int32(from), End: int32(i)})
	}
}

// nextItem moves from the end of an item over the comma to the next one.
func nextItem(b []byte, i int) int {
	i = skipSpace(b, i)
	if i < len(b) && b[i] == ',' {
		return skipSpace(b, i+1)
	}
	return len(b)
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

func endOfValue(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = endOfString(b, i)
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			depth--
			i++
		default:
			i = endOfWord(b, i)
			if depth > 0 {
				continue // a separator or a scalar inside
			}
		}
		if depth == 0 {
			return i
		}
	}
	return i
}

func endOfString(b []byte, i int) int {
	for i++; i < len(b); i++ {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		i += n
		slashes := 0
		for b[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
	return i
}

// endOfWord moves over numbers, literals, separators and space, up to what opens
// or closes something.
func endOfWord(b []byte, i int) int {
	start := i
	for i < len(b) {
		switch b[i] {
		case '"', '{', '[', '}', ']':
			return i
		case ',', ' ', '\t', '\n', '\r':
			if i > start {
				return i
			}
		}
		i++
	}
	return i
}

// keyIs compares a raw key with a name, escapes in the key included.
func keyIs(raw []byte, name string) bool {
	if len(raw) == len(name)+2 {
		return string(raw[1:len(raw)-1]) == name
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return false
	}
	text, ok := wire.Unquote(raw)
	return ok && text == name
}

// only finds the one member of that name. Where there are several, twice is true:
// readers of such an object do not agree which counts.
func only(object []byte, name string) (at wire.Span, twice bool) {
	eachMember(object, func(key []byte, value wire.Span) {
		if keyIs(key, name) {
			twice = at.Present()
			at = value
		}
	})
	return at, twice
}

// shift moves a span by the offset of what it was measured in.
func shift(s wire.Span, by int32) wire.Span {
	return wire.Span{Start: s.Start + by, End: s.End + by}
}

func within(b []byte, at wire.Span) []byte { return b[at.Start:at.End:at.End] }

// splice returns f with the bytes of one value inside its params replaced, as a
// scanned frame: the spans behind the value move, those around it grow.
func splice(f *wire.Frame, at wire.Span, with []byte) wire.Frame {
	out := *f
	out.Bytes = wire.Replace(f, at, with)
	by := int32(len(with)) - (at.End - at.Start)
	for _, span := range []*wire.Span{
		&out.ID, &out.Params, &out.Meta, &out.Result, &out.Error, &out.Token, &out.Trace, &out.Caller,
		&out.Progress, &out.RequestID, &out.URI, &out.LegacyType, &out.ProviderName, &out.Payload,
	} {
		if span.Start >= at.End {
			span.Start += by
		}
		if span.End >= at.End {
			span.End += by
		}
	}
	return out
}
