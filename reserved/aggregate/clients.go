package aggregate

import (
	"slices"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
	"mcpbroker/reserved/roster"
)

// clientEvicted follows the join that took a session's place.
type clientEvicted struct {
	control
	member *roster.Member[client]
}

func (s *State) clientJoins(m *msg.JoinSlot) {
	known := s.clients.Get(m.Session) != nil
	member, evicted, sends := s.clients.Join(s.now, m, s.self)
	for _, send := range sends {
		s.tell(send.To, send.Message)
	}
	if member != nil && !known {
		s.count(m.Kind, 1)
	}
	if evicted != nil {
		s.count(evicted.Kind, -1)
		s.tell(s.self, &clientEvicted{member: evicted})
	}
}

func (s *State) clientLeaves(m *msg.LeaveSlot) {
	member := s.clients.Get(m.Session)
	if member == nil {
		return
	}
	s.endCalls(member)
	s.count(member.Kind, -1)
	s.clients.Leave(m.Session)
}

// count keeps the number of callers; the registry hears of the first and the last.
func (s *State) count(kind msg.ClientKind, by int) {
	if kind == msg.BrokerClient {
		return
	}
	before := s.callers
	set(s, &s.callers, before+by)
	if (before == 0) != (s.callers == 0) {
		s.effects = append(s.effects, Effect{Changed: true})
	}
}

// endCalls withdraws what a session that leaves has in flight.
func (s *State) endCalls(member *roster.Member[client]) {
	for _, c := range byNumber(member.Data.calls) {
		s.ended(c)
	}
}

// clientCall answers a request of a client, or passes it on.
func (s *State) clientCall(m *msg.ClientCall) {
	c := s.clients.Get(m.Session)
	if c == nil {
		s.fail(m, wire.SessionClosed())
		return
	}
	if err := s.serve(c, m); err != nil {
		s.fail(m, err)
	}
	s.clients.Touch(s.now, m.Session)
}

func (s *State) serve(c *roster.Member[client], m *msg.ClientCall) *wire.Error {
	switch method := string(m.Frame.Method); method {
	case mcp.Initialize:
		s.initialize(c, m)
		return nil
	case mcp.Ping:
		s.reply(m, []byte(`{}`))
		return nil
	case mcp.ToolsCall:
		return s.callNamed(c, m, tools)
	case "prompts/get":
		return s.callNamed(c, m, prompts)
	default:
		if k, ok := s.kindListedBy(method); ok {
			return s.list(m, k)
		}
		if s.cfg.Resources {
			return s.serveResources(c, m, method)
		}
	}
	return wire.UnknownMethod(m.Frame.Method)
}

// reply answers with a result in parts.
func (s *State) reply(m *msg.ClientCall, result ...[]byte) {
	parts := [][]byte{[]byte(`{"jsonrpc":"2.0","id":`), m.Frame.Raw(m.Frame.ID), []byte(`,"result":`)}
	parts = append(append(parts, result...), []byte(`}`))
	s.tell(m.Client, &msg.CallReply{Call: m.Call, Frame: slices.Concat(parts...)})
}

func (s *State) fail(m *msg.ClientCall, err *wire.Error) {
	s.tell(m.Client, &msg.CallFailed{Call: m.Call, Err: err})
}

// initialize negotiates the client's revision and remembers what it can be asked.
func (s *State) initialize(c *roster.Member[client], m *msg.ClientCall) {
	params := m.Frame.Raw(m.Frame.Params)
	set(s, &c.Data.can, mcp.DeclaredBy(params))
	revision, _ := wire.Unquote(wire.Member(params, "protocolVersion"))
	if !mcp.KnownRevision(revision) {
		revision = mcp.Revision20251125
	}
	b := append([]byte(`{"protocolVersion":"`), revision...)
	b = append(b, `","serverInfo":{"name":"_all","version":`...)
	b = wire.AppendString(b, s.cfg.Version)
	b = append(b, `},"capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":true}`...)
	if s.cfg.Resources {
		b = append(b, `,"resources":{"listChanged":true},"completions":{}`...)
	}
	b = append(b, '}')
	if text := s.instructions(); text != "" {
		b = wire.AppendString(append(b, `,"instructions":`...), text)
	}
	s.reply(m, append(b, '}'))
}

// clientNote passes a cancellation on; nothing else a client tells concerns a
// member.
func (s *State) clientNote(m *msg.ClientNote) {
	f := &m.Frame
	if c := s.clients.Get(m.Session); c != nil && string(f.Method) == mcp.Cancelled && f.RequestID.Present() {
		s.cancelled(c, f)
	}
	s.clients.Touch(s.now, m.Session)
}

// broadcast tells every session that the lists have changed. Both notifications
// go out whatever the change (spec 03 3.5).
func (s *State) broadcast() {
	changed := []list{tools, prompts}
	if s.cfg.Resources {
		changed = append(changed, resources)
	}
	all := s.clients.All()
	for _, k := range changed {
		method := lists[k].changed
		note := &msg.Notify{Frame: []byte(`{"jsonrpc":"2.0","method":"` + method + `"}`), Class: mcp.Coalesced, Key: method}
		for _, c := range all {
			s.tell(c.Ref, note)
		}
	}
}
