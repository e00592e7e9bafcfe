package wire

import "strconv"

// IDPrefix begins every id the broker puts on a request it relays.
const IDPrefix = "brk-"

// AppendBrokerID appends the JSON string "brk-<n>".
func AppendBrokerID(b []byte, n uint64) []byte {
	b = append(b, '"')
	b = append(b, IDPrefix...)
	b = strconv.AppendUint(b, n, 10)
	return append(b, '"')
}

// ParseBrokerID reads the n of a raw "brk-<n>". Any other spelling, leading
// zeros included, is not an id the broker gave out.
func ParseBrokerID(raw []byte) (uint64, bool) {
	const lead = len(IDPrefix) + 1
	if len(raw) < lead+2 || raw[0] != '"' || raw[len(raw)-1] != '"' || string(raw[1:lead]) != IDPrefix {
		return 0, false
	}
	return parseCounter(raw[lead : len(raw)-1])
}

// ParseToken reads the n of a progress token the broker gave out: "brk-<n>" for
// a caller that used a string, n for one that used a number.
func ParseToken(raw []byte) (uint64, bool) {
	if len(raw) > 0 && raw[0] == '"' {
		return ParseBrokerID(raw)
	}
	return parseCounter(raw)
}

func parseCounter(digits []byte) (uint64, bool) {
	if len(digits) == 0 || len(digits) > 20 || digits[0] == '0' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(digits), 10, 64)
	return n, err == nil
}

// ToProvider returns the request f as the provider gets it: the broker's id n in
// place of the client's, the progress token likewise (its JSON type kept), a
// trace context where the client sent no valid one, and without the caller key.
// Positional params are left alone (F-21). trace must be a valid traceparent.
func ToProvider(f *Frame, n uint64, trace string) []byte {
	var p patch
	p.id(f.ID, n)
	switch {
	case !f.Token.Present():
	case f.Bytes[f.Token.Start] == '"':
		p.id(f.Token, n)
	default:
		p.number(f.Token, n)
	}
	if f.NeedsTrace() {
		p.trace(f, trace)
	}
	if f.Caller.Present() && !f.CallerAlone { // alone, the trace has taken its place
		p.text(f.Caller.withComma(f.Bytes))
	}
	return p.apply(f.Bytes)
}

// NeedsTrace reports whether ToProvider will insert the trace context.
func (f *Frame) NeedsTrace() bool {
	return !f.TraceValid && (f.ParamsShape == Absent || f.ParamsShape == Object) &&
		(f.MetaShape == Absent || f.MetaShape == Object)
}

// NoteToProvider returns a client notification as the provider gets it: without
// the caller key, and without the _meta this empties.
func NoteToProvider(f *Frame) []byte {
	switch {
	case !f.Caller.Present():
		return f.Bytes
	case f.CallerAlone:
		return Replace(f, member(f.Bytes, f.Meta), nil)
	}
	return Replace(f, f.Caller.withComma(f.Bytes), nil)
}

// WithID returns the response f with another raw id.
func WithID(f *Frame, id []byte) []byte { return Replace(f, f.ID, id) }

// Replace returns f with the bytes of one span exchanged.
func Replace(f *Frame, at Span, with []byte) []byte {
	out := make([]byte, 0, len(f.Bytes)+len(with)-int(at.End-at.Start))
	out = append(out, f.Bytes[:at.Start]...)
	out = append(out, with...)
	return append(out, f.Bytes[at.End:]...)
}

// withComma widens the span of an object member by the one comma that has to go
// with it: the following one, or the preceding one for the last member.
func (s Span) withComma(b []byte) Span {
	end := skipSpace(b, s.End)
	if b[end] == ',' {
		return Span{s.Start, skipSpace(b, end+1)}
	}
	start := s.Start - 1
	for b[start] == ' ' || b[start] == '\t' || b[start] == '\n' || b[start] == '\r' {
		start--
	}
	if b[start] == ',' {
		return Span{start, s.End}
	}
	return s
}

