package stdio

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/wire"
	"mcpbroker/egress/session"
)

// bridge is one host: a reader that posts messages to the session's actor, and an
// outbox that takes what the session has to say.
type bridge struct {
	srv    *Server
	slot   string
	limit  int
	lines  *wire.LineReader
	out    *bufio.Writer
	outbox *rt.Outbox

	link    *link         // of the reader
	closing chan struct{} // no more messages are taken, nor answers waited for
	done    chan struct{}

	closeOnce sync.Once

	mu   sync.Mutex
	last *link
}

// link is a session and whether it lives. A session that failed is followed by
// another with the host's next message: the host cannot connect again.
type link struct {
	ref  *rt.Ref
	gone chan struct{}
}

func newBridge(s *Server, slot string, limit int, lines *wire.LineReader, out io.Writer) *bridge {
	b := &bridge{
		srv: s, slot: slot, limit: limit, lines: lines, out: bufio.NewWriterSize(out, 64<<10),
		closing: make(chan struct{}), done: make(chan struct{}),
	}
	b.outbox = rt.NewOutbox(rt.OutboxConfig{
		Limit:   OutboxBytes,
		Run:     func(fn func()) { go fn() }, // not a job of the system: it may block for good
		Write:   b.write,
		Failed:  func(err error) { b.fault("write", err); b.close() },
		Dropped: s.slow.Dropping(s.sys.Log(), "the stdio host", slot),
		Overrun: func() { b.tooSlow(); b.close() },
	})
	return b
}

// session returns the living session. Its callers are Serve and then the reader.
func (b *bridge) session(ctx context.Context) (*rt.Ref, error) {
	if b.link != nil && !closed(b.link.gone) {
		return b.link.ref, nil
	}
	l := &link{gone: make(chan struct{})}
	ref, err := b.srv.open(ctx, b.slot, func() { b.sessionEnded(l) })
	if err != nil {
		return nil, err
	}
	l.ref, b.link = ref, l
	b.mu.Lock()
	b.last = l
	b.mu.Unlock()
	if closed(b.closing) { // and the session before this one was closed
		ref.Send(&msg.CloseSession{})
	}
	ref.Send(&msg.StreamOpened{Stream: stream{b}})
	return ref, nil
}

func (b *bridge) sessionEnded(l *link) {
	close(l.gone)
	if b.srv.stopping.Load() {
		b.close()
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// read is the one goroutine that reads the host.
func (b *bridge) read() {
	credits := rt.NewCredits(FramesInFlight)
	for {
		line, err := b.lines.Next()
		switch {
		case closed(b.closing):
			return
		case errors.Is(err, wire.ErrTooLong):
			b.send(wire.TooLarge(b.limit).Response(nil))
			continue
		case err != nil:
			if !errors.Is(err, io.EOF) {
				b.fault("read", err)
			}
			b.drain()
			return
		}
		if !credits.Take(b.closing) {
			return
		}
		b.take(line, credits)
	}
}

func (b *bridge) take(line []byte, credit msg.Credit) {
	f, err := wire.Scan(line)
	if err != nil {
		credit.Give()
		b.send(wire.Unscannable(err).Response(nil))
		return
	}
	r := &reply{b: b, answered: f.IsRequest() || f.Shape == wire.Array}
	if f.IsRequest() {
		r.id = f.Raw(f.ID)
	}
	ref, err := b.session(context.Background())
	switch {
	case err != nil:
		credit.Give()
		r.Closed()
	case f.Shape == wire.Array:
		ref.Send(&msg.ClientBatch{Array: f, Sink: r, Credit: credit})
	default:
		ref.Send(&msg.ClientFrame{Frame: f, Sink: r, Credit: credit})
	}
}

func (b *bridge) send(frame []byte) { b.outbox.Push(rt.Item{Frame: frame}) }

func (b *bridge) write(batch []rt.Item) error {
	for _, item := range batch {
		_, _ = b.out.Write(wire.OneLine(item.Frame)) // F-29; an error stays until Flush
		_ = b.out.WriteByte('\n')
	}
	return b.out.Flush()
}

// drain waits for the answers owed to a host that has ended, up to Grace, and
// closes the bridge behind them.
func (b *bridge) drain() {
	b.link.ref.Send(&session.Drain{})
	late := time.NewTimer(Grace)
	defer late.Stop()
	select {
	case <-b.link.gone:
	case <-late.C:
	case <-b.closing:
	}
	b.close()
}

// close ends the bridge: an error for the calls in flight, and goodbye.
func (b *bridge) close() { b.closeOnce.Do(func() { close(b.closing); go b.end() }) }

func (b *bridge) end() {
	b.mu.Lock()
	last := b.last
	b.mu.Unlock()
	late, cancel := context.WithTimeout(context.Background(), FlushTimeout)
	defer cancel()
	if last != nil { // nil: the first session ended as it began
		last.ref.Send(&msg.CloseSession{})
		select {
		case <-last.gone: // and those in flight have been answered
		case <-late.Done():
		}
	}
	flushed := make(chan struct{})
	b.outbox.Finish(func() { close(flushed) })
	select {
	case <-flushed:
	case <-late.Done():
		b.outbox.Close()
	}
	b.srv.forget(b)
	close(b.done)
}

func (b *bridge) fault(what string, err error) {
	b.srv.sys.Log().Error(fmt.Sprintf("[broker] stdio client transport: %s: %v", what, err))
}

func (b *bridge) tooSlow() {
	b.srv.slow.Closed()
	b.srv.sys.Log().Warn(fmt.Sprintf(`[broker] the stdio host of slot "%s" was closed: it reads too slowly`, b.slot))
}

// reply is the sink of one message.
type reply struct {
	b        *bridge
	answered bool   // the message wants an answer
	id       []byte // raw, of a request
}

// Reply implements msg.Sink.
func (r *reply) Reply(frame []byte) { r.b.send(frame) }

// Event implements msg.Sink; the stream is always open, so it is never used.
func (r *reply) Event(frame []byte, _ mcp.Class) { r.b.send(frame) }

// Accepted implements msg.Sink.
func (r *reply) Accepted() {}

// Refuse implements msg.Sink.
func (r *reply) Refuse(err *wire.Error) { r.b.send(err.Response(nil)) }

// Closed implements msg.Sink: a host has nothing but answers to learn it from.
func (r *reply) Closed() {
	if r.answered {
		r.b.send(wire.SessionClosed().Response(r.id))
	}
}

// stream carries what the host did not ask for, on the same pipe.
type stream struct{ b *bridge }

// Event implements msg.Stream.
func (s stream) Event(_ uint64, frame []byte, class mcp.Class, key string) bool {
	return s.b.outbox.Push(rt.Item{Frame: frame, Class: class, Key: key})
}

// End implements msg.Stream: the bridge outlives its session.
func (s stream) End() {}
