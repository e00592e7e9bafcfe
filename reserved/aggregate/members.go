package aggregate

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// A member is a slot whose provider asked to join _all. It is joined anew for
// each provider that holds the slot: a session of its own, an initialize, the
// lists. What comes late for an older one finds no session and changes nothing
// (F-12).

type member struct {
	slot     string
	gen      uint64    // of its provider
	attached time.Time // likewise
	stamp    []byte    // what goes before the URIs of its resources

	session uint64  // 0 while it is not joining or joined
	ref     msg.Ref // our address as its client
	to      msg.Ref // the slot; nil until the slot answered
	request uint64  // our call in flight; 0 is none
	asked   uint64  // requests made, for their ids
	calls   map[uint64]*call

	suspended  bool    // its provider is expected back, or its successor is here: see suspended.go
	before     *member // the suspended one whose place it takes
	waits      map[uint64]*call
	maxPending int // of the slot; 0 is unknown

	declared     listSet          // lists the provider has: see handshake.go
	listed       listSet          // lists it is asked for, those among them
	want         listSet          // lists to fetch
	stale        listSet          // lists to fetch again when their time has come: see refresh.go
	refreshed    [kinds]time.Time // when each was last fetched again
	fetch        *fetch           // the list being fetched; nil while initialize is
	lists        [kinds]*collection
	instructions string
	brokers      []string // whose _all it is, and of which others it holds items: see loop.go
	remarked     bool     // they are others than clients were last told of

	upstream bool // the broker starts or dials its provider
	greeted  bool // its provider has answered initialize
	was      bool // it has joined, or one before it on the slot has
	joined   bool
	since    time.Time // of joining; before that, of what is being asked
	reason   string    // why it is not joined
	names    []string  // what it is remembered by in gone: see remember.go
	failures int       // in a row, for the delay of the next try
	misses   int       // likewise, of lists it has not declared
	retryAt  time.Time
}

// fromMember is what a member's slot, or the registry, sent to our session there.
type fromMember struct {
	control
	session uint64
	message any
}

// Undelivered tells the sender what the message would have been answered.
func (m *fromMember) Undelivered() {
	if lost, ok := m.message.(interface{ Undelivered() }); ok {
		lost.Undelivered()
	}
}

// progressed is a member's progress on a call. It takes no headroom: a flood of it
// leaves room for the answers of all members.
type progressed struct{ progress *msg.CallProgress }

const inProgress = "handshake in progress"

// observed learns of a slot's holder.
func (s *State) observed(info *msg.SlotInfo) {
	if info.Name == wire.SlotAggregate {
		if !info.Connected { // the registry has just been given the slot
			s.effects = append(s.effects, Effect{Changed: true})
		}
		return
	}
	m := s.members[info.Name]
	always := info.Name == wire.SlotBroker && info.Connected
	known := m != nil && (always || m.gen == info.Gen && m.attached.Equal(info.ConnectedSince))
	switch asks := always || info.Connected && info.Aggregate; {
	case asks && known && !m.away():
	case asks:
		s.join(info, s.succeeded(m))
	case m == nil:
	case info.Expected && m.stands():
		s.suspend(m)
	case info.Connected:
		s.stayAway(m)
	default:
		s.vacated(m)
	}
}

// forgotten: the slot has ended.
func (s *State) forgotten(slot string) {
	if m := s.members[slot]; m != nil {
		s.leave(m, m.farewell())
		s.forget(m)
	}
	for _, m := range s.strays(slot) {
		s.failCalls(m)
	}
}

func (s *State) join(info *msg.SlotInfo, before *member) {
	m := &member{
		slot: info.Name, gen: info.Gen, attached: info.ConnectedSince, stamp: stampOf(info.Name), calls: map[uint64]*call{},
		before: before, maxPending: info.MaxPending, upstream: info.Transport == msg.Upstream,
	}
	if old := s.members[info.Name]; old != nil {
		m.was, m.names = old.was, old.names
	}
	put(s, s.members, m.slot, m)
	s.enter(m)
}

// enter joins the slot with a fresh session.
func (s *State) enter(m *member) {
	session := s.cfg.NextSession()
	set(s, &m.session, session)
	set(s, &m.ref, s.address(session))
	set(s, &m.reason, inProgress)
	set(s, &m.since, s.now)
	put(s, s.joining, session, m)
	s.statusChanged()
	s.tell(s.registry, &msg.JoinSlot{Slot: m.slot, Session: session, Client: m.ref, Kind: msg.BrokerClient})
}

