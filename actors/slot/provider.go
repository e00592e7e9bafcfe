package slot

import (
	"bytes"
	"strings"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// providerFrame routes one frame of the provider (spec 01 4.7). Frames of an
// older holder change nothing.
func (s *State) providerFrame(now time.Time, m *msg.ProviderFrame) {
	if s.holder == nil || s.holder.gen != m.Gen {
		return
	}
	f := &m.Frame
	if f.Method != nil || f.IsResponse() {
		s.heard()
	}
	switch {
	case f.Shape != wire.Object:
		s.junk(f.Bytes)
	case !f.JSONRPC && f.Method == nil && string(f.Raw(f.LegacyType)) == `"register"`:
		s.register(f.LegacyJoin)
	case f.Method == nil && f.IsResponse():
		s.answer(now, f)
	case f.Method == nil:
		s.junk(f.Bytes)
	case string(f.Method) == mcp.Register:
		s.register(f.Aggregate)
	case f.IsRequest():
		s.providerRequest(now, f)
	case f.IDShape == wire.Absent || f.IDShape == wire.Null:
		s.providerNote(now, f)
	default:
		s.junk(f.Bytes)
	}
}

// heard remembers that the holder speaks JSON-RPC, so that its silence later is
// no sign of a wrong transport.
func (s *State) heard() {
	if s.holder.answered {
		return
	}
	spoken := *s.holder
	spoken.answered = true
	s.holder = &spoken
}

// register consumes the announcement of a provider, at any time (F-09).
func (s *State) register(aggregate bool) {
	if !aggregate || s.holder.aggregate {
		return
	}
	joined := *s.holder
	joined.aggregate = true
	s.holder = &joined
	s.changed()
}

func (s *State) providerJunk(m *msg.ProviderJunk) {
	if s.holder != nil && s.holder.gen == m.Gen {
		s.junk(m.Head)
	}
}

// junk drops what is no JSON-RPC message; clients never see it (F-26).
func (s *State) junk(frame []byte) {
	s.warnOnce(warnJunk, `[broker] provider "%s" sent a frame the broker could not route as JSON-RPC; it was dropped, and so are later ones: %s`,
		s.name, wire.Excerpt(frame))
}

func (s *State) answer(now time.Time, f *wire.Frame) {
	id, ok := wire.ParseBrokerID(f.Raw(f.ID))
	c := s.pending[id]
	switch {
	case ok && c != nil:
		s.works(now)
	case ok && s.abandoned.has(id):
		s.works(now) // an answer all the same
		return
	default:
		s.warnOnce(warnUnmatched, `[broker] provider "%s" sent a response with id %s, which matches no request; it was dropped, and so are later ones`,
			s.name, wire.Preview(f.Raw(f.ID)))
		return
	}
	s.untrack(c)
	s.endAsks(c)
	switch {
	case c.init:
		s.initializeAnswered(now, c, f)
	case c.role != clientsCall:
		s.subscriptionAnswered(now, c, f, nil)
	}
	if c.client != nil {
		s.tell(c.client, &msg.CallReply{Call: c.number, Frame: wire.WithID(f, c.origID)})
		s.touch(c.session, now)
	}
}

// providerRequest answers what a provider asks of the broker or, through it, of
// clients. Only serverRequests = "relay" lets anything of it through.
func (s *State) providerRequest(now time.Time, f *wire.Frame) {
	id := f.Raw(f.ID)
	switch {
	case string(f.Method) == mcp.Ping:
		frame := append(append([]byte(`{"jsonrpc":"2.0","id":`), id...), `,"result":{}}`...)
		s.toProvider(frame, mcp.Required)
	case strings.HasPrefix(string(f.Method), mcp.BrokerPrefix):
		s.toProvider(wire.NoBrokerMethod(f.Method).Response(id), mcp.Required)
	case s.cfg.RelayRequests:
		s.relayRequest(now, f)
	default:
		s.warnOnce(warnOpened, `[broker] provider "%s" opened a request of its own (%s); it was answered -32601, and so are later ones`, s.name, f.Method)
		s.toProvider(wire.NotRelayed(f.Method).Response(id), mcp.Required)
	}
}

func (s *State) providerNote(now time.Time, f *wire.Frame) {
	switch method := string(f.Method); {
	case method == mcp.Telemetry:
	case strings.HasPrefix(method, mcp.BrokerPrefix):
		s.warnOnce(warnBrokerNote, `[broker] provider "%s" sent the notification "%s", which this broker does not take; it was dropped`, s.name, method)
	case method == mcp.Progress:
		s.progress(now, f)
	case f.IDShape == wire.Null:
		s.junk(f.Bytes)
	case method == mcp.Cancelled && s.cfg.RelayRequests:
		s.askWithdrawn(f)
	case method == mcp.ResourceUpdated:
		s.resourceUpdated(now, f)
	default:
		s.broadcast(f)
	}
}

// progress goes to the owner of its token only (F-27) and gives the call more
// time, up to the cap.
func (s *State) progress(now time.Time, f *wire.Frame) {
	if !f.Progress.Present() {
		s.junk(f.Bytes)
		return
	}
	id, ok := wire.ParseToken(f.Raw(f.Progress))
	c := s.pending[id]
	if !ok || c == nil || c.token == nil {
		if !ok || !s.abandoned.has(id) {
			s.warnOnce(warnNoOwner, `[broker] provider "%s" reported progress under token %s, which no request gave it; it was dropped`,
				s.name, wire.Preview(f.Raw(f.Progress)))
		}
		return
	}
	s.works(now)
	s.extend(now, c)
	s.tell(c.client, &msg.CallProgress{Call: c.number, Frame: wire.Replace(f, f.Progress, c.token)})
}

func (s *State) extend(now time.Time, c *call) {
	if c.deadline.IsZero() {
		return
	}
	later := now.Add(s.cfg.RequestTimeout)
	if end := c.started.Add(progressCap * s.cfg.RequestTimeout); later.After(end) {
		later = end
	}
	before := c.deadline
	s.deadlines.move(c, later)
	s.undo(func() { s.deadlines.move(c, before) })
}

func notification(f *wire.Frame) *msg.Notify {
	var uri []byte
	if f.URI.Present() {
		uri = f.Raw(f.URI)
	}
	class, key := mcp.NoteClass(f.Method, uri)
	return &msg.Notify{Frame: bytes.Clone(f.Bytes), Class: class, Key: key}
}
