package aggregate

import (
	"bytes"

	"mcpbroker/actors/wire"
)

// entry is one item of a list as _all publishes it: the member's own bytes but
// for its name and description, or its URI.
type entry struct {
	name     string    // in _all, before collisions are told apart
	original []byte    // the member's own name, raw
	bytes    []byte    // with name in it
	at       wire.Span // of the name in bytes
}

// newEntry makes an entry out of what a member published; not ok means that
// nothing identifies it.
func newEntry(k list, m *member, raw []byte) (e entry, ok bool) {
	var id, description wire.Span
	eachMember(raw, func(key []byte, at wire.Span) {
		switch {
		case keyIs(key, lists[k].name):
			id = at
		case keyIs(key, "description"):
			description = at
		}
	})
	own, ok := wire.Unquote(within(raw, id))
	if !id.Present() || !ok {
		return entry{}, false
	}
	if k >= resources {
		return entry{bytes: stamped(raw, id, m.stamp)}, true
	}
	if own == "" { // "slot-" would be no name either
		return entry{}, false
	}
	e.name = promptName(m.slot, own)
	if k == tools {
		e.name = toolName(m.slot, own)
	}
	e.original = bytes.Clone(within(raw, id))
	e.splice(m.slot, raw, id, description)
	return e, true
}

// splice writes the entry: raw with its name and description exchanged. Where it
// has no description, one comes behind the name.
func (e *entry) splice(slot string, raw []byte, id, description wire.Span) {
	text := wire.AppendString(nil, "["+slot+"]")
	if own := within(raw, description); len(own) > len(`""`) && own[0] == '"' {
		text = append(append(text[:len(text)-1], ' '), own[1:]...)
	}
	out := make([]byte, 0, len(raw)+len(e.name)+len(text)+len(`,"description":`)+2)
	describe := func() {
		out = append(append(out, raw[:description.Start]...), text...)
	}
	from := int32(0)
	if description.Present() && description.Start < id.Start {
		describe()
		from = description.End
	}
	out = append(out, raw[from:id.Start]...)
	e.at.Start = int32(len(out))
	out = wire.AppendString(out, e.name)
	e.at.End = int32(len(out))
	from = id.End
	switch {
	case !description.Present():
		out = append(append(out, `,"description":`...), text...)
	case description.Start > id.Start:
		out = append(append(out, raw[from:description.Start]...), text...)
		from = description.End
	}
	e.bytes = append(out, raw[from:]...)
}

// as is the entry's bytes under another name.
func (e *entry) as(name string) []byte {
	out := make([]byte, 0, len(e.bytes)+8)
	out = append(out, e.bytes[:e.at.Start]...)
	out = wire.AppendString(out, name)
	return append(out, e.bytes[e.at.End:]...)
}
