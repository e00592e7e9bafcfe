package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/wire"
)

// Bounds of one connection.
const (
	FramesInFlight = 64       // frames read and not yet dealt with by the slot
	OutboxBytes    = 16 << 20 // frames that wait to be sent
)

// goodbyeTimeout bounds taking leave of a server.
const goodbyeTimeout = 2 * time.Second

// link is what the drivers share: the way to the slot, the goroutines, the end.
type link struct {
	sys   *rt.System
	cfg   Config
	owner msg.Ref
	gen   uint64
	pace  *pace
	mask  func(string) string // takes secrets out of a text

	ctx     context.Context // of everything the driver does
	cancel  context.CancelFunc
	work    sync.WaitGroup
	gone    chan struct{} // closed behind UpstreamEnded
	credits rt.Credits

	attach   sync.Once
	attached chan struct{} // closed once slot and slotGen are set
	slot     msg.Ref
	slotGen  uint64

	mu      sync.Mutex
	opened  bool
	over    bool // no goroutine is started any more
	how     ending
	trouble map[topic]string // what was last logged
}

// ending is why a connection ended.
type ending struct {
	err    error
	denied bool
	within time.Duration // for the goodbye; 0 is no goodbye
}

func newLink(sys *rt.System, cfg Config, owner msg.Ref, gen uint64, pace *pace) *link {
	l := &link{
		sys: sys, cfg: cfg, owner: owner, gen: gen, pace: pace,
		mask: func(text string) string { return text },
		gone: make(chan struct{}), credits: rt.NewCredits(FramesInFlight), attached: make(chan struct{}),
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Attach implements msg.Driver.
func (l *link) Attach(slot msg.Ref, gen uint64) {
	l.attach.Do(func() {
		l.slot, l.slotGen = slot, gen
		close(l.attached)
	})
}

// Stop implements msg.Driver.
func (l *link) Stop(grace time.Duration) {
	l.finish(ending{within: min(l.pace.goodbye, max(grace, time.Millisecond))})
}

// giveUp ends a connection that has not opened.
func (l *link) giveUp() {
	l.mu.Lock()
	opened := l.opened
	l.mu.Unlock()
	if !opened {
		l.finish(ending{})
	}
}

// fail ends the connection for a cause.
func (l *link) fail(err error) { l.finish(ending{err: err}) }

// deny ends the connection because the server refuses the broker's credentials.
func (l *link) deny(err error) { l.finish(ending{err: err, denied: true}) }

// finish ends the connection; the first one counts.
func (l *link) finish(how ending) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.over, l.how = true, how
		l.cancel()
	}
}

func (l *link) ending() ending {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.how
}

// open tells the owner that the connection takes frames; false when it was given up
// before.
func (l *link) open(d msg.Driver) bool {
	l.mu.Lock()
	over := l.over
	l.opened = !over
	l.mu.Unlock()
	if over {
		return false
	}
	l.owner.Send(&msg.UpstreamOpened{Gen: l.gen, Driver: d}) // an owner that has stopped stops the driver
	return true
}

// spawn runs fn on a goroutine of the connection; false when it has ended.
func (l *link) spawn(fn func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return false
	}
	l.work.Go(fn)
	return true
}

// newOutbox queues frames for write, which is called by one goroutine at a time.
func (l *link) newOutbox(write func([]rt.Item) error) *rt.Outbox {
	return rt.NewOutbox(rt.OutboxConfig{
		Limit: OutboxBytes, Run: func(fn func()) { l.spawn(fn) }, Write: write,
		Overrun: func() {
			l.fail(fmt.Errorf("the server takes messages too slowly: more than %d bytes wait for it", OutboxBytes))
		},
	})
}

// deliver posts a message of the server to the slot. It waits for Attach, and for
// the slot to deal with earlier ones; false when the connection has ended.
func (l *link) deliver(f *wire.Frame) bool {
	return l.post(func(gen uint64) any {
		return &msg.ProviderFrame{Gen: gen, Frame: *f, Credit: l.credits}
	})
}

// junk posts what the server sent in place of a message.
func (l *link) junk(data []byte) bool {
	head := wire.Preview(data)
	return l.post(func(gen uint64) any { return &msg.ProviderJunk{Gen: gen, Head: head, Credit: l.credits} })
}

func (l *link) post(message func(gen uint64) any) bool {
	if !l.awaitSlot() || !l.credits.Take(l.ctx.Done()) {
		return false
	}
	if l.ctx.Err() != nil {
		l.credits.Give()
		return false
	}
	l.slot.Send(message(l.slotGen))
	return true
}

// awaitSlot waits for Attach; false when the connection has ended.
func (l *link) awaitSlot() bool {
	select {
	case <-l.attached:
		return true
	case <-l.ctx.Done():
		return false
	}
}

// refuse posts that the server gives no answer to the request id.
func (l *link) refuse(id []byte, err *wire.Error) {
	said := *err
	said.Message = l.mask(err.Message)
	l.post(func(gen uint64) any {
		return &msg.ProviderRefusal{Gen: gen, ID: id, Err: &said, Credit: l.credits}
	})
}

// topic is what a fault is about that ends nothing.
type topic uint8

const (
	aboutStream topic = iota
	aboutMessage
)

// problem logs a fault that ends nothing, once until it changes: a dead server must not
// fill the log (07 row 14).
func (l *link) problem(about topic, text string) {
	if l.changed(about, text) {
		l.log(slog.LevelWarn, l.mask(text))
	}
}

// solved logs the end of a problem, if there was one.
func (l *link) solved(about topic, text string) {
	if l.changed(about, "") {
		l.log(slog.LevelInfo, text)
	}
}

func (l *link) changed(about topic, text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.trouble[about] == text {
		return false
	}
	if l.trouble == nil {
		l.trouble = map[topic]string{}
	}
	l.trouble[about] = text
	return true
}

func (l *link) log(level slog.Level, text string) {
	l.sys.Log().Log(context.Background(), level, fmt.Sprintf(`[broker] upstream "%s": %s`, l.cfg.Name, text))
}

// masked is an error fit for logs and clients.
func (l *link) masked(err error) error { return errors.New(l.mask(err.Error())) }
