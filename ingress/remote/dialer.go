package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
)

// Options are what all connections of a dialer share.
type Options struct {
	UserAgent string      // default "mcpbroker"
	TLS       *tls.Config // nil is the system's

	pace *pace // of tests
}

// pace are the waits that tests have others of.
type pace struct {
	reopen   func(n int) time.Duration // before the event stream is opened for the n-th time, from 1
	cancel   time.Duration             // for an answer to a cancelled call
	ping     time.Duration             // between two pings of a WebSocket
	endpoint time.Duration             // for the endpoint event
	drain    time.Duration             // for calls under way, once nothing can be sent
	order    time.Duration             // for a message to be taken, which those behind it wait for
	goodbye  time.Duration             // for taking leave, at most
	renewal  time.Duration             // between two sessions that the slot is told of
}

var usualPace = &pace{reopen: reopenDelay, cancel: 10 * time.Second, ping: 30 * time.Second, endpoint: 30 * time.Second, drain: drainTimeout, order: orderTimeout, goodbye: goodbyeTimeout, renewal: 10 * time.Second}

// Dialer makes connections and knows every living one.
type Dialer struct {
	sys  *rt.System
	opts Options

	mu      sync.Mutex
	live    map[*link]struct{}
	stopped bool
}

// New returns a dialer without connections.
func New(sys *rt.System, opts Options) *Dialer {
	if opts.UserAgent == "" {
		opts.UserAgent = "mcpbroker"
	}
	if opts.pace == nil {
		opts.pace = usualPace
	}
	return &Dialer{sys: sys, opts: opts, live: map[*link]struct{}{}}
}

// driver is a connection while it is being made and after.
type driver interface {
	msg.Driver
	// run connects and serves; it returns once there is nothing left to do but wait.
	run()
	// goodbye takes leave of the server; everything else has ended by then. It has
	// at most this long.
	goodbye(within time.Duration)
}

// Start makes one connection and returns at once. owner is told with gen:
// UpstreamOpened if it comes about, UpstreamDetected if the server turns out to speak
// another transport, and UpstreamEnded once, behind which nothing more comes. cancel
// gives it up until it has opened; UpstreamEnded still follows.
func (d *Dialer) Start(cfg Config, owner msg.Ref, gen uint64) (cancel func()) {
	cfg, target, err := cfg.complete()
	l := newLink(d.sys, cfg, owner, gen, d.opts.pace)
	if stopped := d.keep(l); err == nil {
		err = stopped
	}
	if err != nil {
		l.fail(err)
		d.conclude(l)
		return func() {}
	}
	via := newClient(cfg, target, d.opts)
	l.mask = via.mask
	var made driver
	switch cfg.Transport {
	case WebSocket:
		made = newSocket(l, via)
	case SSE:
		made = newLegacy(l, via)
	default:
		made = newStreamable(l, via)
	}
	go d.supervise(l, made, via)
	return l.giveUp
}

// supervise lives as long as one connection.
func (d *Dialer) supervise(l *link, made driver, via *client) {
	l.spawn(made.run)
	<-l.ctx.Done()
	l.work.Wait()
	made.goodbye(l.ending().within)
	via.close()
	d.conclude(l)
}

// conclude says the last word of a connection. Until its owner has it, Stop waits.
func (d *Dialer) conclude(l *link) {
	how := l.ending()
	if how.err != nil {
		how.err = l.masked(how.err)
	}
	l.owner.Send(&msg.UpstreamEnded{Gen: l.gen, Err: how.err, Denied: how.denied})
	d.mu.Lock()
	delete(d.live, l)
	d.mu.Unlock()
	close(l.gone)
}

var errStopped = errors.New("the broker is stopping")

// keep makes a connection known until it is concluded. The error refuses it.
func (d *Dialer) keep(l *link) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.live[l] = struct{}{}
	if d.stopped {
		return errStopped
	}
	return nil
}

// Stop ends every connection, all at once, and waits until their owners have been told;
// no other is made from then on.
func (d *Dialer) Stop(ctx context.Context) error {
	for {
		d.mu.Lock()
		d.stopped = true
		links := slices.Collect(maps.Keys(d.live))
		d.mu.Unlock()
		if len(links) == 0 {
			return nil
		}
		for _, l := range links {
			l.Stop(d.opts.pace.goodbye)
		}
		for _, l := range links {
			select {
			case <-l.gone:
			case <-ctx.Done():
				return fmt.Errorf("stop the connections to remote servers: %w", ctx.Err())
			}
		}
	}
}
