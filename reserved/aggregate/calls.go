package aggregate

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
	"mcpbroker/reserved/roster"
)

// call is one request of a client that a member has not answered yet.
type call struct {
	number uint64 // ours, which the member knows
	theirs uint64 // the session's
	id     []byte // raw
	client *roster.Member[client]
	member *member
	stamp  bool     // the answer holds URIs of the member
	wait   *wait    // for the member to come back; nil once it has been sent
	asks   []uint64 // what the member asked about it; replaced, never changed in place
	since  time.Time
	due    time.Time // of one that waited, and was not heard of since: see suspended.go
}

// callCrashed: the server failed while it handled the answer to this call.
type callCrashed struct {
	control
	session uint64 // of the member
	call    uint64
}

// callNamed passes on a call of what a member published under another name. Only
// the name changes.
func (s *State) callNamed(c *roster.Member[client], m *msg.ClientCall, k list) *wire.Error {
	f := &m.Frame
	at, twice := only(f.Raw(f.Params), "name")
	if twice {
		return wire.AmbiguousParam("name")
	}
	r, err := s.resolve(f.Raw(f.Params), at, k)
	if err != nil {
		return err
	}
	r.frame = splice(f, shift(at, f.Params.Start), r.original)
	return s.pass(c, m, &r)
}

// route is where a call goes, and as what.
type route struct {
	to    *member
	frame wire.Frame // the client's own but for what was spliced
	stamp bool       // the answer holds URIs of the member

	kind     list   // of what is called; from resources on nothing is known of it
	name     string // in _all
	original []byte // the member's own name, raw
}

// resolve looks up a name at its place in object.
func (s *State) resolve(object []byte, at wire.Span, k list) (route, *wire.Error) {
	name, _ := wire.Unquote(within(object, at))
	if t, ok := s.catalog(k).index[name]; ok {
		return route{to: s.serving(t.slot), kind: k, name: name, original: t.original}, nil
	}
	if c, ok := s.gone[goneKey(k, name)]; ok {
		if err := s.absence(c.slot); err != nil {
			return route{}, err
		}
	}
	return route{}, wire.UnknownAggregated(lists[k].item, name)
}

// pass sends a call to a member, or has it wait for one.
func (s *State) pass(c *roster.Member[client], m *msg.ClientCall, r *route) *wire.Error {
	if len(s.calls) >= s.cfg.MaxPending {
		return wire.SlotBusy(wire.SlotAggregate, "calls in flight to its members", s.cfg.MaxPending)
	}
	if err := r.to.mayWait(); err != nil {
		return err
	}
	set(s, &s.lastCall, s.lastCall+1)
	passed := &call{
		number: s.lastCall, theirs: m.Call, id: bytes.Clone(m.Frame.Raw(m.Frame.ID)),
		client: c, member: r.to, stamp: r.stamp, since: s.now,
	}
	if c.Data.calls == nil {
		c.Data.calls = map[uint64]*call{}
	}
	put(s, s.calls, passed.number, passed)
	put(s, c.Data.calls, passed.theirs, passed)
	if r.to.suspended {
		s.await(passed, m, r)
		return nil
	}
	s.dispatch(passed, &r.frame, m.Trace)
	return nil
}

// dispatch sends a call to its member.
func (s *State) dispatch(c *call, frame *wire.Frame, trace string) {
	to := c.member
	put(s, to.calls, c.number, c)
	s.tell(to.to, &msg.ClientCall{
		Session: to.session, Client: to.ref, Call: c.number, Frame: *frame, Trace: trace,
		For: &msg.Origin{Session: c.client.Session, Can: c.client.Data.can},
	})
}

// finish forgets a call, and what was asked about it.
func (s *State) finish(c *call) {
	drop(s, s.calls, c.number)
	drop(s, c.client.Data.calls, c.theirs)
	drop(s, c.member.calls, c.number)
	drop(s, c.member.waits, c.number)
	for _, id := range c.asks {
		drop(s, s.asks, id)
	}
	s.leaveIdle(c.member)
}

