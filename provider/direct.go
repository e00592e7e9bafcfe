package provider

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
)

// Direct publishes one slot over its own WebSocket, ws://host/provider/<slot>,
// in plain JSON-RPC frames. A slot name with a slash or other reserved
// characters is percent-encoded in the URL.
//
// It never reconnects by itself: after Events.Close, Connect may be called
// again, from the callback too, and Send queues until then.
type Direct struct {
	url string
	ev  Events
	opt options

	sendMu sync.Mutex // orders writes: registration, queued frames, later frames

	mu         sync.Mutex // guards what follows; taken after sendMu
	connecting bool
	closed     bool // by Close, until Connect
	cancelDial context.CancelFunc
	sock       *socket
	queue      frameQueue
	in         *inbox
	disp       *dispatcher
	readers    sync.WaitGroup
}

var _ Transport = (*Direct)(nil)

// NewDirect returns a transport for the slot that url names. Nothing is dialled
// before Connect, which warns of a URL that belongs to a Tunnel.
func NewDirect(url string, ev Events, opts ...Option) *Direct {
	return &Direct{url: url, ev: ev, opt: newOptions(options{}, opts)}
}

// Connect dials the broker, sends the registration (only with WithAggregate) and
// the queued frames. A nil error does not mean that the broker grants the slot:
// its refusal arrives through Events.Error. A refused handshake is a
// *HandshakeError.
func (d *Direct) Connect(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d.mu.Lock()
	if d.connecting || d.sock != nil {
		d.mu.Unlock()
		return ErrConnected
	}
	d.connecting, d.closed, d.cancelDial = true, false, cancel
	d.mu.Unlock()

	if onSharedPath(d.url) {
		d.opt.log().Warn("provider: this looks like the path that tunnels share, where a Direct serves no slot; dial /provider/<slot>, or use NewTunnel",
			"url", printable(d.url))
	}
	s, err := dial(ctx, d.url, &d.opt)

	d.sendMu.Lock()
	defer d.sendMu.Unlock()
	d.mu.Lock()
	d.connecting = false
	if d.closed {
		err = ErrClosed
	}
	if err != nil {
		d.mu.Unlock()
		if s != nil {
			s.drop()
		}
		return fmt.Errorf("connect provider: %w", err)
	}
	in := newInbox()
	in.put(event{kind: eventOpen})
	frames := d.queue.take(anyOwner)
	d.sock, d.in = s, in
	// The reader runs before anything is written: a refusal that is already
	// under way must be read even if the broker stops reading.
	d.readers.Go(func() { d.read(s, in) })
	d.mu.Unlock()

	d.announce(s, frames)

	d.mu.Lock()
	d.disp = startDispatcher(in, d.ev, &d.opt, d.disp)
	d.mu.Unlock()
	return nil
}

// onSharedPath tells whether a URL leads to /providers or below it, as far as the
// broker's default paths go. A proxy may have put a path in front.
func onSharedPath(rawURL string) bool {
	u, err := url.Parse(rawURL)
	if err != nil {
		return false
	}
	path := u.EscapedPath() + "/"
	return strings.Contains(path, "/providers/") && !strings.Contains(path, "/provider/")
}

// announce writes what goes first on a new socket. A failure ends the socket,
// which the reader reports.
func (d *Direct) announce(s *socket, frames []queued) {
	if d.opt.aggregate != nil && s.write(registration(d.opt.aggregate)) != nil {
		return
	}
	for _, q := range frames {
		if s.write(q.frame) != nil {
			return
		}
	}
}

func (d *Direct) read(s *socket, in *inbox) {
	defer s.drop()
	for {
		frame, end, cause := s.read()
		if end != nil {
			d.ended(s, in, end, cause)
			return
		}
		if !in.put(event{kind: eventMessage, frame: frame}) {
			return
		}
	}
}

func (d *Direct) ended(s *socket, in *inbox, end *CloseError, cause error) {
	d.mu.Lock()
	if d.sock == s {
		d.sock = nil
	}
	d.mu.Unlock()
	d.opt.log().Debug("provider: socket ended", "url", printable(d.url), "code", end.Code, "reason", end.Reason, "cause", cause)
	if end.Code == closeNormal {
		in.finish(nil)
		return
	}
	in.finish(end)
}

// Send implements Transport.
func (d *Direct) Send(frame []byte) error {
	d.sendMu.Lock()
	defer d.sendMu.Unlock()
	d.mu.Lock()
	s := d.sock
	var dropped bool
	switch {
	case d.closed:
		d.mu.Unlock()
		return ErrClosed
	case s == nil:
		dropped = d.queue.push(queued{frame: frame})
	}
	d.mu.Unlock()
	if s != nil {
		return s.write(frame)
	}
	if dropped {
		warnDropped(&d.opt, "url", printable(d.url))
	}
	return nil
}

// Close ends the connection with code 1000, which frees the slot at once. It
// takes up to 2 s when the broker does not answer.
func (d *Direct) Close() error {
	d.mu.Lock()
	s, in := d.sock, d.in
	d.sock = nil
	d.closed = true
	d.queue.clear()
	if d.connecting {
		d.cancelDial()
	}
	d.mu.Unlock()
	if in != nil {
		in.abort()
	}
	if s != nil {
		s.close()
	}
	return nil
}

// wait returns when no goroutine of a closed transport is left.
func (d *Direct) wait() {
	d.readers.Wait()
	d.mu.Lock()
	disp := d.disp
	d.mu.Unlock()
	disp.wait()
}

// registration is the frame that announces a slot (spec 01 2.3 and 3.3).
func registration(aggregate *bool) []byte {
	if aggregate == nil {
		return []byte(`{"jsonrpc":"2.0","method":"notifications/register"}`)
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/register","params":{"aggregate":%t}}`, *aggregate)
}

func warnDropped(opt *options, key, value string) {
	opt.log().Warn("provider: queue is full, dropped the oldest frame", key, value, "bound", queueBound)
}
