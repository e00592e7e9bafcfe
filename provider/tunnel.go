package provider

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Tunnel is one WebSocket, ws://host/providers, shared by any number of slots.
// It is open while at least one [Multiplex] is connected, and then reconnects by
// itself after 1 s doubling to 30 s, times a random factor from 0.5 to 1.0; the
// doubling starts again after each success, and connecting another slot dials at
// once. After every open it announces all slots again.
//
// Frames sent while the socket is not open wait in one queue for the whole
// tunnel: 64 frames, the oldest dropped. A slot whose Message callback blocks
// delays the others.
type Tunnel struct {
	url string
	opt options

	sendMu sync.Mutex // orders writes: registrations, queued frames, later frames

	mu        sync.Mutex // guards what follows; taken after sendMu
	slots     []*member  // in the order they connected
	queue     frameQueue
	link      *link // nil while no slot is connected
	lastClose *CloseError
	strangers sampler // frames that are no envelope
	unknown   sampler // envelopes for slots not connected here
}

// link is the effort to keep the socket open, from the first connected slot to
// the last. One goroutine dials and reads.
type link struct {
	ctx    context.Context
	cancel context.CancelFunc
	kick   chan struct{} // a new slot: do not wait for the backoff
	done   chan struct{}
	sock   *socket // nil while not open; guarded by Tunnel.mu
}

// NewTunnel returns a tunnel to the broker's multiplex URL. Nothing is dialled
// before a slot connects.
func NewTunnel(url string, opts ...Option) *Tunnel {
	return &Tunnel{url: url, opt: newOptions(options{}, opts)}
}

// Provider returns the transport of one slot on the tunnel. Of opts only
// WithAggregate and WithLogger have an effect; the tunnel's are the defaults.
func (t *Tunnel) Provider(slot string, ev Events, opts ...Option) *Multiplex {
	return &Multiplex{
		tunnel: t,
		slot:   slot,
		prefix: envelopePrefix(slot),
		ev:     ev,
		opt:    newOptions(t.opt, opts),
	}
}

// LastClose tells how the tunnel's most recent socket ended, and nil when none
// has ended by the broker's or the network's doing.
func (t *Tunnel) LastClose() *CloseError {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lastClose == nil {
		return nil
	}
	c := *t.lastClose
	return &c
}

// add connects mem. When the socket is already open it returns it, with the
// frames that wait for the slot, to be announced by the caller, who holds sendMu.
func (t *Tunnel) add(mem *member) (*socket, []queued, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := mem.owner
	for _, other := range t.slots {
		if other.owner.slot == m.slot {
			return nil, nil, ErrConnected
		}
	}
	fresh := t.link == nil
	if fresh {
		t.start()
	}
	l := t.link
	mem.link = l
	t.slots = append(t.slots, mem)
	m.closed, m.current = false, mem
	if l.sock == nil {
		if !fresh {
			l.hurry()
		}
		return nil, nil, nil
	}
	// In the fresh inbox the open stands before anything the socket's reader adds.
	mem.opened()
	return l.sock, t.queue.take(m.is), nil
}

// start begins a link; mu is held.
func (t *Tunnel) start() {
	ctx, cancel := context.WithCancel(context.Background())
	l := &link{ctx: ctx, cancel: cancel, kick: make(chan struct{}, 1), done: make(chan struct{})}
	t.link = l
	go func() {
		defer close(l.done)
		t.run(l)
	}()
}

// remove disconnects the slot of mem. With the last slot the link ends and the
// queue is discarded; the returned socket, if any, is then left to close. mu is
// held.
func (t *Tunnel) remove(mem *member) *socket {
	i := slices.Index(t.slots, mem)
	if i < 0 {
		return nil
	}
	t.slots = slices.Delete(t.slots, i, i+1)
	if len(t.slots) > 0 {
		return nil
	}
	t.queue.clear()
	l := t.link
	t.link = nil
	l.cancel()
	return l.sock
}

func (t *Tunnel) run(l *link) {
	var b backoff
	for l.ctx.Err() == nil {
		l.settle()
		s, err := dial(l.ctx, t.url, &t.opt)
		if err != nil {
			t.dialFailed(l, err)
		} else {
			b.reset()
			t.serve(l, s)
		}
		if l.ctx.Err() != nil {
			return
		}
		delay := b.next()
		t.opt.log().Info("provider: tunnel is not open, reconnecting", "url", printable(t.url), "in", delay)
		l.pause(delay)
	}
}

