package slot

import (
	"bytes"
	"log/slog"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// With serverRequests = "relay" a request that a provider opens (sampling,
// elicitation, roots) is put to the one client whose call is in flight. A client
// that did not declare the capability is never asked, and where calls of several
// clients are in flight nobody is: the provider does not say which of them its
// question belongs to, and a wrong guess would show one client's business to
// another.
//
// A question belongs to a call and ends with it. While it is open the call is not
// idle: asking, answering and the question's own deadline give the call more
// time, as progress does.

// relayRequest puts a provider's request to a client, or answers it.
func (s *State) relayRequest(now time.Time, f *wire.Frame) {
	id := f.Raw(f.ID)
	owner, err := s.askee(f.Method)
	if err == nil && len(s.asks) >= s.cfg.MaxPending {
		err = wire.SlotBusy(s.name, "maxPendingPerSlot", s.cfg.MaxPending)
	}
	if err != nil {
		s.toProvider(err.Response(id), mcp.Required)
		return
	}
	a := &call{
		id: s.cfg.NextID(), role: clientAsk, about: string(f.Method), within: owner.id,
		session: owner.session, number: owner.number, client: owner.client, origID: bytes.Clone(id),
	}
	s.track(now, a)
	s.extend(now, owner)
	s.tell(owner.client, &msg.ClientAsk{
		Call: owner.number, ID: a.id, Frame: wire.Replace(f, f.ID, wire.AppendBrokerID(nil, a.id)),
	})
}

// askee finds the newest call in flight of the only client that may be asked.
func (s *State) askee(method []byte) (*call, *wire.Error) {
	bit := mcp.NeededFor(method)
	if bit == 0 {
		return nil, wire.NotRelayed(method)
	}
	var found *call
	for _, c := range s.pending {
		switch {
		case c.client == nil || c.init || c.behind == nil && s.ours(c.session):
		case found != nil && s.origin(found).Session != s.origin(c).Session:
			return nil, wire.AmbiguousAsk(method)
		case found == nil || c.id > found.id:
			found = c
		}
	}
	if found == nil {
		return nil, wire.NobodyToAsk(method)
	}
	if s.origin(found).Can&bit == 0 {
		return nil, wire.CannotAsk(method)
	}
	return found, nil
}

// clientAnswer brings a client's answer to the provider that asked. Only the
// session that was asked may answer.
func (s *State) clientAnswer(now time.Time, m *msg.ClientAnswer) {
	f := &m.Frame
	id, ok := wire.ParseBrokerID(f.Raw(f.ID))
	a := s.asks[id]
	if !ok || a == nil || a.session != m.Session {
		return
	}
	s.settleAsk(now, a, wire.WithID(f, a.origID))
	s.touch(m.Session, now)
}

// settleAsk brings the provider an answer; the call goes on.
func (s *State) settleAsk(now time.Time, a *call, answer []byte) {
	s.untrack(a)
	if c := s.pending[a.within]; c != nil {
		s.extend(now, c)
	}
	s.toProvider(answer, mcp.Required)
}

// askUndeliverable: the client has no stream that could carry the request.
func (s *State) askUndeliverable(now time.Time, m *msg.AskUndeliverable) {
	if a := s.asks[m.ID]; a != nil && a.session == m.Session {
		s.settleAsk(now, a, wire.NobodyToAsk([]byte(a.about)).Response(a.origID))
	}
}

func (s *State) expireAsk(now time.Time, a *call) {
	s.log(slog.LevelWarn, `[broker] a client of slot "%s" did not answer its provider's request (%s) within %dms (providerRequestTimeoutMs)`,
		s.name, a.about, s.cfg.RequestTimeout.Milliseconds())
	s.settleAsk(now, a, wire.AskUnanswered(s.cfg.RequestTimeout).Response(a.origID))
	s.cancelAsk(a, cancelled(a.id))
}

// askWithdrawn: the provider cancels a request of its own. Its client knows it
// under the broker's id.
func (s *State) askWithdrawn(f *wire.Frame) {
	if !f.RequestID.Present() {
		return
	}
	for _, a := range s.asksInOrder() {
		if bytes.Equal(a.origID, f.Raw(f.RequestID)) {
			s.untrack(a)
			s.cancelAsk(a, wire.Replace(f, f.RequestID, wire.AppendBrokerID(nil, a.id)))
			return
		}
	}
}

// endAsks ends what a client was asked on behalf of a call that has ended.
func (s *State) endAsks(c *call) {
	if len(s.asks) == 0 {
		return
	}
	for _, a := range s.asksInOrder() {
		if a.within == c.id {
			s.untrack(a)
			s.toProvider(wire.CallEnded().Response(a.origID), mcp.Required)
			s.cancelAsk(a, cancelled(a.id))
		}
	}
}

// loseAsks: the provider that asked is gone.
func (s *State) loseAsks() {
	for _, a := range s.asksInOrder() {
		s.untrack(a)
		s.cancelAsk(a, cancelled(a.id))
	}
}

// cancelAsk tells the client that its answer is not wanted any more.
func (s *State) cancelAsk(a *call, frame []byte) {
	if m := s.members[a.session]; m != nil {
		s.tell(m.ref, &msg.AskCancelled{Call: a.number, Frame: frame})
	}
}

func (s *State) asksInOrder() []*call { return inOrder(s.asks) }
