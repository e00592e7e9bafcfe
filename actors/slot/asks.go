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

// capability is what a client declared in its initialize, as bits.
type capability uint8

const (
	canSample capability = 1 << iota
	canElicit
	canListRoots
)

// capabilitiesOf reads the params of an initialize.
func capabilitiesOf(params []byte) capability {
	declared := wire.Member(params, "capabilities")
	if declared == nil {
		return 0
	}
	var c capability
	for name, bit := range map[string]capability{"sampling": canSample, "elicitation": canElicit, "roots": canListRoots} {
		if raw := wire.Member(declared, name); len(raw) > 0 && raw[0] == '{' {
			c |= bit
		}
	}
	return c
}

func needed(method []byte) capability {
	switch string(method) {
	case mcp.CreateMessage:
		return canSample
	case mcp.Elicit:
		return canElicit
	case mcp.ListRoots:
		return canListRoots
	}
	return 0
}

// relayRequest puts a provider's request to a client, or answers it.
func (s *State) relayRequest(now time.Time, f *wire.Frame) {
	id := f.Raw(f.ID)
	owner, err := s.askee(f.Method)
	if err != nil {
		s.toProvider(err.Response(id), mcp.Required)
		return
	}
	if len(s.asks) >= s.cfg.MaxPending {
		s.toProvider(wire.SlotBusy(s.name, "maxPendingPerSlot", s.cfg.MaxPending).Response(id), mcp.Required)
		return
	}
	a := &call{
		id: s.cfg.NextID(), role: clientAsk, session: owner.session, number: owner.number,
		client: owner.client, origID: bytes.Clone(id),
	}
	s.track(now, a)
	s.tell(owner.client, &msg.ClientAsk{
		Call: owner.number, ID: a.id, Frame: wire.Replace(f, f.ID, wire.AppendBrokerID(nil, a.id)),
	})
}

// askee finds the newest call in flight of the only client that may be asked.
func (s *State) askee(method []byte) (*call, *wire.Error) {
	bit := needed(method)
	if bit == 0 {
		return nil, wire.NotRelayed(method)
	}
	var found *call
	for _, c := range s.pending {
		if c.client == nil || c.init {
			continue
		}
		switch m := s.members[c.session]; {
		case m == nil:
		case found != nil && found.session != c.session:
			return nil, wire.AmbiguousAsk(method)
		case m.can&bit == 0:
			return nil, wire.CannotAsk(method)
		case found == nil || c.id > found.id:
			found = c
		}
	}
	if found == nil {
		return nil, wire.NobodyToAsk(method)
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
	s.untrack(a)
	s.toProvider(wire.WithID(f, a.origID), mcp.Required)
	s.touch(m.Session, now)
}

// askUndeliverable: the client has no stream that could carry the request.
func (s *State) askUndeliverable(m *msg.AskUndeliverable) {
	if a := s.asks[m.ID]; a != nil && a.session == m.Session {
		s.untrack(a)
		s.toProvider(wire.NobodyToAsk([]byte("no open stream")).Response(a.origID), mcp.Required)
	}
}

// endAsks ends what a client was asked on behalf of a call that has ended; a zero
// number stands for all calls of the session.
func (s *State) endAsks(session, number uint64, why *wire.Error) {
	for _, a := range s.asks {
		if a.session != session || number != 0 && a.number != number {
			continue
		}
		s.untrack(a)
		if s.holder != nil {
			s.toProvider(why.Response(a.origID), mcp.Required)
		}
		s.cancelAsk(a)
	}
}

// loseAsks: the provider that asked is gone.
func (s *State) loseAsks() {
	for _, a := range s.asks {
		s.untrack(a)
		s.cancelAsk(a)
	}
}

// cancelAsk tells the client that its answer is not wanted any more.
func (s *State) cancelAsk(a *call) {
	if m := s.members[a.session]; m != nil {
		s.tell(m.ref, &msg.AskCancelled{Call: a.number, Frame: cancelled(a.id)})
	}
}

func (s *State) expireAsk(a *call) {
	s.untrack(a)
	s.log(slog.LevelWarn, `[broker] a client of slot "%s" did not answer its provider's request within %dms (providerRequestTimeoutMs)`,
		s.name, s.cfg.RequestTimeout.Milliseconds())
	s.toProvider(wire.AskUnanswered(s.cfg.RequestTimeout).Response(a.origID), mcp.Required)
	s.cancelAsk(a)
}