// hurry cuts the present or next pause short.
func (l *link) hurry() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// settle forgets a hurry that a dial, now starting or just done, takes care of.
func (l *link) settle() {
	select {
	case <-l.kick:
	default:
	}
}

// pause waits for delay, a new slot, or the end of the link.
func (l *link) pause(delay time.Duration) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.kick:
	case <-l.ctx.Done():
	}
}

// dialFailed lets slots that never opened give up when repeating is pointless.
func (t *Tunnel) dialFailed(l *link, err error) {
	if l.ctx.Err() != nil {
		return
	}
	t.opt.log().Warn("provider: cannot open the tunnel", "url", printable(t.url), "error", err)
	for _, mem := range t.connected(l) {
		mem.dialFailed(err)
	}
}

// serve announces the slots on a new socket and reads it until it ends.
func (t *Tunnel) serve(l *link, s *socket) {
	defer s.drop()
	if !t.opened(l, s) {
		return
	}
	for {
		frame, end, cause := s.read()
		if end != nil {
			t.ended(l, end, cause)
			return
		}
		t.deliver(l, frame)
	}
}

// opened writes all registrations and then the queue. It reports false when the
// link has ended.
func (t *Tunnel) opened(l *link, s *socket) bool {
	t.sendMu.Lock()
	t.mu.Lock()
	if t.link != l {
		t.mu.Unlock()
		t.sendMu.Unlock()
		return false
	}
	l.sock = s
	l.settle()
	slots := slices.Clone(t.slots)
	frames := t.queue.take(func(m *Multiplex) bool {
		return slices.ContainsFunc(slots, func(mem *member) bool { return mem.owner == m })
	})
	t.mu.Unlock()

	announce(s, slots, frames)
	t.sendMu.Unlock()
	for _, mem := range slots {
		mem.opened()
	}
	return true
}

// announce writes one registration per slot and then the queued frames. A
// failure ends the socket, which its reader notices.
func announce(s *socket, slots []*member, frames []queued) {
	for _, mem := range slots {
		m := mem.owner
		if s.write(wrap(m.prefix, registration(m.opt.aggregate))) != nil {
			return
		}
	}
	for _, q := range frames {
		if s.write(q.frame) != nil {
			return
		}
	}
}

func (t *Tunnel) ended(l *link, end *CloseError, cause error) {
	t.mu.Lock()
	if t.link != l {
		t.mu.Unlock()
		return
	}
	l.sock = nil
	t.lastClose = end
	t.mu.Unlock()
	t.opt.log().Warn("provider: tunnel closed", "url", printable(t.url), "code", end.Code, "reason", end.Reason, "cause", cause)
	for _, mem := range t.connected(l) {
		mem.in.put(event{kind: eventClose})
	}
}

// connected returns the slots of l, in the order they connected, while l is current.
func (t *Tunnel) connected(l *link) []*member {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.link != l {
		return nil
	}
	return slices.Clone(t.slots)
}

// deliver hands an incoming envelope to its slot.
func (t *Tunnel) deliver(l *link, frame []byte) {
	slot, payload, ok := unwrap(frame)
	if !ok {
		t.sampled(&t.strangers, "provider: tunnel frame is not an envelope, dropped", "frame", excerpt(frame))
		return
	}
	slots := t.connected(l)
	i := slices.IndexFunc(slots, func(mem *member) bool { return mem.owner.slot == slot })
	if i < 0 {
		t.sampled(&t.unknown, "provider: envelope for a slot that is not connected here, dropped", "slot", slot)
		return
	}
	if refusal, ok := refusalIn(slot, payload); ok {
		slots[i].in.put(event{kind: eventError, err: refusal})
		return
	}
	slots[i].in.put(event{kind: eventMessage, frame: payload})
}

func (t *Tunnel) sampled(s *sampler, text, key, value string) {
	t.mu.Lock()
	count, due := s.next()
	t.mu.Unlock()
	if due {
		t.opt.log().Error(text, key, value, "count", count)
	}
}

// sampler thins out log lines: the first, then one in 50.
type sampler struct{ count int }

func (s *sampler) next() (count int, due bool) {
	s.count++
	return s.count, s.count%50 == 1
}