func (s *State) replied(c *call, frame []byte) {
	s.finish(c)
	if c.stamp {
		frame = stampContents(frame, c.member.stamp)
	}
	s.tell(c.client.Ref, &msg.CallReply{Call: c.theirs, Frame: frame})
}

func (s *State) callFailed(c *call, err *wire.Error) {
	s.finish(c)
	s.tell(c.client.Ref, &msg.CallFailed{Call: c.theirs, Err: err})
}

func (s *State) progressed(m *msg.CallProgress) {
	if c := s.calls[m.Call]; c != nil {
		s.inHand(c)
		s.tell(c.client.Ref, &msg.CallProgress{Call: c.theirs, Frame: m.Frame})
	}
}

// asked puts a member's question to the client whose call it is about. A call
// that has ended is none to ask about.
func (s *State) asked(m *member, ask *msg.ClientAsk) {
	c := s.calls[ask.Call]
	if c == nil {
		s.tell(m.to, &msg.AskUndeliverable{Session: m.session, ID: ask.ID})
		return
	}
	s.inHand(c)
	put(s, s.asks, ask.ID, c)
	set(s, &c.asks, append(slices.Clip(c.asks), ask.ID))
	s.tell(c.client.Ref, &msg.ClientAsk{Call: c.theirs, ID: ask.ID, Frame: ask.Frame})
}

func (s *State) askCancelled(m *msg.AskCancelled) {
	c := s.calls[m.Call]
	if c == nil {
		return
	}
	params := wire.Member(m.Frame, "params")
	if id, ok := wire.ParseBrokerID(wire.Member(params, "requestId")); ok {
		s.settle(id)
	}
	s.tell(c.client.Ref, &msg.AskCancelled{Call: c.theirs, Frame: m.Frame})
}

// clientAnswer brings a client's answer to the member that asked. Only the
// session that was asked may answer.
func (s *State) clientAnswer(m *msg.ClientAnswer) {
	if id, ok := wire.ParseBrokerID(m.Frame.Raw(m.Frame.ID)); ok {
		if c := s.asks[id]; c != nil && c.client.Session == m.Session {
			s.settle(id)
			s.tell(c.member.to, &msg.ClientAnswer{Session: c.member.session, Frame: m.Frame})
		}
	}
	s.clients.Touch(s.now, m.Session)
}

func (s *State) askUndeliverable(m *msg.AskUndeliverable) {
	if c := s.asks[m.ID]; c != nil && c.client.Session == m.Session {
		s.settle(m.ID)
		s.tell(c.member.to, &msg.AskUndeliverable{Session: c.member.session, ID: m.ID})
	}
}

// settle forgets a question.
func (s *State) settle(id uint64) {
	c := s.asks[id]
	if c == nil {
		return
	}
	drop(s, s.asks, id)
	set(s, &c.asks, slices.DeleteFunc(slices.Clone(c.asks), func(other uint64) bool { return other == id }))
}

func (s *State) callerLeft(m *msg.CallerLeft) {
	c := s.clients.Get(m.Session)
	if c == nil {
		return
	}
	if call := c.Data.calls[m.Call]; call != nil {
		s.ended(call)
	}
}

// callCrashed answers the caller whose answer could not be handled.
func (s *State) callCrashed(m *callCrashed) {
	failed := &msg.CallFailed{Call: m.call, Err: wire.Crashed(wire.SlotAggregate)}
	s.fromMember(&fromMember{session: m.session, message: failed})
}

func callWithID(calls map[uint64]*call, id []byte) *call {
	for _, c := range calls {
		if bytes.Equal(c.id, id) {
			return c
		}
	}
	return nil
}

// byNumber lists calls oldest first.
func byNumber(calls map[uint64]*call) []*call {
	return slices.SortedFunc(maps.Values(calls), func(a, b *call) int { return cmp.Compare(a.number, b.number) })
}
