package slot

import (
	"bytes"
	"log/slog"
	"maps"
	"slices"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// call is one request the provider has not answered yet.
type call struct {
	id      uint64  // the n of "brk-<n>"
	client  msg.Ref // nil for the broker's own, and once the caller left
	session uint64
	behind  *msg.Origin // the client behind the caller; nil is the caller itself
	ours    bool        // made on the broker's own account, see brokersOwn
	number  uint64      // the session's number for the call
	origID  []byte      // raw
	token   []byte      // raw progress token of the caller, nil when it gave none
	init    bool        // an initialize: never cancelled, its answer is kept
	role    role        // of a call the slot opened itself
	about   string      // its subject: a URI, or the method of a clientAsk
	timed   bool        // its caller minds the time: it has no deadline
	within  uint64      // of a clientAsk: the broker id of the call it belongs to

	retried   bool        // it was sent to a connection before, which died without getting it
	cancelled bool        // by its client
	unsent    *wire.Frame // as it was not written, nil as long as it may have been

	started  time.Time
	deadline time.Time // zero is none
	index    int       // in the heap of deadlines
}

func (s *State) clientCall(now time.Time, m *msg.ClientCall) {
	isInit := string(m.Frame.Method) == mcp.Initialize
	if isInit && !s.ours(m.Session) {
		f := withoutCaller(&m.Frame)
		s.lastInit = bytes.Clone(f.Raw(f.Params))
		s.declare(m.Session)
	}
	switch {
	case s.members[m.Session] == nil:
		s.fail(m, wire.SessionClosed())
	case s.holder == nil && s.owner != nil:
		s.unserved(now, m)
	case s.draining():
		s.postpone(now, m)
	case isSubscription(m.Frame.Method):
		s.subscriptionCall(now, m)
	case s.holder == nil:
		s.fail(m, wire.NotConnected(s.name))
	case s.full(m):
		s.fail(m, wire.SlotBusy(s.name, "maxPendingPerSlot", s.cfg.MaxPending))
	case isInit && !s.cfg.RelayInitialize:
		s.initialize(now, m)
	case s.holding():
		s.hold(now, m)
	default:
		s.relay(now, m, isInit)
	}
	s.touch(m.Session, now)
}

// ours reports a session of the broker's own, which greets each provider afresh.
func (s *State) ours(session uint64) bool {
	m := s.members[session]
	return m != nil && m.kind == msg.BrokerClient
}

// declare remembers what the client of a session can be asked.
func (s *State) declare(session uint64) {
	if m := s.members[session]; m != nil {
		before := m.can
		m.can = mcp.DeclaredBy(s.lastInit)
		s.undo(func() { m.can = before })
	}
}

func (s *State) fail(m *msg.ClientCall, err *wire.Error) {
	s.tell(m.Client, &msg.CallFailed{Call: m.Call, Err: err})
}

// relay gives the request a broker id and sends it.
func (s *State) relay(now time.Time, m *msg.ClientCall, isInit bool) uint64 {
	f := &m.Frame
	if isInit {
		f = s.offered(f)
	}
	c := &call{
		id: s.cfg.NextID(), client: m.Client, session: m.Session, number: m.Call,
		behind: m.For, ours: s.brokersOwn(m.Session, m.For),
		origID: bytes.Clone(f.Raw(f.ID)), init: isInit, retried: m.Retried, timed: m.Timed,
	}
	if f.Token.Present() {
		c.token = bytes.Clone(f.Raw(f.Token))
	}
	s.track(now, c)
	s.toProvider(wire.ToProvider(f, c.id, m.Trace), mcp.Required)
	return c.id
}

// origin is the client of a call, and what it can be asked.
func (s *State) origin(c *call) msg.Origin {
	if c.behind != nil {
		return *c.behind
	}
	origin := msg.Origin{Session: c.session}
	if m := s.members[c.session]; m != nil {
		origin.Can = m.can
	}
	return origin
}

func (s *State) track(now time.Time, c *call) {
	c.started = now
	if s.cfg.RequestTimeout > 0 && !c.timed {
		c.deadline = now.Add(s.cfg.RequestTimeout)
	}
	table := s.table(c)
	if *table == nil {
		*table = map[uint64]*call{}
	}
	(*table)[c.id] = c
	if c.noLoad() {
		s.own++
	}
	s.deadlines.push(c)
	s.undo(func() { delete(*table, c.id); s.deadlines.remove(c) })
}

func (s *State) untrack(c *call) {
	table := s.table(c)
	delete(*table, c.id)
	if c.noLoad() {
		s.own--
	}
	s.deadlines.remove(c)
	s.undo(func() { (*table)[c.id] = c; s.deadlines.push(c) })
}

// table is where a call waits: for the provider, or for a client.
func (s *State) table(c *call) *map[uint64]*call {
	if c.role == clientAsk {
		return &s.asks
	}
	return &s.pending
}

// drop ends a call nobody waits for: the provider is told, and its late answer
// is no reason for a warning (F-24, F-45).
func (s *State) drop(c *call) {
	s.untrack(c)
	s.abandon(c.id)
	s.endAsks(c)
	if s.holder != nil {
		s.toProvider(cancelled(c.id), mcp.Required)
	}
}

func cancelled(id uint64) []byte {
	b := []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`)
	return append(wire.AppendBrokerID(b, id), `,"reason":"The caller no longer waits for the answer"}}`...)
}

// failAll answers every pending call with err; calls held back included. What a
// client was asked is withdrawn first, on the stream of the call that ends.
func (s *State) failAll(err *wire.Error) {
	s.loseAsks()
	for _, c := range s.inOrder() {
		s.untrack(c)
		s.abandon(c.id)
		s.tell(c.client, &msg.CallFailed{Call: c.number, Err: err})
	}
	s.failQueue(err)
	s.failHeld(err)
	s.holdUntil, s.initLeader = time.Time{}, 0
	s.subscriptionsLost(err)
}

// failQueue answers those who wait for another client's initialize. They are not
// given a try of their own each: a provider that is silent to the first would
// keep the n-th waiting for n deadlines.
func (s *State) failQueue(err *wire.Error) {
	for _, m := range s.initQueue {
		s.fail(m, err)
	}
	s.initQueue = nil
}

// inOrder lists the pending calls oldest first.
func (s *State) inOrder() []*call { return inOrder(s.pending) }

func inOrder(table map[uint64]*call) []*call {
	calls := slices.Collect(maps.Values(table))
	sortCalls(calls)
	return calls
}

func (s *State) callerLeft(m *msg.CallerLeft) {
	for _, c := range s.pending {
		if c.session == m.Session && c.number == m.Call && c.client != nil {
			s.leaveCall(c)
			return
		}
	}
	s.initQueue = without(s.initQueue, func(q *msg.ClientCall) bool { return q.Session == m.Session && q.Call == m.Call })
	s.unhold(func(h any) bool {
		q, ok := h.(*msg.ClientCall)
		return ok && q.Session == m.Session && q.Call == m.Call
	})
	s.withdrawSubscription(m.Session, m.Call)
}

// leaveCall takes the caller off a call. An initialize goes on: its answer
// serves the clients that come after.
func (s *State) leaveCall(c *call) {
	if !c.init {
		s.drop(c)
		return
	}
	client := c.client
	c.client = nil
	s.undo(func() { c.client = client })
}

func (s *State) clientNote(now time.Time, m *msg.ClientNote) {
	switch {
	case s.holder == nil && !s.expected:
	case string(m.Frame.Method) == mcp.Cancelled:
		s.clientCancelled(m)
	case s.holding() && s.load() >= s.cfg.MaxPending:
		s.warnOnce(warnHeld, `[broker] slot "%s": a client notification was dropped: %d messages wait for the provider, the most that may (maxPendingPerSlot)`,
			s.name, s.cfg.MaxPending)
	case s.holding():
		s.held = append(s.held, m)
	default:
		s.relayNote(m)
	}
	s.touch(m.Session, now)
}

func (s *State) relayNote(m *msg.ClientNote) {
	if string(m.Frame.Method) == mcp.Initialized && !s.cfg.RelayInitialize {
		if s.initialized {
			return
		}
		s.initialized = true
	}
	s.toProvider(wire.NoteToProvider(&m.Frame), mcp.Required)
}

// clientCancelled translates the request id and forwards the cancellation, for
// the session's own calls only (F-28). The call stays pending: a provider may
// have answered already.
func (s *State) clientCancelled(m *msg.ClientNote) {
	f := withoutCaller(&m.Frame)
	if !f.RequestID.Present() {
		return
	}
	want := f.Raw(f.RequestID)
	meant := func(number uint64, id []byte) bool {
		if m.Call != 0 {
			return number == m.Call
		}
		return bytes.Equal(id, want)
	}
	for _, c := range s.pending {
		if c.session == m.Session && !c.init && meant(c.number, c.origID) {
			before := c.cancelled
			c.cancelled = true
			s.undo(func() { c.cancelled = before })
			s.toProvider(wire.Replace(f, f.RequestID, wire.AppendBrokerID(nil, c.id)), mcp.Required)
			return
		}
	}
	for _, h := range s.held {
		if q, ok := h.(*msg.ClientCall); ok && q.Session == m.Session && meant(q.Call, q.Frame.Raw(q.Frame.ID)) {
			s.fail(q, wire.Withdrawn())
			s.unhold(func(h any) bool { return h == any(q) })
			return
		}
	}
}

// withoutCaller returns f less what a client wrote under the broker's own key. It
// serves the messages that are spliced in another way than the relay's.
func withoutCaller(f *wire.Frame) *wire.Frame {
	if !f.Caller.Present() {
		return f
	}
	clean, _ := wire.Scan(wire.NoteToProvider(f))
	return &clean
}

// callCrashed answers the caller whose answer the slot could not handle.
func (s *State) callCrashed(now time.Time, m *msg.CallCrashed) {
	c := s.pending[m.ID]
	if c == nil {
		return
	}
	s.untrack(c)
	s.abandon(c.id)
	s.endAsks(c)
	s.endInitialize(c, nil)
	s.promote(now)
	if c.role != clientsCall {
		s.subscriptionAnswered(now, c, nil, wire.Crashed(s.name))
	}
	s.tell(c.client, &msg.CallFailed{Call: c.number, Err: wire.Crashed(s.name)})
}

func (s *State) expire(now time.Time, c *call) {
	if c.role == clientAsk {
		s.expireAsk(now, c)
		return
	}
	if s.expireHandshake(c) {
		return
	}
	after := now.Sub(c.started).Round(time.Millisecond)
	err := wire.NoAnswer(s.name, s.cfg.RequestTimeout)
	if after >= progressCap*s.cfg.RequestTimeout {
		err = wire.NoAnswerCap(s.name, after, progressCap)
	}
	s.log(slog.LevelWarn, `[broker] provider "%s" did not answer a request within %dms (providerRequestTimeoutMs); its caller got an error`,
		s.name, s.cfg.RequestTimeout.Milliseconds())
	switch {
	case c.init:
		s.untrack(c)
		s.abandon(c.id)
		s.endInitialize(c, nil)
		s.failQueue(err)
	case c.role != clientsCall:
		s.drop(c)
		if sub := s.subs[c.about]; sub != nil {
			s.failOps(sub, err)
		}
		s.subscriptionAnswered(now, c, nil, err)
	default:
		s.noteSilence(c)
		s.drop(c)
	}
	s.tell(c.client, &msg.CallFailed{Call: c.number, Err: err})
	if m := s.members[c.session]; m != nil { // not the last of its step, so not with touch
		before := m.lastUsed
		m.lastUsed = now
		s.undo(func() { m.lastUsed = before })
	}
}
