package socket

import (
	"context"
	"errors"
	"os"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/wire"
	"mcpbroker/ingress/wsconn"
)

// Bounds of one provider socket.
const (
	FramesInFlight = 64       // frames read and not yet dealt with
	OutboxBytes    = 16 << 20 // frames that wait to be written
)

// Actor is the shell around one provider socket.
type Actor struct {
	sys      *rt.System
	conn     *wsconn.Conn
	core     core
	link     *link
	claim    *msg.ClaimSlot // of a dedicated socket
	envelope bool

	outbox *rt.Outbox
	self   *rt.Ref
	timer  rt.Timer
	ended  chan struct{} // closed with the actor

	settled chan struct{} // closed once the claim of a dedicated socket is decided
	decided bool
	gone    bool // the reader has ended
}

// NewDedicated returns the actor of a socket on <provider>/<slot>.
func NewDedicated(sys *rt.System, registry msg.Ref, conn *wsconn.Conn, cfg Config, slot string) *Actor {
	d := newDedicated(cfg, registry, slot)
	a := newActor(sys, conn, d, &d.link, false)
	a.claim = &msg.ClaimSlot{Slot: slot, Conduit: plainConduit{a.outbox}, Kind: msg.Dedicated}
	return a
}

// NewMultiplexed returns the actor of a socket on <providers>.
func NewMultiplexed(sys *rt.System, registry msg.Ref, conn *wsconn.Conn, cfg Config) *Actor {
	var a *Actor
	x := newMultiplexed(cfg, registry, func(slot string) msg.Conduit { return envelopeConduit{slot, a.outbox} })
	a = newActor(sys, conn, x, &x.link, true)
	return a
}

func newActor(sys *rt.System, conn *wsconn.Conn, core core, l *link, envelope bool) *Actor {
	a := &Actor{sys: sys, conn: conn, core: core, link: l, envelope: envelope, ended: make(chan struct{}), settled: make(chan struct{})}
	a.outbox = rt.NewOutbox(rt.OutboxConfig{
		Limit: OutboxBytes, Run: sys.Go, Write: a.write,
		Overrun: func() { a.self.Send(&msg.PeerTooSlow{}) },
		Failed: func(err error) {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				a.self.Send(&msg.PeerTooSlow{Stuck: wsconn.WriteTimeout})
			}
			conn.Terminate()
		},
	})
	return a
}

// settleTimeout bounds WaitSettled; a decision is a few messages.
const settleTimeout = 5 * time.Second

// WaitSettled returns once a dedicated socket holds its slot or has been refused
// it: only then may the peer see its connection open.
func (a *Actor) WaitSettled() {
	timeout := time.NewTimer(settleTimeout)
	defer timeout.Stop()
	select {
	case <-a.settled:
	case <-a.ended:
	case <-timeout.C:
	}
}

func (a *Actor) settle() {
	if !a.decided {
		a.decided = true
		close(a.settled)
	}
}

// Receive implements rt.Actor.
func (a *Actor) Receive(c rt.Context) {
	switch m := c.Message().(type) {
	case *rt.Started:
		a.start(c)
	case *rt.Stopping:
		a.stop(c)
	case *rt.Stopped, *rt.Restarting:
	case *msg.SocketClosed:
		a.gone = true
		a.step(c, m)
		c.Stop(c.Self())
	case *msg.LivenessAsked:
		if !a.conn.Closing() { // else its end is under way and frees the slot, for who is back already
			a.step(c, m)
		}
	case *msg.ClaimGranted, *msg.ClaimRefused:
		a.step(c, m)
		a.settle()
	default:
		a.step(c, m)
	}
}

var scratch rt.Scratch[Effect]

func (a *Actor) step(c rt.Context, message any) {
	a.link.effects = scratch.Get()
	effects := a.core.Step(time.Now(), message)
	a.perform(c, effects)
	a.link.effects = nil
	scratch.Put(effects)
}

