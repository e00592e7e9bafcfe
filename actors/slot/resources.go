package slot

import (
	"bytes"
	"log/slog"
	"strconv"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// What the slot asks of a provider on behalf of subscribers, what comes of it,
// and the updates the provider sends (spec 01 4.5, 4.6, 4.8).

// role of a call the slot opened itself.
type role uint8

const (
	clientsCall role = iota
	subscribeCall
	unsubscribeCall
	restoreCall // a subscribe for those who watched with the last provider
	clientAsk   // a request of the provider that a client has to answer
)

// own reports a call about a subscription. No client waits for it in pending, and
// its number is bounded by that of the URIs.
func (r role) own() bool { return r == subscribeCall || r == unsubscribeCall || r == restoreCall }

// ask opens a request of the broker's own for a URI.
func (s *State) ask(now time.Time, sub *subscription, r role) {
	method, state := mcp.Subscribe, subscribing
	if r == unsubscribeCall {
		method, state = mcp.Unsubscribe, unsubscribing
	}
	c := &call{id: s.cfg.NextID(), role: r, about: sub.uri}
	s.track(now, c)
	s.replaceSub(sub, func(n *subscription) { n.state, n.upstream = state, c.id })
	frame := wire.AppendBrokerID([]byte(`{"jsonrpc":"2.0","id":`), c.id)
	frame = append(append(frame, `,"method":"`...), method...)
	frame = append(append(append(frame, `","params":{"uri":`...), sub.raw...), `}}`...)
	s.toProvider(frame, mcp.Required)
}

// subscriptionAnswered settles a request of ask. f is nil when it ended without
// an answer; err then says why, and the provider may or may not have subscribed.
func (s *State) subscriptionAnswered(now time.Time, c *call, f *wire.Frame, err *wire.Error) {
	sub := s.subs[c.about]
	if sub == nil || sub.upstream != c.id {
		return
	}
	asked := c.role != unsubscribeCall // the answer to an unsubscribe does not matter
	granted := asked && f != nil && f.Result.Present()
	state := inactive
	if granted {
		state = active
	}
	sub = s.replaceSub(sub, func(n *subscription) { n.state, n.upstream = state, 0 })
	switch {
	case c.role == restoreCall:
		sub = s.restored(sub, granted, f, err)
	case asked && !granted:
		sub = s.refuseFirst(sub, f, err)
	}
	s.advance(now, sub.uri)
	if granted || asked && f == nil {
		s.releaseUnwatched(now, sub)
	}
}

// releaseUnwatched unsubscribes what the provider has, or may have, for nobody: those who
// wanted it left while it was being asked.
func (s *State) releaseUnwatched(now time.Time, sub *subscription) {
	present := s.subs[sub.uri]
	if present == nil {
		present = &subscription{uri: sub.uri, raw: sub.raw}
	}
	if present.idle() && len(present.subscribers) == 0 {
		s.ask(now, present, unsubscribeCall)
	}
}

// refuseFirst answers the one the provider was asked for. A refusal is relayed as
// it is; the next in the queue asks for itself.
func (s *State) refuseFirst(sub *subscription, f *wire.Frame, err *wire.Error) *subscription {
	if len(sub.queue) == 0 {
		return sub
	}
	op := sub.queue[0]
	switch q := &op.call.Frame; {
	case op.left:
	case f != nil:
		s.tell(op.call.Client, &msg.CallReply{Call: op.call.Call, Frame: wire.WithID(f, q.Raw(q.ID))})
	default:
		s.fail(op.call, err)
	}
	return s.pop(sub)
}

// failOps ends all that waits for a URI: its provider is gone, or silent. Like
// those who queue for an initialize they get no try of their own each, which
// would keep the n-th waiting for n deadlines.
func (s *State) failOps(sub *subscription, err *wire.Error) *subscription {
	subscribers := sub.subscribers
	for _, op := range sub.queue {
		switch {
		case op.left:
		case op.unsubscribe:
			s.confirm(op)
			subscribers = withoutSession(subscribers, op.call.Session)
		default:
			s.fail(op.call, err)
		}
	}
	return s.replaceSub(sub, func(n *subscription) { n.subscribers, n.queue = subscribers, nil })
}

// subscriptionsLost marks every URI inactive on a change of holder (F-13):
// subscribers are kept for the next provider, requests in the queue fail.
func (s *State) subscriptionsLost(err *wire.Error) {
	for _, uri := range s.uris() {
		sub := s.failOps(s.subs[uri], err)
		s.replaceSub(sub, func(n *subscription) { n.state, n.upstream = inactive, 0 })
	}
}

// restore asks a new provider for every URI somebody still watches, and handles
// what waited for it (spec 01 4.6).
func (s *State) restore(now time.Time) {
	for _, uri := range s.uris() {
		switch sub := s.subs[uri]; {
		case sub.state != inactive:
		case len(sub.subscribers) > 0:
			s.ask(now, sub, restoreCall)
		default:
			s.advance(now, uri)
		}
	}
}

// restored tells every subscriber to read again. A URI the new provider refuses
// is dropped with its subscribers, who learn of it the same way.
func (s *State) restored(sub *subscription, granted bool, f *wire.Frame, err *wire.Error) *subscription {
	s.readAgain(sub)
	if granted || len(sub.subscribers) == 0 {
		return sub
	}
	why := ""
	if f != nil {
		why = wire.Excerpt(f.Raw(f.Error))
	} else {
		why = err.Message
	}
	s.log(slog.LevelWarn, `[broker] provider "%s" refused to restore the subscription to %s: %s`, s.name, strconv.Quote(sub.uri), why)
	return s.replaceSub(sub, func(n *subscription) { n.subscribers = nil })
}

// readAgain tells the subscribers of a URI that what they have read may be old.
func (s *State) readAgain(sub *subscription) {
	frame := append(append([]byte(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":`), sub.raw...), `}}`...)
	s.notify(sub, frame)
}

func (s *State) notify(sub *subscription, frame []byte) {
	note := &msg.Notify{Frame: frame, Class: mcp.Coalesced, Key: mcp.ResourceUpdated + sub.uri}
	for _, session := range sub.subscribers {
		if m := s.members[session]; m != nil {
			s.tell(m.ref, note)
		}
	}
}

// resourceUpdated goes to the subscribers of exactly this URI. One who may not
// read it any more is taken off.
func (s *State) resourceUpdated(now time.Time, f *wire.Frame) {
	uri := resourceURI(f)
	if uri == "" || utf16Len(uri) > s.cfg.MaxURILength {
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
	}
	if sub = s.subs[uri]; sub != nil {
		s.notify(sub, bytes.Clone(f.Bytes))
	}
}
