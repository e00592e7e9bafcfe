package provider

import (
	"bytes"
	"context"
	"fmt"
	"sync"
)

// Attacher is the broker, as far as a Loopback needs it.
type Attacher interface {
	// AttachLoopback connects slot to p. A nil aggregate means that the option
	// was not given. A refusal is an error. The broker may call p before
	// AttachLoopback returns.
	AttachLoopback(slot string, aggregate *bool, p Peer) (Port, error)
}

// Peer is the provider's end of a loopback; the broker calls it. Its methods
// neither block nor call back.
type Peer interface {
	// Deliver hands over one JSON-RPC message, which the broker must not change
	// afterwards. At most 256 frames or 16 MiB wait for the provider; one more
	// closes the loopback.
	Deliver(frame []byte)
	// Closed tells that the broker ended the loopback, with the code and reason
	// it would have used on a WebSocket. Calls after the first are ignored.
	Closed(code int, reason string)
}

// Port is the broker's end of a loopback.
type Port interface {
	// Send hands over one JSON-RPC message, which the broker may keep.
	Send(frame []byte) error
	// Close releases the slot. The broker need not answer with Peer.Closed.
	Close() error
}

// Loopback publishes one slot of a broker in the same process. Callbacks run on
// a goroutine of the Loopback, never inside a call of the broker. Like Direct it
// never reconnects by itself; Connect may be called again.
type Loopback struct {
	slot     string
	attacher Attacher
	ev       Events
	opt      options

	sendMu sync.Mutex // orders queued and later frames

	mu         sync.Mutex // guards what follows; taken after sendMu
	connecting bool
	closed     bool // by Close, until Connect
	port       Port // nil while not connected
	peer       *loopbackPeer
	queue      frameQueue
	disp       *dispatcher
	closers    sync.WaitGroup
}

var _ Transport = (*Loopback)(nil)

// NewLoopback returns a transport for slot. Nothing is attached before Connect.
// Of opts only WithAggregate and WithLogger have an effect.
func NewLoopback(slot string, a Attacher, ev Events, opts ...Option) *Loopback {
	return &Loopback{slot: slot, attacher: a, ev: ev, opt: newOptions(options{}, opts)}
}

// loopbackPeer is the Peer of one attachment.
type loopbackPeer struct {
	owner *Loopback
	in    *inbox
}

func (p *loopbackPeer) Deliver(frame []byte) {
	if err := p.in.offer(p.owner.slot, event{kind: eventMessage, frame: frame}); err != nil {
		p.owner.release(p)
	}
}

func (p *loopbackPeer) Closed(code int, reason string) {
	if code == closeNormal {
		p.in.finish(nil)
	} else {
		p.in.finish(&CloseError{Code: code, Reason: reason})
	}
	p.owner.detach(p)
}

// Connect attaches the slot and sends the queued frames. The broker's refusal is
// the returned error.
func (l *Loopback) Connect(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return l.connectError(err)
	}
	l.mu.Lock()
	if l.connecting || l.port != nil {
		l.mu.Unlock()
		return ErrConnected
	}
	p := &loopbackPeer{owner: l, in: newInbox()}
	// Before the broker can deliver anything, so that open comes first.
	p.in.put(event{kind: eventOpen})
	l.connecting, l.closed, l.peer = true, false, p
	l.mu.Unlock()

	port, err := l.attacher.AttachLoopback(l.slot, l.opt.aggregate, p)

	l.sendMu.Lock()
	defer l.sendMu.Unlock()
	frames, err := l.attached(p, port, err)
	if err != nil {
		return l.connectError(err)
	}
	for _, q := range frames {
		if err := port.Send(q.frame); err != nil {
			l.opt.log().Warn("provider: queued frame was not accepted", "slot", l.slot, "error", err)
		}
	}
	l.mu.Lock()
	l.disp = startDispatcher(p.in, l.ev, &l.opt, l.disp)
	l.mu.Unlock()
	return nil
}

// attached records the outcome of an attachment and takes the queued frames.
func (l *Loopback) attached(p *loopbackPeer, port Port, err error) ([]queued, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.connecting = false
	if err != nil {
		l.peer = nil
		p.in.abort()
		return nil, err
	}
	if l.closed {
		l.peer = nil
		l.closers.Go(func() { _ = port.Close() })
		return nil, ErrClosed
	}
	if l.peer != p { // the broker, or an overflow, ended it meanwhile
		l.closers.Go(func() { _ = port.Close() })
		return nil, nil
	}
	l.port = port
	return l.queue.take(anyOwner), nil
}

func (l *Loopback) connectError(err error) error {
	return fmt.Errorf("connect loopback provider %q: %w", l.slot, err)
}

// Send implements Transport.
func (l *Loopback) Send(frame []byte) error {
	l.sendMu.Lock()
	defer l.sendMu.Unlock()
	l.mu.Lock()
	port := l.port
	var dropped bool
	switch {
	case l.closed:
		l.mu.Unlock()
		return ErrClosed
	case port == nil:
		dropped = l.queue.push(queued{frame: frame})
	}
	l.mu.Unlock()
	if port != nil {
		if err := port.Send(bytes.Clone(frame)); err != nil {
			return fmt.Errorf("send frame: %w", err)
		}
		return nil
	}
	if dropped {
		warnDropped(&l.opt, "slot", l.slot)
	}
	return nil
}

// Close releases the slot.
func (l *Loopback) Close() error {
	l.mu.Lock()
	port, p := l.port, l.peer
	l.port, l.peer = nil, nil
	l.closed = true
	l.queue.clear()
	l.mu.Unlock()
	if p != nil {
		p.in.abort()
	}
	if port == nil {
		return nil
	}
	if err := port.Close(); err != nil {
		return fmt.Errorf("close loopback provider %q: %w", l.slot, err)
	}
	return nil
}

// detach forgets the attachment of p and returns its port, if there was one.
func (l *Loopback) detach(p *loopbackPeer) Port {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.peer != p {
		return nil
	}
	port := l.port
	l.port, l.peer = nil, nil
	return port
}

// release ends the attachment of p from inside a call of the broker, which must
// not be called back from there.
func (l *Loopback) release(p *loopbackPeer) {
	if port := l.detach(p); port != nil {
		l.closers.Go(func() { _ = port.Close() })
	}
}

// wait returns when no goroutine of a closed transport is left.
func (l *Loopback) wait() {
	l.closers.Wait()
	l.mu.Lock()
	disp := l.disp
	l.mu.Unlock()
	disp.wait()
}
