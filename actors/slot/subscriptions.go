package slot

import (
	"maps"
	"slices"
	"time"
	"unicode/utf16"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// Any number of sessions that watch a resource cost its provider one
// subscription. Operations on one URI are strictly serialised: while the provider
// is being asked, later ones wait (spec 01 4.5). This file is the clients' side,
// resources.go the provider's.

// subscription is what the slot knows of one URI. A change replaces the value.
// An active one has subscribers; without a provider all are inactive.
type subscription struct {
	uri         string
	raw         []byte // the URI as its first subscriber spelled it
	state       subscriptionState
	subscribers []uint64       // sessions, confirmed, in order of arrival
	queue       []subscriberOp // the first one is being asked for during a subscribeCall
	upstream    uint64         // broker id of the call to the provider; 0 is none
}

type subscriptionState uint8

const (
	inactive subscriptionState = iota
	subscribing
	active
	unsubscribing
)

// subscriberOp is a request of a client that waits for its turn.
type subscriberOp struct {
	call        *msg.ClientCall
	unsubscribe bool
	left        bool // its caller is gone: nobody is to be told
}

func isSubscription(method []byte) bool {
	return string(method) == mcp.Subscribe || string(method) == mcp.Unsubscribe
}

// subscriptionCall answers resources/subscribe and resources/unsubscribe, decided
// on the parsed method (F-47).
func (s *State) subscriptionCall(now time.Time, m *msg.ClientCall) {
	uri := resourceURI(&m.Frame)
	if uri == "" {
		s.fail(m, wire.MissingURI())
		return
	}
	op := subscriberOp{call: m, unsubscribe: string(m.Frame.Method) == mcp.Unsubscribe}
	if err := s.admitSubscription(uri, op); err != nil {
		s.fail(m, err)
		return
	}
	sub := s.subs[uri]
	if sub == nil {
		sub = &subscription{uri: uri, raw: slices.Clone(m.Frame.Raw(m.Frame.URI))}
	}
	s.replaceSub(sub, func(n *subscription) { n.queue = append(n.queue, op) })
	s.advance(now, uri)
}

// resourceURI is the decoded params.uri, "" where there is none to be used. Two
// spellings of one URI are one URI.
func resourceURI(f *wire.Frame) string {
	if !f.URI.Present() {
		return ""
	}
	uri, _ := wire.Unquote(f.Raw(f.URI))
	return uri
}

func utf16Len(text string) int {
	n := 0
	for _, r := range text {
		n += utf16.RuneLen(r)
	}
	return n
}

// admitSubscription says why a request cannot be taken. An unsubscribe is refused
// only where it had to wait in a queue that is full.
func (s *State) admitSubscription(uri string, op subscriberOp) *wire.Error {
	sub, session := s.subs[uri], op.call.Session
	switch {
	case op.unsubscribe && sub.idle():
		return nil
	case !op.unsubscribe && utf16Len(uri) > s.cfg.MaxURILength:
		return wire.URITooLong(utf16Len(uri), s.cfg.MaxURILength)
	case !op.unsubscribe && s.holder == nil:
		return wire.NotConnected(s.name)
	case s.load() >= s.cfg.MaxPending:
		return wire.SlotBusy(s.name, "maxPendingPerSlot", s.cfg.MaxPending)
	case op.unsubscribe || sub.holds(session):
		return nil
	}
	return s.atLimit(session)
}

// idle: a request on the URI is handled at once.
func (sub *subscription) idle() bool {
	return sub == nil || len(sub.queue) == 0 && sub.upstream == 0
}

// holds reports whether a session subscribes or waits to.
func (sub *subscription) holds(session uint64) bool {
	return sub != nil && (slices.Contains(sub.subscribers, session) ||
		slices.ContainsFunc(sub.queue, func(op subscriberOp) bool { return op.call.Session == session && op.wants() }))
}

func (op *subscriberOp) wants() bool { return !op.unsubscribe && !op.left }

// size counts the sessions that subscribe or wait to, each once.
func (sub *subscription) size() int {
	if len(sub.queue) == 0 {
		return len(sub.subscribers)
	}
	sessions := map[uint64]bool{}
	for _, session := range sub.subscribers {
		sessions[session] = true
	}
	for _, op := range sub.queue {
		if op.wants() {
			sessions[op.call.Session] = true
		}
	}
	return len(sessions)
}

// atLimit refuses one subscription more than a session or the slot may hold,
// unconfirmed ones included.
func (s *State) atLimit(session uint64) *wire.Error {
	own, all := 0, 0
	for _, sub := range s.subs {
		all += sub.size()
		if sub.holds(session) {
			own++
		}
	}
	switch {
	case own >= s.cfg.MaxSubscriptionsPerClient:
		return wire.SubscriptionLimit("maxSubscriptionsPerClient", s.cfg.MaxSubscriptionsPerClient)
	case all >= s.cfg.MaxSubscriptionsPerSlot:
		return wire.SubscriptionLimit("maxSubscriptionsPerSlot", s.cfg.MaxSubscriptionsPerSlot)
	}
	return nil
}

// replaceSub puts a changed copy of sub into the table, or takes it out when
// nothing is left of it. A change may append to a slice but not write into it: the
// old value must stay what it was.
func (s *State) replaceSub(sub *subscription, change func(*subscription)) *subscription {
	next := *sub
	change(&next)
	before := s.subs[sub.uri]
	s.queued += len(next.queue)
	if before != nil {
		s.queued -= len(before.queue)
	}
	if next.state == inactive && len(next.subscribers) == 0 && len(next.queue) == 0 {
		s.putSub(sub.uri, nil)
	} else {
		s.putSub(sub.uri, &next)
	}
	s.undo(func() { s.putSub(sub.uri, before) })
	return &next
}

func (s *State) putSub(uri string, sub *subscription) {
	if sub == nil {
		delete(s.subs, uri)
		return
	}
	if s.subs == nil {
		s.subs = map[string]*subscription{}
	}
	s.subs[uri] = sub
}

// advance handles the queue of a URI until it is empty or the provider has to be
// asked.
func (s *State) advance(now time.Time, uri string) {
	for {
		sub := s.subs[uri]
		if sub == nil || len(sub.queue) == 0 || sub.upstream != 0 {
			return
		}
		op := sub.queue[0]
		session := op.call.Session
		known := slices.Contains(sub.subscribers, session)
		switch {
		case op.left:
			s.pop(sub)
		case op.unsubscribe:
			s.pop(sub)
			s.confirm(op)
			s.dropSubscriber(now, uri, session)
		case known:
			s.pop(sub)
			s.confirm(op)
		case sub.state == active:
			s.replaceSub(s.pop(sub), func(n *subscription) { n.subscribers = append(n.subscribers, session) })
			s.confirm(op)
		case s.holding():
			return // asked once the provider is ready, see restore
		default:
			s.ask(now, sub, subscribeCall)
			return
		}
	}
}

func (s *State) pop(sub *subscription) *subscription {
	return s.replaceSub(sub, func(n *subscription) {
		if n.queue = n.queue[1:]; len(n.queue) == 0 {
			n.queue = nil // lets go of the message
		}
	})
}

// confirm answers a request with success.
func (s *State) confirm(op subscriberOp) {
	f := &op.call.Frame
	frame := append(append([]byte(`{"jsonrpc":"2.0","id":`), f.Raw(f.ID)...), `,"result":{}}`...)
	s.tell(op.call.Client, &msg.CallReply{Call: op.call.Call, Frame: frame})
}

// dropSubscriber takes a session off a URI; with the last one the provider is
// told.
func (s *State) dropSubscriber(now time.Time, uri string, session uint64) {
	sub := s.subs[uri]
	if sub == nil || !slices.Contains(sub.subscribers, session) {
		return
	}
	sub = s.replaceSub(sub, func(n *subscription) { n.subscribers = withoutSession(n.subscribers, session) })
	if sub.state == active && len(sub.subscribers) == 0 {
		s.ask(now, sub, unsubscribeCall)
	}
}

func withoutSession(sessions []uint64, gone uint64) []uint64 {
	return without(sessions, func(session uint64) bool { return session == gone })
}

// leaveSubscriptions releases everything a session holds or waits for.
func (s *State) leaveSubscriptions(now time.Time, session uint64) {
	theirs := func(op subscriberOp) bool { return op.call.Session == session }
	for _, uri := range s.urisOf(session) {
		s.withdrawOps(s.subs[uri], theirs)
		s.dropSubscriber(now, uri, session)
	}
}

// withdrawSubscription: the client broke off this one request.
func (s *State) withdrawSubscription(session, number uint64) {
	for _, uri := range s.urisOf(session) {
		s.withdrawOps(s.subs[uri], func(op subscriberOp) bool { return op.call.Session == session && op.call.Call == number })
	}
}

// withdrawOps removes requests nobody waits for. The first stays as a marker
// while the provider is being asked: the answer still settles the state.
func (s *State) withdrawOps(sub *subscription, gone func(subscriberOp) bool) {
	if !slices.ContainsFunc(sub.queue, gone) {
		return
	}
	var kept []subscriberOp
	for i, op := range sub.queue {
		if gone(op) {
			if i > 0 || sub.upstream == 0 {
				continue
			}
			op.left = true
		}
		kept = append(kept, op)
	}
	s.replaceSub(sub, func(n *subscription) { n.queue = kept })
}

// uris lists what the slot has subscriptions for, in order.
func (s *State) uris() []string { return slices.Sorted(maps.Keys(s.subs)) }

// urisOf lists what concerns one session, in order.
func (s *State) urisOf(session uint64) []string {
	var uris []string
	for uri, sub := range s.subs {
		if slices.Contains(sub.subscribers, session) ||
			slices.ContainsFunc(sub.queue, func(op subscriberOp) bool { return op.call.Session == session }) {
			uris = append(uris, uri)
		}
	}
	slices.Sort(uris)
	return uris
}

// subscriptionCount is what the inventory reports.
func (s *State) subscriptionCount() int {
	n := 0
	for _, sub := range s.subs {
		n += len(sub.subscribers)
	}
	return n
}
