package slot

import (
	"log/slog"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// A provider's connection is one MCP session, whatever the number of clients:
// the first client's initialize is relayed and its answer serves the later ones.
// A provider that comes back is sent the last client's initialize first, always
// (F-25), and client traffic is held back until it has answered.

func (s *State) initialize(now time.Time, m *msg.ClientCall) {
	switch {
	case s.initAnswer != nil:
		f := &m.Frame
		s.tell(m.Client, &msg.CallReply{Call: m.Call, Frame: wire.WithID(s.initAnswer, f.Raw(f.ID))})
	case s.initLeader != 0:
		s.initQueue = append(s.initQueue, m)
	default:
		s.initLeader = s.relay(now, m, true)
	}
}

// replay sends the remembered initialize to a provider that has just attached,
// or one of the broker's own when only subscriptions have to be restored.
func (s *State) replay(now time.Time) {
	params := s.lastInit
	switch {
	case params == nil && len(s.subs) == 0:
		return
	case params == nil:
		params = []byte(`{"protocolVersion":"` + mcp.Revision20250618 + `","capabilities":{},"clientInfo":` + s.cfg.Identity + `}`)
	}
	c := &call{id: s.cfg.NextID(), init: true}
	s.track(now, c)
	frame := wire.AppendBrokerID([]byte(`{"jsonrpc":"2.0","id":`), c.id)
	frame = append(frame, `,"method":"initialize"`...)
	if len(params) > 0 {
		frame = append(append(frame, `,"params":`...), s.offer(params)...)
	}
	s.toProvider(append(frame, '}'), mcp.Required)
	s.initLeader = c.id
	s.holdUntil = now.Add(s.patience())
}

// initializeAnswered keeps a good answer for later clients. A replayed
// initialize is completed by the broker, a relayed one by its client.
func (s *State) initializeAnswered(now time.Time, c *call, f *wire.Frame) {
	ok := f.Result.Present()
	if ok && !s.cfg.RelayInitialize {
		s.initAnswer = f
	}
	replayed := c.origID == nil
	if replayed && ok && !s.initialized {
		s.toProvider([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), mcp.Required)
		s.initialized = true
	}
	if replayed && !ok {
		s.log(slog.LevelWarn, `[broker] provider "%s" refused the initialize sent before restoring subscriptions: %s`, s.name, wire.Excerpt(f.Raw(f.Error)))
	}
	s.endInitialize(c, f)
	if !ok || s.cfg.RelayInitialize {
		s.promote(now)
	}
	s.release(now)
}

// endInitialize takes the leader's place; a good answer goes to those who
// queued for it.
func (s *State) endInitialize(c *call, f *wire.Frame) {
	if s.initLeader != c.id {
		return
	}
	s.initLeader = 0
	if f == nil || !f.Result.Present() {
		return
	}
	for _, q := range s.initQueue {
		s.tell(q.Client, &msg.CallReply{Call: q.Call, Frame: wire.WithID(f, q.Frame.Raw(q.Frame.ID))})
	}
	s.initQueue = nil
}

// expireHandshake keeps an initialize that is due, where the slot's owner waits for its
// answer and knows how long its server may take to start. Its callers wait no longer.
func (s *State) expireHandshake(c *call) (kept bool) {
	if !c.init || s.initLeader != c.id || !s.ownersHold() {
		return false
	}
	s.deadlines.remove(c)
	client, due := c.client, c.deadline
	c.client, c.deadline = nil, time.Time{}
	s.undo(func() { c.client, c.deadline = client, due; s.deadlines.push(c) })
	err := wire.NoAnswer(s.name, s.cfg.RequestTimeout)
	s.tell(client, &msg.CallFailed{Call: c.number, Err: err})
	queue := s.initQueue
	s.initQueue = nil
	for _, q := range queue {
		if q.Timed {
			s.initQueue = append(s.initQueue, q)
			continue
		}
		s.fail(q, err)
	}
	return true
}

// promote relays the next queued initialize after the leader's came to nothing.
func (s *State) promote(now time.Time) {
	if len(s.initQueue) == 0 || s.initLeader != 0 || s.holder == nil {
		return
	}
	next := s.initQueue[0]
	s.initQueue = append([]*msg.ClientCall(nil), s.initQueue[1:]...)
	s.initLeader = s.relay(now, next, true)
}

// holding reports that calls wait: behind a replayed initialize, or for an owner
// that is connecting.
func (s *State) holding() bool { return s.expected || !s.holdUntil.IsZero() }

// release restores the subscriptions and sends what was held back, in order.
func (s *State) release(now time.Time) {
	held, waits := s.held, s.waits
	s.held, s.waits, s.holdUntil = nil, nil, time.Time{}
	if s.holder == nil {
		return
	}
	s.restore(now)
	if s.draining() {
		s.held, s.waits = held, waits
		return
	}
	for _, h := range held {
		s.resume(now, h)
	}
}
