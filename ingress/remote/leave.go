package remote

import (
	"sync"
	"time"
)

// One message that cannot be sent says little about those under way: a server that is
// being replaced takes no new connections and still answers what it has taken. So the
// connection ends behind its last call, and not at all if a new connection to the server
// comes about before.

// drainTimeout bounds what calls under way are waited for.
const drainTimeout = 5 * time.Second

// leave is a connection's intention to end. The zero value is none.
type leave struct {
	mu    sync.Mutex
	cause error // nil is none
	late  *time.Timer
}

// depart ends the connection for a cause that one message has met, once no call is open
// or the drain is over.
func (p *poster) depart(cause error) {
	p.leave.mu.Lock()
	if p.leave.cause == nil {
		p.leave.cause = cause
		p.leave.late = time.AfterFunc(p.pace.drain, func() { p.giveOver(cause) })
	}
	p.leave.mu.Unlock()
	p.leaveIfIdle()
}

// stay takes depart back: the server can be reached. One that refuses the broker's
// credentials still does.
func (p *poster) stay() {
	p.leave.mu.Lock()
	defer p.leave.mu.Unlock()
	if p.leave.cause != nil && !denied(p.leave.cause) {
		p.leave.late.Stop()
		p.leave.cause = nil
	}
}

// leaveIfIdle ends a departing connection without calls.
func (p *poster) leaveIfIdle() {
	p.leave.mu.Lock()
	defer p.leave.mu.Unlock()
	if p.leave.cause != nil && p.calls.idle() {
		p.leave.late.Stop()
		p.giveOver(p.leave.cause)
	}
}
