package remote

import (
	"context"
	"slices"
	"sync"
	"time"

	"mcpbroker/actors/wire"
)

// Bounds of the requests of one connection.
const (
	maxRunning      = 64       // requests with an HTTP exchange of their own
	maxWaiting      = 1024     // requests that wait for one of these to end
	maxWaitingBytes = 16 << 20 // of them together
)

// call is a request of the slot.
type call struct {
	frame wire.Frame
	ctx   context.Context
	stop  context.CancelCauseFunc

	once sync.Once
	sent chan struct{} // closed once it is on the wire, or over
	late *time.Timer   // ends it some time after it was cancelled; guarded by calls.mu
}

func newCall(ctx context.Context, f *wire.Frame) *call {
	c := &call{frame: *f, sent: make(chan struct{})}
	c.ctx, c.stop = context.WithCancelCause(ctx)
	return c
}

func (c *call) onTheWay() { c.once.Do(func() { close(c.sent) }) }

func (c *call) id() []byte { return c.frame.Raw(c.frame.ID) }

// calls are the requests of a connection. A worker takes one after the other. The
// zero value is ready.
type calls struct {
	mu      sync.Mutex
	open    map[string]*call // unanswered, by raw id
	waiting []*call
	bytes   int // of those
	running int
	owed    int // settled, and the answer is not yet with the slot
}

// admission says what becomes of a new call.
type admission uint8

const (
	run admission = iota // by a worker of its own
	wait
	refused
)

func (c *calls) add(n *call) admission {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[string]*call{}
	}
	switch {
	case c.running < maxRunning:
		c.running++
		c.open[string(n.id())] = n
		return run
	case len(c.waiting) >= maxWaiting, c.bytes+len(n.frame.Bytes) > maxWaitingBytes && len(c.waiting) > 0:
		return refused
	}
	c.waiting = append(c.waiting, n)
	c.bytes += len(n.frame.Bytes)
	c.open[string(n.id())] = n
	return wait
}

// next is what a worker does after it is through with a call; nil ends it.
func (c *calls) next() *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		c.running--
		return nil
	}
	n := c.waiting[0]
	c.waiting = slices.Delete(c.waiting, 0, 1)
	c.bytes -= len(n.frame.Bytes)
	return n
}

// settle takes a call off the list: its caller is being answered. Of all who ask, one is
// told true, and has to call paid once the slot has the answer.
func (c *calls) settle(id []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.open[string(id)]
	if n == nil {
		return false
	}
	delete(c.open, string(id))
	c.owed++
	if n.late != nil {
		n.late.Stop()
	}
	return true
}

// paid: the answer of a settled call is with the slot.
func (c *calls) paid() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owed--
}

// has reports that a call is open.
func (c *calls) has(id []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open[string(id)] != nil
}

// withdraw finds the call a cancellation is about. One that waits is taken back.
func (c *calls) withdraw(id []byte) (found *call, waited bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found = c.open[string(id)]
	if i := slices.Index(c.waiting, found); i >= 0 && found != nil {
		c.waiting = slices.Delete(c.waiting, i, i+1)
		c.bytes -= len(found.frame.Bytes)
		return found, true
	}
	return found, false
}

// expire does what ends a cancelled call, if it is still open after d.
func (c *calls) expire(n *call, d time.Duration, end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[string(n.id())] == n && n.late == nil {
		n.late = time.AfterFunc(d, end)
	}
}

// idle reports that no call is open, and that the slot has all answers.
func (c *calls) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open) == 0 && c.owed == 0
}
