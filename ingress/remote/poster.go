package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptrace"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/wire"
)

const (
	// orderTimeout is how long a message the server does not take may hold up the ones
	// behind it.
	orderTimeout = 2 * time.Second
	// noteTimeout bounds the exchange of a message that has no answer.
	noteTimeout = 10 * time.Second
	// openTimeout is how long an initialize holds up what is behind it.
	openTimeout = time.Minute
)

// poster sends the slot's messages over HTTP, one exchange each: what is not a request
// is taken by the server before the next message is sent, requests run side by side.
type poster struct {
	*link
	http   *client
	outbox *rt.Outbox
	calls  calls
	leave  leave
	// exchange brings one request to the server and sees that it is answered.
	exchange func(c *call)
	// note brings anything else to the server.
	note func(ctx context.Context, f *wire.Frame) error
}

func newPoster(l *link, c *client) *poster {
	p := &poster{link: l, http: c}
	p.outbox = l.newOutbox(p.write)
	c.connected = p.stay
	return p
}

// Send implements msg.Conduit.
func (p *poster) Send(frame []byte, class mcp.Class) bool {
	return p.ctx.Err() == nil && p.outbox.Push(rt.Item{Frame: frame, Class: class})
}

func (p *poster) write(batch []rt.Item) error {
	for _, item := range batch {
		p.dispatch(item.Frame)
		if err := p.ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

func (p *poster) dispatch(frame []byte) {
	f, err := wire.Scan(frame)
	switch {
	case err != nil || f.Shape != wire.Object:
		p.problem(aboutMessage, fmt.Sprintf("a message of the broker's own was not sent: %v", err))
	case f.IsRequest() && string(f.Method) == mcp.Initialize:
		p.greet(&f)
	case f.IsRequest():
		p.request(newCall(p.ctx, &f))
	case string(f.Method) == mcp.Cancelled:
		p.cancelled(&f)
	default:
		p.hand(&f)
	}
}

// greet sends initialize. Without its answer there is no session, so what is behind it
// waits.
func (p *poster) greet(f *wire.Frame) {
	c := newCall(p.ctx, f)
	over := c.ctx.Done() // a worker stops its call when it is through
	p.request(c)
	p.await(over, openTimeout)
}

func (p *poster) request(c *call) {
	switch p.calls.add(c) {
	case run:
		p.spawn(func() { p.serve(c) })
	case refused:
		p.link.refuse(c.id(), wire.RemoteBusy(p.cfg.Name, maxRunning))
		c.stop(nil)
	}
}

// serve is a worker: one call after the other.
func (p *poster) serve(c *call) {
	for ; c != nil; c = p.calls.next() {
		p.exchange(c)
		c.onTheWay()
		c.stop(nil)
	}
}

// traced makes the call known as sent once its request is on the wire.
func traced(c *call) context.Context {
	return httptrace.WithClientTrace(c.ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { c.onTheWay() },
	})
}

// refuse answers a call with an error of the broker's, if it has no answer yet.
func (p *poster) refuse(c *call, err *wire.Error) {
	if p.calls.settle(c.id()) {
		p.link.refuse(c.id(), err)
		p.paid()
	}
}

// incoming passes on a message of the server.
func (p *poster) incoming(f *wire.Frame) {
	settled := f.IsResponse() && p.calls.settle(f.Raw(f.ID))
	p.deliver(f)
	if settled {
		p.paid()
	}
}

// oversized is link.oversized for a message that may answer an open call.
func (p *poster) oversized(head, tail []byte) {
	settled := p.calls.settle(wire.CutResponseID(head, tail))
	p.link.oversized(head, tail)
	if settled {
		p.paid()
	}
}

func (p *poster) paid() {
	p.calls.paid()
	p.leaveIfIdle()
}

var errWithdrawn = errors.New("the request was cancelled, and the server did not answer it")

// cancelled passes a cancellation on, behind the request it is about. A server need not
// answer that request any more, so its exchange ends some time later.
func (p *poster) cancelled(f *wire.Frame) {
	c, waited := p.calls.withdraw(f.Raw(f.RequestID))
	switch {
	case waited:
		p.refuse(c, wire.Withdrawn())
		c.stop(nil)
		return
	case c != nil:
		p.await(c.sent, p.pace.order)
	}
	p.hand(f)
	if c != nil {
		p.calls.expire(c, p.pace.cancel, func() {
			c.stop(errWithdrawn)
			p.spawn(func() { p.refuse(c, wire.RemoteLost(p.cfg.Name, errWithdrawn.Error())) })
		})
	}
}

// hand gives a message that has no answer to the server, and waits until it has been
// taken.
func (p *poster) hand(f *wire.Frame) {
	taken := make(chan struct{})
	p.spawn(func() {
		defer close(taken)
		ctx, cancel := context.WithTimeout(p.ctx, noteTimeout)
		defer cancel()
		if err := p.note(ctx, f); err != nil && p.ctx.Err() == nil {
			p.problem(aboutMessage, fmt.Sprintf("a message for it was lost (%s): %s", kind(f), sentence(err)))
		}
	})
	p.await(taken, p.pace.order)
}

func kind(f *wire.Frame) string {
	if f.Method != nil {
		return string(f.Method)
	}
	return "a response"
}

// await waits for done, at most for d and not beyond the end of the connection.
func (p *poster) await(done <-chan struct{}, d time.Duration) {
	timeout := time.NewTimer(d)
	defer timeout.Stop()
	select {
	case <-done:
	case <-p.ctx.Done():
	case <-timeout.C:
	}
}
