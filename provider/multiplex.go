package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
)

// Multiplex publishes one slot over the socket of its [Tunnel]. While the tunnel
// reconnects, Events.Close and later Events.Open are called, and Send queues.
type Multiplex struct {
	tunnel *Tunnel
	slot   string
	prefix []byte // of an envelope
	ev     Events
	opt    options

	// Guarded by Tunnel.mu.
	closed  bool // by Close, until Connect
	current *member
	last    *member
	disp    *dispatcher
}

var _ Transport = (*Multiplex)(nil)

// member is one stay of a slot on the tunnel, from Connect to Close.
type member struct {
	owner  *Multiplex
	in     *inbox
	link   *link         // set when added
	ready  chan struct{} // closed by the first open
	once   sync.Once
	failed chan error // what ends a waiting Connect
}

func (mem *member) opened() {
	mem.in.put(event{kind: eventOpen})
	mem.once.Do(func() { close(mem.ready) })
}

func (mem *member) fail(err error) {
	select {
	case mem.failed <- err:
	default:
	}
}

// dialFailed ends a waiting Connect when repeating the handshake is pointless.
func (mem *member) dialFailed(err error) {
	var refused *HandshakeError
	if errors.As(err, &refused) && refused.permanent() {
		mem.fail(err)
	}
}

var errNoSlot = errors.New("slot name is empty")

// Connect announces the slot: at once on an open tunnel, else as soon as the
// tunnel opens. It returns when that has happened, and meanwhile the tunnel
// retries for as long as ctx allows, except after a *HandshakeError with a 4xx
// status, which is returned. After an error the slot is not connected. The
// broker's refusal of the slot arrives as a *TunnelError through Events.Error.
func (m *Multiplex) Connect(ctx context.Context) error {
	if m.slot == "" {
		return fmt.Errorf("connect provider: %w", errNoSlot)
	}
	mem := &member{owner: m, in: newInbox(), ready: make(chan struct{}), failed: make(chan error, 1)}
	if err := m.join(mem); err != nil {
		return fmt.Errorf("connect provider %q: %w", m.slot, err)
	}
	var err error
	select {
	case <-mem.ready:
		return nil
	case err = <-mem.failed:
	case <-ctx.Done():
		err = ctx.Err()
	}
	m.leave(mem)
	return fmt.Errorf("connect provider %q: %w", m.slot, err)
}

func (m *Multiplex) join(mem *member) error {
	t := m.tunnel
	t.sendMu.Lock()
	defer t.sendMu.Unlock()
	s, frames, err := t.add(mem)
	if err != nil {
		return err
	}
	if s != nil {
		announce(s, []*member{mem}, frames)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	m.last = mem
	m.disp = startDispatcher(mem.in, m.ev, &m.opt, m.disp)
	return nil
}

// Send implements Transport. Frame must be valid JSON, since it becomes part of
// an envelope.
func (m *Multiplex) Send(frame []byte) error {
	if !json.Valid(frame) {
		return fmt.Errorf("send frame of provider %q: not valid JSON", m.slot)
	}
	envelope := wrap(m.prefix, frame)
	t := m.tunnel
	t.sendMu.Lock()
	defer t.sendMu.Unlock()
	s, dropped, err := m.route(envelope)
	if err != nil {
		return err
	}
	if s != nil {
		return s.write(envelope)
	}
	if dropped {
		warnDropped(&t.opt, "url", printable(t.url))
	}
	return nil
}

// route returns the open socket, or queues the envelope.
func (m *Multiplex) route(envelope []byte) (s *socket, dropped bool, err error) {
	t := m.tunnel
	t.mu.Lock()
	defer t.mu.Unlock()
	if m.closed {
		return nil, false, ErrClosed
	}
	if m.current != nil && m.current.link.sock != nil {
		return m.current.link.sock, false, nil
	}
	return nil, t.queue.push(queued{owner: m, frame: envelope}), nil
}

// Close leaves the tunnel and discards the slot's queued frames. The last slot
// to leave closes the socket. While others stay, the broker is told nothing and
// keeps the slot (spec 01 3.4): what it sends is dropped.
func (m *Multiplex) Close() error {
	t := m.tunnel
	t.mu.Lock()
	m.closed = true
	mem := m.current
	t.queue.take(m.is)
	t.mu.Unlock()
	if mem != nil {
		mem.fail(ErrClosed)
		m.leave(mem)
	}
	return nil
}

func (m *Multiplex) leave(mem *member) {
	t := m.tunnel
	t.mu.Lock()
	if m.current == mem {
		m.current = nil
	}
	s := t.remove(mem)
	t.mu.Unlock()
	mem.in.abort()
	if s != nil {
		s.close()
	}
}

// wait returns when no goroutine of a closed transport is left.
func (m *Multiplex) wait() {
	m.tunnel.mu.Lock()
	mem, disp := m.last, m.disp
	m.tunnel.mu.Unlock()
	if mem == nil {
		return
	}
	disp.wait()
	if mem.link.ctx.Err() != nil {
		<-mem.link.done
	}
}

func (m *Multiplex) reconnects() bool { return true }

func (m *Multiplex) is(other *Multiplex) bool { return m == other }