// member widens the span of a value to its whole member, key and comma
// included. The key must be spelled without escapes up to its quotes, which the
// walk back over a validated string guarantees.
func member(b []byte, value Span) Span {
	i := value.Start - 1
	for b[i] != ':' {
		i--
	}
	for b[i] != '"' {
		i--
	}
	i--
	for b[i] != '"' || escaped(b, i) {
		i--
	}
	return Span{i, value.End}.withComma(b)
}

func escaped(b []byte, quote int32) bool {
	n := 0
	for quote--; quote >= 0 && b[quote] == '\\'; quote-- {
		n++
	}
	return n%2 == 1
}

func skipSpace(b []byte, i int32) int32 {
	for b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r' {
		i++
	}
	return i
}

// patch collects the edits of one request and applies them in one copy. It keeps
// their texts in its own room, so that it costs no allocation.
type patch struct {
	edits [4]edit // id, token, trace, caller
	n     int
	room  [192]byte // two ids and a trace context, with the members around it
	used  int
	grow  int
}

// edit puts room[from:to] in place of a span.
type edit struct {
	at       Span
	from, to int
}

func (p *patch) id(at Span, n uint64) { p.replace(at, AppendBrokerID(p.tail(), n)) }

func (p *patch) number(at Span, n uint64) { p.replace(at, strconv.AppendUint(p.tail(), n, 10)) }

func (p *patch) text(at Span, parts ...string) {
	text := p.tail()
	for _, part := range parts {
		text = append(text, part...)
	}
	p.replace(at, text)
}

// trace puts the trace context where it belongs, with as much of params and _meta
// around it as f does not have.
func (p *patch) trace(f *Frame, trace string) {
	const key = `"traceparent":"`
	switch {
	case f.Trace.Present():
		p.text(f.Trace, `"`, trace, `"`)
	case f.CallerAlone:
		p.text(f.Caller, key, trace, `"`)
	case f.MetaShape == Object:
		p.text(front(f.Meta), key, trace, `"`, f.comma(f.Meta))
	case f.ParamsShape == Object:
		p.text(front(f.Params), `"_meta":{`, key, trace, `"}`, f.comma(f.Params))
	default:
		end := int32(len(f.Bytes) - 1)
		p.text(Span{end, end}, `,"params":{"_meta":{`, key, trace, `"}}`)
	}
}

// front is the place of a new first member of an object.
func front(object Span) Span { return Span{object.Start + 1, object.Start + 1} }

// comma is what separates a new first member of an object from the next.
func (f *Frame) comma(object Span) string {
	if f.Bytes[skipSpace(f.Bytes, object.Start+1)] == '}' {
		return ""
	}
	return ","
}

// tail is the free room, to append a text to.
func (p *patch) tail() []byte { return p.room[p.used:p.used] }

// replace records an edit whose text was appended to tail. Edits are kept in
// order of offset; an insertion stands before a replacement that begins at the
// same place.
func (p *patch) replace(at Span, text []byte) {
	if len(text) > len(p.room)-p.used {
		panic("wire: the trace context is no traceparent")
	}
	i := p.n
	for i > 0 && (p.edits[i-1].at.Start > at.Start || p.edits[i-1].at.Start == at.Start && at.End == at.Start) {
		p.edits[i] = p.edits[i-1]
		i--
	}
	p.edits[i] = edit{at, p.used, p.used + len(text)}
	p.n++
	p.used += len(text)
	p.grow += len(text) - int(at.End-at.Start)
}

func (p *patch) apply(b []byte) []byte {
	out := make([]byte, 0, len(b)+p.grow)
	from := int32(0)
	for _, e := range p.edits[:p.n] {
		out = append(out, b[from:e.at.Start]...)
		out = append(out, p.room[e.from:e.to]...)
		from = e.at.End
	}
	return append(out, b[from:]...)
}