func (a *Actor) start(c rt.Context) {
	a.self = a.sys.Ref(c.Self())
	a.link.self = a.self
	if a.claim != nil {
		a.claim.Claimant = a.self
		a.link.registry.Send(a.claim)
	} else {
		a.settle() // claims come with envelopes
	}
	a.link.begin()
	a.link.start()
	a.perform(c, a.link.effects)
	go a.read()
}

// stop gives up what the socket holds. A socket that is stopped while its
// connection is in order has crashed: its peer is told.
func (a *Actor) stop(c rt.Context) {
	a.timer.Stop()
	crashed := !a.gone && !a.link.closing
	a.step(c, released{})
	a.outbox.Close()
	close(a.ended)
	a.sys.Go(func() {
		if crashed {
			a.conn.Close(wire.CloseInternalError, "The broker failed while handling this connection; connect again")
		}
		a.conn.Terminate()
	})
}

func (a *Actor) perform(c rt.Context, effects []Effect) {
	for i := range effects {
		switch e := &effects[i]; {
		case e.To != nil:
			e.To.Send(e.Message)
		case e.Frame != nil:
			a.outbox.Push(rt.Item{Frame: e.Frame})
		case e.Credit != nil:
			e.Credit.Give()
		case e.Log != "":
			a.sys.Log().Log(context.Background(), e.Level, e.Log)
		case e.Close:
			code, reason := e.Code, e.Reason
			a.outbox.Finish(func() { a.conn.Close(code, reason) })
		case e.Terminate:
			a.outbox.Close()
			a.conn.Terminate()
		case e.Ping:
			a.ping(e.Sweep)
		case e.Wake > 0:
			a.timer.Arm(a.sys, c.Self(), e.Wake, &msg.HeartbeatDue{Sweep: e.Sweep})
		}
	}
}

// ping waits for the pong beside the actor; it ends with the pong or the socket.
func (a *Actor) ping(sweep uint64) {
	a.sys.Go(func() {
		if a.conn.Ping() == nil {
			a.self.Send(&msg.Ponged{Sweep: sweep})
		}
	})
}

// read is the one goroutine that reads the socket. It stays shallow: read, scan,
// post.
func (a *Actor) read() {
	credits := rt.NewCredits(FramesInFlight)
	for {
		data, err := a.conn.Read()
		if err != nil {
			a.self.Send(closed(err))
			return
		}
		if !credits.Take(a.ended) {
			return
		}
		a.self.Send(a.scan(data, credits))
	}
}

func closed(err error) *msg.SocketClosed {
	m := &msg.SocketClosed{Fault: wsconn.Fault(err), How: wsconn.Ending(err)}
	var tooBig *wsconn.TooBigError
	if errors.As(err, &tooBig) {
		m.TooBig = tooBig.Limit
	}
	return m
}

func (a *Actor) scan(data []byte, credit msg.Credit) *msg.SocketFrame {
	m := &msg.SocketFrame{Credit: credit}
	if a.envelope {
		env, outer, ok, err := wire.ScanEnvelope(data)
		if ok {
			m.Envelope = &env
			return m
		}
		m.Frame, m.Err = outer, err
	} else {
		m.Frame, m.Err = wire.Scan(data)
	}
	if m.Err != nil || a.envelope {
		m.Head = wire.Preview(data)
	}
	return m
}

func (a *Actor) write(batch []rt.Item) error {
	return a.conn.WriteBatch(func(write func([]byte) error) error {
		for _, item := range batch {
			if err := write(item.Frame); err != nil {
				return err
			}
		}
		return nil
	})
}

type plainConduit struct{ outbox *rt.Outbox }

// Send implements msg.Conduit.
func (p plainConduit) Send(frame []byte, class mcp.Class) bool {
	return p.outbox.Push(rt.Item{Frame: frame, Class: class})
}

type envelopeConduit struct {
	slot   string
	outbox *rt.Outbox
}

// Send implements msg.Conduit.
func (e envelopeConduit) Send(frame []byte, class mcp.Class) bool {
	return e.outbox.Push(rt.Item{Frame: wire.Wrap(e.slot, frame), Class: class})
}
