package slot

import (
	"bytes"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf16"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// Any number of sessions that watch a resource cost its provider one
// subscription. Operations on one URI are strictly serialised: while the provider
// is being asked, later ones wait (spec 01 4.5).

// subscription is what the slot knows of one URI. A change replaces the value.
type subscription struct {
	uri         string
	raw         []byte // the URI as its first subscriber spelled it
	state       subscriptionState
	subscribers []uint64       // sessions, confirmed, in order of arrival
	queue       []subscriberOp // the first one waits for the provider while subscribing
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
	left        bool // the session is gone: nobody is to be told
}

// role of a call the slot opened itself.
type role uint8

const (
	clientsCall role = iota
	subscribeCall
	unsubscribeCall
	restoreCall
	clientAsk // a request of the provider that a client has to answer
)

func isSubscription(method []byte) bool {
	return string(method) == mcp.Subscribe || string(method) == mcp.Unsubscribe
}

// subscriptionCall answers resources/subscribe and resources/unsubscribe, decided
// on the parsed method (F-47).
func (s *State) subscriptionCall(now time.Time, m *msg.ClientCall) {
	f := &m.Frame
	uri, ok := "", false
	if f.URI.Present() {
		uri, ok = wire.Unquote(f.Raw(f.URI))
	}
	op := subscriberOp{call: m, unsubscribe: string(f.Method) == mcp.Unsubscribe}
	switch {
	case !ok || uri == "":
		s.fail(m, wire.MissingURI())
	case op.unsubscribe:
		s.unsubscribe(now, uri, op)
	case utf16Len(uri) > s.cfg.MaxURILength:
		s.fail(m, wire.URITooLong(utf16Len(uri), s.cfg.MaxURILength))
	case s.holder == nil:
		s.fail(m, wire.NotConnected(s.name))
	default:
		s.subscribe(now, uri, op)
	}
}

func utf16Len(text string) int {
	n := 0
	for _, r := range text {
		n += utf16.RuneLen(r)
	}
	return n
}

func (s *State) subscribe(now time.Time, uri string, op subscriberOp) {
	sub := s.subs[uri]
	if !sub.holds(op.call.Session) {
		if err := s.atLimit(op.call.Session); err != nil {
			s.fail(op.call, err)
			return
		}
	}
	if sub == nil {
		f := &op.call.Frame
		sub = &subscription{uri: uri, raw: bytes.Clone(f.Raw(f.URI))}
	}
	s.replaceSub(sub, func(n *subscription) { n.queue = append(slices.Clone(sub.queue), op) })
	s.advance(now, uri)
}

func (s *State) unsubscribe(now time.Time, uri string, op subscriberOp) {
	sub := s.subs[uri]
	if sub == nil {
		s.confirm(op)
		return
	}
	s.replaceSub(sub, func(n *subscription) { n.queue = append(slices.Clone(sub.queue), op) })
	s.advance(now, uri)
}

func (sub *subscription) holds(session uint64) bool {
	if sub == nil {
		return false
	}
	return slices.Contains(sub.subscribers, session) ||
		slices.ContainsFunc(sub.queue, func(op subscriberOp) bool {
			return op.call.Session == session && !op.unsubscribe && !op.left
		})
}

// atLimit counts what a session and the slot hold, unconfirmed subscriptions
// included.
func (s *State) atLimit(session uint64) *wire.Error {
	own, all := 0, 0
	for _, sub := range s.subs {
		all += len(sub.subscribers)
		for _, op := range sub.queue {
			if !op.unsubscribe && !op.left && !slices.Contains(sub.subscribers, op.call.Session) {
				all++
			}
		}
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
// nothing is left of it.
func (s *State) replaceSub(sub *subscription, change func(*subscription)) *subscription {
	next := *sub
	change(&next)
	before, had := s.subs[sub.uri]
	if s.subs == nil {
		s.subs = map[string]*subscription{}
	}
	if next.state == inactive && len(next.subscribers) == 0 && len(next.queue) == 0 {
		delete(s.subs, sub.uri)
	} else {
		s.subs[sub.uri] = &next
	}
	s.undo(func() {
		if had {
			s.subs[sub.uri] = before
		} else {
			delete(s.subs, sub.uri)
		}
	})
	return &next
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
		known := slices.Contains(sub.subscribers, op.call.Session)
		switch {
		case op.unsubscribe:
			s.pop(sub)
			s.confirm(op)
			if known {
				s.dropSubscriber(now, uri, op.call.Session)
			}
		case op.left:
			s.pop(sub)
		case known:
			s.pop(sub)
			s.confirm(op)
		case sub.state == active:
			s.pop(sub)
			s.addSubscriber(uri, op.call.Session)
			s.confirm(op)
		case s.holder == nil || s.holding():
			return // asked once the provider is ready, see restore
		default:
			s.ask(now, sub, subscribeCall, subscribing)
			return
		}
	}
}

func (s *State) pop(sub *subscription) {
	s.replaceSub(sub, func(n *subscription) { n.queue = slices.Clone(sub.queue[1:]) })
}

func (s *State) confirm(op subscriberOp) {
	f := &op.call.Frame
	frame := append(append([]byte(`{"jsonrpc":"2.0","id":`), f.Raw(f.ID)...), `,"result":{}}`...)
	s.tell(op.call.Client, &msg.CallReply{Call: op.call.Call, Frame: frame})
}

func (s *State) addSubscriber(uri string, session uint64) {
	if sub := s.subs[uri]; sub != nil {
		s.replaceSub(sub, func(n *subscription) { n.subscribers = append(slices.Clone(sub.subscribers), session) })
	}
}

// dropSubscriber takes a session off a URI; with the last one the provider is
// told.
func (s *State) dropSubscriber(now time.Time, uri string, session uint64) {
	sub := s.subs[uri]
	if sub == nil {
		return
	}
	sub = s.replaceSub(sub, func(n *subscription) {
		n.subscribers = without(sub.subscribers, func(id uint64) bool { return id == session })
	})
	if len(sub.subscribers) > 0 || sub.state != active || sub.upstream != 0 {
		return
	}
	if s.holder == nil {
		s.replaceSub(sub, func(n *subscription) { n.state = inactive })
		return
	}
	s.ask(now, sub, unsubscribeCall, unsubscribing)
}

// ask opens a request of the broker's own for a URI.
func (s *State) ask(now time.Time, sub *subscription, r role, state subscriptionState) {
	method := mcp.Subscribe
	if r == unsubscribeCall {
		method = mcp.Unsubscribe
	}
	c := &call{id: s.cfg.NextID(), role: r, uri: sub.uri}
	s.track(now, c)
	s.replaceSub(sub, func(n *subscription) { n.state, n.upstream = state, c.id })
	frame := wire.AppendBrokerID([]byte(`{"jsonrpc":"2.0","id":`), c.id)
	frame = append(append(frame, `,"method":"`...), method...)
	frame = append(append(append(frame, `","params":{"uri":`...), sub.raw...), `}}`...)
	s.toProvider(frame, mcp.Required)
}

// subscriptionAnswered settles a request of ask. f is nil when it ended without
// an answer; err then says why.
func (s *State) subscriptionAnswered(now time.Time, c *call, f *wire.Frame, err *wire.Error) {
	sub := s.subs[c.uri]
	if sub == nil || sub.upstream != c.id {
		return
	}
	ok := f != nil && f.Result.Present()
	state := inactive
	if ok && c.role != unsubscribeCall {
		state = active
	}
	sub = s.replaceSub(sub, func(n *subscription) { n.state, n.upstream = state, 0 })
	switch {
	case c.role == subscribeCall:
		s.subscribeAnswered(now, sub, f, err)
	case c.role == restoreCall:
		s.restored(sub, f, err, ok)
	}
	s.advance(now, c.uri)
	s.releaseUnwatched(now, c.uri)
}

// releaseUnwatched unsubscribes a URI that became active for nobody: its subscribers left
// while the provider was being asked.
func (s *State) releaseUnwatched(now time.Time, uri string) {
	sub := s.subs[uri]
	if sub != nil && sub.state == active && sub.upstream == 0 && len(sub.subscribers) == 0 && len(sub.queue) == 0 && s.holder != nil {
		s.ask(now, sub, unsubscribeCall, unsubscribing)
	}
}

// subscribeAnswered answers the one that asked. A refusal is relayed as it is;
// the next in the queue asks for itself.
func (s *State) subscribeAnswered(now time.Time, sub *subscription, f *wire.Frame, err *wire.Error) {
	if len(sub.queue) == 0 {
		return
	}
	op := sub.queue[0]
	if sub.state == active {
		return // advance adds it, and the others
	}
	s.pop(sub)
	switch {
	case op.left:
	case f != nil:
		q := &op.call.Frame
		s.tell(op.call.Client, &msg.CallReply{Call: op.call.Call, Frame: wire.WithID(f, q.Raw(q.ID))})
	default:
		s.fail(op.call, err)
	}
}

// subscriptionsLost marks every URI inactive on a change of holder (F-13):
// subscribers are kept for the next provider, requests in the queue fail.
func (s *State) subscriptionsLost(err *wire.Error) {
	for _, uri := range s.uris() {
		sub := s.subs[uri]
		for _, op := range sub.queue {
			switch {
			case op.left:
			case op.unsubscribe:
				s.confirm(op)
			default:
				s.fail(op.call, err)
			}
		}
		s.replaceSub(sub, func(n *subscription) {
			n.state, n.upstream, n.queue = inactive, 0, nil
			for _, op := range sub.queue {
				if op.unsubscribe {
					n.subscribers = without(n.subscribers, func(id uint64) bool { return id == op.call.Session })
				}
			}
		})
	}
}

// restore asks a new provider for every URI somebody still watches (spec 01 4.6).
func (s *State) restore(now time.Time) {
	if s.holder == nil {
		return
	}
	for _, uri := range s.uris() {
		switch sub := s.subs[uri]; {
		case sub.state != inactive:
		case len(sub.subscribers) > 0:
			s.ask(now, sub, restoreCall, subscribing)
		default:
			s.advance(now, uri)
		}
	}
}

// restored tells every subscriber to read again. A URI the new provider refuses
// is dropped with its subscribers, who learn of it the same way.
func (s *State) restored(sub *subscription, f *wire.Frame, err *wire.Error, ok bool) {
	frame := append(append([]byte(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":`), sub.raw...), `}}`...)
	note := &msg.Notify{Frame: frame, Class: mcp.Coalesced, Key: mcp.ResourceUpdated + sub.uri}
	s.notify(sub, note)
	if ok {
		return
	}
	cause := ""
	if f != nil {
		cause = wire.Excerpt(f.Raw(f.Error))
	} else if err != nil {
		cause = err.Message
	}
	s.log(slog.LevelWarn, `[broker] provider "%s" refused to restore the subscription to %s: %s`, s.name, strconv.Quote(sub.uri), cause)
	s.replaceSub(sub, func(n *subscription) { n.subscribers = nil })
}

func (s *State) notify(sub *subscription, note *msg.Notify) {
	for _, session := range sub.subscribers {
		if m := s.members[session]; m != nil {
			s.tell(m.ref, note)
		}
	}
}

// resourceUpdated goes to the subscribers of exactly this URI (spec 01 4.8). One
// who may not read it any more is taken off.
func (s *State) resourceUpdated(now time.Time, f *wire.Frame) {
	uri, ok := "", false
	if f.URI.Present() {
		uri, ok = wire.Unquote(f.Raw(f.URI))
	}
	if !ok || uri == "" || utf16Len(uri) > s.cfg.MaxURILength {
		s.warnOnce(warnNoURI, `[broker] provider "%s" sent notifications/resources/updated without a usable params.uri; it was dropped, and so are later ones`, s.name)
		return
	}
	sub := s.subs[uri]
	if sub == nil {
		return
	}
	if s.cfg.MayRead != nil {
		for _, session := range sub.subscribers {
			if !s.cfg.MayRead(session, uri) {
				s.dropSubscriber(now, uri, session)
			}
		}
		if sub = s.subs[uri]; sub == nil {
			return
		}
	}
	s.notify(sub, &msg.Notify{Frame: bytes.Clone(f.Bytes), Class: mcp.Coalesced, Key: mcp.ResourceUpdated + uri})
}

// leaveSubscriptions releases everything a session holds or waits for.
func (s *State) leaveSubscriptions(now time.Time, session uint64) {
	for _, uri := range s.uris() {
		sub := s.subs[uri]
		if slices.ContainsFunc(sub.queue, func(op subscriberOp) bool { return op.call.Session == session }) {
			s.replaceSub(sub, func(n *subscription) { n.queue = afterLeaving(sub, session) })
		}
		if slices.Contains(sub.subscribers, session) {
			s.dropSubscriber(now, uri, session)
		}
		s.releaseUnwatched(now, uri)
	}
}

// afterLeaving removes the requests of a session. The one the provider is being
// asked for stays as a marker: its answer still settles the state.
func afterLeaving(sub *subscription, session uint64) []subscriberOp {
	var kept []subscriberOp
	for i, op := range sub.queue {
		if op.call.Session == session {
			if i > 0 || sub.upstream == 0 {
				continue
			}
			op.left = true
		}
		kept = append(kept, op)
	}
	return kept
}

// withdrawSubscription: the client broke off this one request.
func (s *State) withdrawSubscription(session, number uint64) {
	for _, uri := range s.uris() {
		sub := s.subs[uri]
		for i, op := range sub.queue {
			if op.call.Session != session || op.call.Call != number {
				continue
			}
			s.replaceSub(sub, func(n *subscription) {
				n.queue = slices.Clone(sub.queue)
				if i == 0 && sub.upstream != 0 {
					n.queue[0].left = true
				} else {
					n.queue = slices.Delete(n.queue, i, i+1)
				}
			})
			return
		}
	}
}

func (s *State) uris() []string { return slices.Sorted(maps.Keys(s.subs)) }

// subscriptionCount is what the inventory reports.
func (s *State) subscriptionCount() int {
	n := 0
	for _, sub := range s.subs {
		n += len(sub.subscribers)
	}
	return n
}
