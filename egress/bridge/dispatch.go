package bridge

import (
	"context"
	"errors"
	"net/http/httptrace"
	"sync"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/wire"
)

// serve takes the host's messages in their order until the host has ended or ctx
// is done. What is not a request is taken by the broker before
// the next message is looked at; a request is on its way by then.
func (b *bridge) serve(ctx context.Context, lines <-chan input) {
	for {
		select {
		case in, ok := <-lines:
			if !ok {
				return
			}
			b.take(ctx, in)
		case <-ctx.Done():
			return
		}
	}
}

func (b *bridge) take(ctx context.Context, in input) {
	if in.err != nil {
		b.refuse(wire.TooLarge(MaxMessageBytes), nil)
		return
	}
	f, err := wire.Scan(in.line)
	switch {
	case err != nil:
		b.refuse(wire.Unscannable(err), nil)
	case f.IsRequest() && string(f.Method) == mcp.Initialize:
		b.open(ctx, &f)
	case f.IsRequest():
		b.request(ctx, &f, f.Raw(f.ID))
	case f.Shape == wire.Array:
		b.request(ctx, &f, nil)
	case f.IsNotification(), f.IsResponse():
		b.note(ctx, &f)
	default:
		b.request(ctx, &f, nil) // the broker says what is wrong with it
	}
}

// orderTimeout is how long a request that does not get onto the wire may hold up
// the message behind it.
const orderTimeout = time.Second

// request sends a message that will be answered, and returns when it is on its
// way. id is nil where the answer has none, or many.
func (b *bridge) request(ctx context.Context, f *wire.Frame, id []byte) {
	ctx, cancel := context.WithCancelCause(ctx)
	c := &call{cancel: cancel}
	if !b.calls.add(string(id), c) {
		cancel(nil)
		b.refuse(wire.SessionBusy(MaxCalls), id)
		return
	}
	var once sync.Once
	sent := make(chan struct{})
	onTheWay := func() { once.Do(func() { close(sent) }) }
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { onTheWay() },
	})
	b.answers.Go(func() {
		defer onTheWay()
		b.exchange(traced, f, id)
		b.calls.remove(string(id), c)
		cancel(nil)
	})
	late := time.NewTimer(orderTimeout)
	defer late.Stop()
	select {
	case <-sent:
	case <-late.C:
	case <-ctx.Done():
	}
}

// exchange brings one request to the broker and its answer to the host.
func (b *bridge) exchange(ctx context.Context, f *wire.Frame, id []byte) {
	s, err := b.established(ctx)
	if err == nil {
		err = b.once(ctx, f.Bytes, id, s)
	}
	if errors.Is(err, errSessionGone) {
		if s, err = b.renew(ctx, s); err == nil {
			err = b.once(ctx, f.Bytes, id, s)
		}
	}
	if err == nil {
		b.setup.note(f)
	}
	b.fail(ctx, err, id)
}

// errWithdrawn ends a request the host has cancelled; it wants no answer.
var errWithdrawn = errors.New("the host cancelled the request")

// fail tells the host what became of a request that has no answer.
func (b *bridge) fail(ctx context.Context, err error, id []byte) {
	var said *wire.Error
	switch {
	case err == nil, errors.Is(context.Cause(ctx), errWithdrawn):
	case ctx.Err() != nil:
		b.refuse(wire.SessionClosed(), id)
	case errors.As(err, &said):
		b.refuse(said, id)
	case errors.Is(err, errSessionGone): // and the new one as well
		b.refuse(wire.RefusedHTTP(b.cfg.URL, "404 Not Found"), id)
	case lostOnTheWay(err):
		b.refuse(wire.AnswerLost(b.cfg.URL, cause(err)), id)
	default:
		b.refuse(wire.Unreachable(b.cfg.URL, cause(err)), id)
	}
}

// note sends a message that has no answer and waits until the broker has it. One
// that a new session cannot take, or that is lost, is lost: the host expects no
// word about it.
func (b *bridge) note(ctx context.Context, f *wire.Frame) {
	method := string(f.Method)
	if method == mcp.Initialized {
		b.hostInitialized()
	}
	bounded, cancel := context.WithTimeout(ctx, NoteTimeout)
	defer cancel()
	s, err := b.established(bounded)
	if err == nil {
		err = b.once(bounded, f.Bytes, nil, s)
	}
	if errors.Is(err, errSessionGone) {
		if s, err = b.renew(bounded, s); err == nil && f.IsNotification() {
			err = b.once(bounded, f.Bytes, nil, s)
		}
	}
	if err != nil && ctx.Err() == nil {
		b.cfg.Log.Warn("[mcp-broker] bridge: a message of the host was lost: " + err.Error())
	}
	switch method {
	case mcp.Initialized:
		b.listen(ctx)
	case mcp.Cancelled:
		b.calls.withdraw(string(f.Raw(f.RequestID)))
	}
}

// calls are the requests in flight by their raw ids. The zero value is ready.
type calls struct {
	mu   sync.Mutex
	byID map[string]*call
	n    int
}

type call struct{ cancel context.CancelCauseFunc }

// add counts a request; false when there are too many. Of two with one id the
// broker refuses the second, so the first stays the one that can be cancelled.
func (c *calls) add(id string, added *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n >= MaxCalls {
		return false
	}
	c.n++
	if c.byID == nil {
		c.byID = map[string]*call{}
	}
	if _, taken := c.byID[id]; !taken && id != "" {
		c.byID[id] = added
	}
	return true
}

func (c *calls) remove(id string, removed *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n--
	if c.byID[id] == removed {
		delete(c.byID, id)
	}
}

func (c *calls) withdraw(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found := c.byID[id]; found != nil {
		found.cancel(errWithdrawn)
	}
}