// leave ends a membership, whatever its state, and says why.
func (s *State) leave(m *member, reason string) {
	s.depart(m, reason)
	if before := m.before; before != nil {
		set(s, &m.before, nil)
		s.depart(before, reason)
		set(s, &m.names, before.names)
	}
}

// depart is the same without the member before.
func (s *State) depart(m *member, reason string) {
	drop(s, s.retries, m.slot)
	set(s, &m.reason, reason)
	s.statusChanged()
	if m.session == 0 && !m.joined {
		return
	}
	s.failCalls(m)
	s.leaveSlot(m)
	set(s, &m.suspended, false)
	if m.joined {
		s.remember(m)
		set(s, &m.joined, false)
		set(s, &s.joined, slices.DeleteFunc(slices.Clone(s.joined), func(other *member) bool { return other == m }))
		s.listsChanged(m)
	}
	for k := range m.lists {
		s.hold(m, list(k), nil)
	}
	s.dropFetches(m)
}

// failCalls ends the calls of a member that has left, and those that wait for it.
func (s *State) failCalls(m *member) {
	for _, calls := range []map[uint64]*call{m.calls, m.waits} {
		for _, c := range byNumber(calls) {
			s.withdrawAsks(c)
			s.callFailed(c, wire.Disconnected(m.slot))
		}
	}
}

// dropFetches gives up what was being fetched, or was to be.
func (s *State) dropFetches(m *member) {
	set(s, &m.request, 0)
	set(s, &m.fetch, nil)
	set(s, &m.want, 0)
	set(s, &m.stale, 0)
	drop(s, s.refreshes, m)
	set(s, &m.declared, 0)
	set(s, &m.listed, 0)
}

func (s *State) leaveSlot(m *member) {
	if m.session == 0 {
		return
	}
	gone := &msg.LeaveSlot{Slot: m.slot, Session: m.session}
	if m.to != nil {
		s.tell(m.to, gone)
	} else {
		s.tell(s.registry, gone)
	}
	drop(s, s.joining, m.session)
	set(s, &m.session, 0)
	set(s, &m.to, nil)
	set(s, &m.request, 0)
}

// withdrawAsks tells a client that what it was asked is not wanted any more.
func (s *State) withdrawAsks(c *call) {
	for _, id := range c.asks {
		frame := wire.AppendBrokerID([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`), id)
		s.tell(c.client.Ref, &msg.AskCancelled{Call: c.theirs, Frame: append(frame, `,"reason":"The provider has left"}}`...)})
	}
}

// fromMember handles what came for one of our sessions.
func (s *State) fromMember(m *fromMember) {
	from := s.joining[m.session]
	switch x := m.message.(type) {
	case *msg.SlotJoined:
		s.slotJoined(from, x)
	case *msg.JoinRefused:
		if from != nil && from.to == nil {
			s.handshakeFailed(from, "the slot cannot be joined: "+shorten(x.Err.Message), true)
		}
	case *msg.CallReply:
		if c := s.calls[x.Call]; c != nil {
			s.replied(c, x.Frame)
		} else if from != nil && from.request == x.Call {
			s.answered(from, x.Frame)
		}
	case *msg.CallFailed:
		if c := s.calls[x.Call]; c != nil {
			s.callFailed(c, x.Err)
		} else if from != nil && from.request == x.Call {
			s.unanswered(from, x.Err)
		}
	case *msg.ClientAsk:
		if from != nil {
			s.asked(from, x)
		}
	case *msg.AskCancelled:
		s.askCancelled(x)
	case *msg.SlotLost:
		if from != nil {
			s.lost(from, "the slot was reset")
		}
	case *msg.EndSession:
		if from != nil {
			s.lost(from, "the slot ended the session: "+x.Why)
		}
	}
}

// lost: the slot has given the session up. It is joined again, sooner or later.
func (s *State) lost(m *member, reason string) {
	if s.members[m.slot] != m {
		s.failCalls(m)
		return
	}
	s.leave(m, reason)
	s.retryLater(m)
}

// listsChanged: what a member contributes is new, or gone.
func (s *State) listsChanged(m *member) {
	for k := range kinds {
		if m.lists[k].len() > 0 {
			set(s, &s.catalogs[k], nil)
		}
	}
	s.statusChanged()
	s.broadcast()
}

func (s *State) bySlot() []*member {
	return slices.SortedFunc(maps.Values(s.members), func(a, b *member) int { return cmp.Compare(a.slot, b.slot) })
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
