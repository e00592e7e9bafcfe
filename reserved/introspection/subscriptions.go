package introspection

import (
	"maps"
	"slices"
	"unicode/utf16"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// Sessions subscribe to broker://providers and to single slots. They are told
// when a slot appears or goes, when its provider attaches or detaches or is being
// connected, and when it joins or leaves _all; never of counters, since to read them changes them
// (spec 03 1.6). Those of broker://instances and of single ones are told when an
// upstream attaches or detaches, not of every check. URIs match byte for byte.

// sight is what of a slot its subscribers are told the change of.
type sight struct {
	connected, connecting, aggregate bool

	upstream bool // the broker itself started or dialled what serves it
	gen      uint64
}

// flushDue ends a batch of changes. It is queued behind the changes that were
// there when the first one was handled.
type flushDue struct{}

// ControlMessage implements the marker of actors/rt.
func (flushDue) ControlMessage() {}

func (s *State) subscription(m *msg.ClientCall, from *member) {
	uri := uriOf(&m.Frame)
	if uri == "" {
		s.fail(m, wire.MissingURI())
		return
	}
	if string(m.Frame.Method) == mcp.Unsubscribe {
		s.reply(m, empty)
		s.unsubscribe(from, uri)
		return
	}
	if err := s.admit(from, uri); err != nil {
		s.fail(m, err)
		return
	}
	s.reply(m, empty)
	s.subscribe(from, uri)
}

func (s *State) admit(from *member, uri string) *wire.Error {
	n := len(utf16.Encode([]rune(uri)))
	switch {
	case n > s.cfg.maxURIs:
		return wire.URITooLong(n, s.cfg.maxURIs)
	case !s.exists(uri):
		return wire.ResourceNotFound(uri)
	case from.Data.subs[uri]:
		return nil
	case len(from.Data.subs) >= s.cfg.maxSubsPerClient:
		return wire.SubscriptionLimit("maxSubscriptionsPerClient", s.cfg.maxSubsPerClient)
	case s.subCount >= s.cfg.maxSubsPerSlot:
		return wire.SubscriptionLimit("maxSubscriptionsPerSlot", s.cfg.maxSubsPerSlot)
	}
	return nil
}

func (s *State) subscribe(from *member, uri string) {
	if from.Data.subs[uri] {
		return
	}
	if from.Data.subs == nil {
		from.Data.subs = map[string]bool{}
	}
	if s.subs[uri] == nil {
		s.subs[uri] = map[uint64]bool{}
	}
	from.Data.subs[uri] = true
	s.subs[uri][from.Session] = true
	s.subCount++
}

func (s *State) unsubscribe(from *member, uri string) {
	if !from.Data.subs[uri] {
		return
	}
	delete(from.Data.subs, uri)
	delete(s.subs[uri], from.Session)
	if len(s.subs[uri]) == 0 {
		delete(s.subs, uri)
	}
	s.subCount--
}

// observed notes what became of a slot. The registry enters this slot without
// knowing what it is, and is told.
func (s *State) observed(m *msg.SlotObserved) {
	info := &m.Info
	if info.Name == Slot && !info.Connected {
		s.tell(s.registry, &msg.SlotChanged{Info: s.Info()})
	}
	now := sight{info.Connected, info.Expected, info.Aggregate, info.Transport == msg.Upstream, info.Gen}
	before, known := s.seen[info.Name]
	if known && now == before {
		return
	}
	s.seen[info.Name] = now
	s.mark(info.Name, now.upstream || before.upstream)
}

func (s *State) forgotten(m *msg.SlotForgotten) {
	if before, known := s.seen[m.Name]; known {
		delete(s.seen, m.Name)
		s.mark(m.Name, before.upstream)
	}
}

// mark adds a slot's change to the batch.
func (s *State) mark(slot string, upstream bool) {
	idle := len(s.dirty) == 0
	uris := []string{uriProviders, providerURI(slot)}
	if upstream {
		uris = append(uris, uriInstances, instanceURI(slot))
	}
	for _, uri := range uris {
		if s.subs[uri] != nil {
			s.dirty[uri] = true
		}
	}
	if idle && len(s.dirty) > 0 {
		s.effects = append(s.effects, Effect{Flush: true})
	}
}

// flush notifies the subscribers, once for each URI of the batch.
func (s *State) flush() {
	for _, uri := range slices.Sorted(maps.Keys(s.dirty)) {
		raw := wire.AppendString(nil, uri)
		note := &msg.Notify{Frame: updated(raw)}
		note.Class, note.Key = mcp.NoteClass([]byte(mcp.ResourceUpdated), raw)
		for _, session := range slices.Sorted(maps.Keys(s.subs[uri])) {
			s.tell(s.sessions.Get(session).Ref, note)
		}
	}
	clear(s.dirty)
}

func updated(raw []byte) []byte {
	b := []byte(`{"jsonrpc":"2.0","method":"` + mcp.ResourceUpdated + `","params":{"uri":`)
	return append(append(b, raw...), "}}"...)
}
