package aggregate

import (
	"bytes"
	"slices"
	"strings"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
	"mcpbroker/reserved/roster"
)

// Members may publish the same URI. In _all each carries its owner:
// slot:<percent-encoded slot>/<the member's own URI>, templates likewise.

const scheme = "slot:"

// stampOf is what goes before the URIs of a slot. It needs no escapes in JSON.
func stampOf(slot string) []byte { return []byte(scheme + wire.EncodeSlot(slot) + "/") }

// stamped is object with a stamp put before the string at its place.
func stamped(object []byte, at wire.Span, stamp []byte) []byte {
	return slices.Concat(object[:at.Start+1], stamp, object[at.Start+1:])
}

// serveResources answers the methods there are with aggregateResources only.
func (s *State) serveResources(c *roster.Member[client], m *msg.ClientCall, method string) *wire.Error {
	switch method {
	case "resources/read":
		return s.read(c, m)
	case "completion/complete":
		return s.complete(c, m)
	}
	return wire.UnknownMethod(m.Frame.Method)
}

func (s *State) read(c *roster.Member[client], m *msg.ClientCall) *wire.Error {
	f := &m.Frame
	owner, uri, err := s.ownerOf(f.Raw(f.URI))
	if err != nil {
		return err
	}
	return s.pass(c, m, &route{to: owner, kind: resources, frame: splice(f, f.URI, uri), stamp: true})
}

// complete passes on what completes an argument of a prompt or of a template.
func (s *State) complete(c *roster.Member[client], m *msg.ClientCall) *wire.Error {
	f := &m.Frame
	params := f.Raw(f.Params)
	ref, twice := only(params, "ref")
	if twice {
		return wire.AmbiguousParam("ref")
	}
	object := within(params, ref)
	start := f.Params.Start + ref.Start
	if kind, _ := wire.Unquote(wire.Member(object, "type")); kind == "ref/resource" {
		at, twice := only(object, "uri")
		if twice {
			return wire.AmbiguousParam("uri")
		}
		owner, uri, err := s.ownerOf(within(object, at))
		if err != nil {
			return err
		}
		return s.pass(c, m, &route{to: owner, kind: templates, frame: splice(f, shift(at, start), uri)})
	}
	at, twice := only(object, "name")
	if twice {
		return wire.AmbiguousParam("name")
	}
	r, err := s.resolve(object, at, prompts)
	if err != nil {
		return err
	}
	r.frame = splice(f, shift(at, start), r.original)
	return s.pass(c, m, &r)
}

// ownerOf reads a stamped URI: its member, and the member's own URI, raw.
func (s *State) ownerOf(raw []byte) (*member, []byte, *wire.Error) {
	uri, ok := wire.Unquote(raw)
	if !ok {
		return nil, nil, wire.MissingURI()
	}
	rest, ok := strings.CutPrefix(uri, scheme)
	slot, own, ok2 := strings.Cut(rest, "/")
	m := s.serving(wire.DecodeSlot(slot))
	switch {
	case !ok || !ok2 || m == nil:
		return nil, nil, wire.ResourceNotFound(uri)
	case m.joined:
		return m, wire.AppendString(nil, own), nil
	}
	if err := s.absence(m.slot); err != nil {
		return nil, nil, err
	}
	return nil, nil, wire.ResourceNotFound(uri)
}

// stampContents puts the owner before the URIs of a read's answer.
func stampContents(frame, stamp []byte) []byte {
	result := wire.MemberAt(frame, "result")
	contents := wire.MemberAt(within(frame, result), "contents")
	if !contents.Present() {
		return frame
	}
	start := result.Start + contents.Start
	var out bytes.Buffer
	from := int32(0)
	array := within(frame, shift(contents, result.Start))
	eachElement(array, func(item wire.Span) {
		at := wire.MemberAt(within(array, item), "uri")
		if uri := start + item.Start + at.Start; at.Present() && frame[uri] == '"' {
			out.Write(frame[from : uri+1])
			out.Write(stamp)
			from = uri + 1
		}
	})
	out.Write(frame[from:])
	return out.Bytes()
}
