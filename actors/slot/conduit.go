package slot

import (
	"log/slog"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// What the conduit of the holder says on its own account. It is no word of the
// provider, and does not show that the provider works.

// providerRefusal ends a call that the conduit could not get an answer to. As the
// provider is not at work on it, it is not told that the call is over.
func (s *State) providerRefusal(now time.Time, m *msg.ProviderRefusal) {
	if s.holder == nil || s.holder.gen != m.Gen {
		return
	}
	id, ok := wire.ParseBrokerID(m.ID)
	c := s.pending[id]
	if !ok || c == nil {
		return
	}
	s.untrack(c)
	s.abandon(c.id)
	s.endAsks(c)
	switch {
	case c.init:
		s.initializeRefused(now, c, m.Err)
	case c.role != clientsCall:
		s.subscriptionAnswered(now, c, nil, m.Err)
	}
	s.tell(c.client, &msg.CallFailed{Call: c.number, Err: m.Err})
	s.touch(c.session, now)
}

// initializeRefused ends all that wait for the answer to an initialize: the next one
// would fare no better.
func (s *State) initializeRefused(now time.Time, c *call, err *wire.Error) {
	if c.origID == nil {
		s.log(slog.LevelWarn, `[broker] provider "%s" could not be asked for the initialize sent before restoring subscriptions: %s`, s.name, err.Message)
	}
	if s.initLeader != c.id {
		return
	}
	s.endInitialize(c, nil)
	s.failQueue(err)
	s.release(now)
}

// providerRenewed: the server has forgotten what it was asked, and may be another one.
// Later clients get its present answer to initialize; those who are there read again
// what they know of it. What they subscribed to the conduit has asked for once more.
func (s *State) providerRenewed(m *msg.ProviderRenewed) {
	if s.holder == nil || s.holder.gen != m.Gen {
		return
	}
	if s.initAnswer != nil && m.Answer.Result.Present() {
		s.initAnswer = &m.Answer
	}
	declared := wire.Member(m.Answer.Raw(m.Answer.Result), "capabilities")
	for _, kind := range []string{"tools", "prompts", "resources"} {
		if wire.Member(declared, kind) != nil {
			s.listChanged(kind)
		}
	}
	for _, uri := range s.uris() {
		s.readAgain(s.subs[uri])
	}
}

// listChanged tells every session, as a provider would, that a list has changed.
func (s *State) listChanged(kind string) {
	note, _ := wire.Scan([]byte(`{"jsonrpc":"2.0","method":"notifications/` + kind + `/list_changed"}`))
	s.broadcast(&note)
}
