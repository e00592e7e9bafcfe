package rt

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
)

// Nursery is the parent of many temporary actors of one kind: a child that
// panics is stopped, its siblings never notice.
type Nursery struct {
	sys    *System
	kind   Kind
	pid    *PID
	cradle cradle        // of the child being born; its props are shared by all
	props  *actor.Props  // children are never restarted
	gone   chan struct{} // closed once the nursery itself has stopped

	empty  chan struct{} // set once the nursery takes no more children
	closed bool
}

// NewNursery starts a nursery. kind describes the children.
func NewNursery(s *System, kind Kind) *Nursery {
	n := &Nursery{sys: s, kind: kind, gone: make(chan struct{})}
	n.props = s.props(&n.kind, &n.cradle)
	n.pid = s.Spawn(Kind{Name: kind.Name + "s", Mailbox: maxBirths, Overflow: refuseBirth, Crashed: failBirth, Resume: true}, n)
	return n
}

// PID is the nursery's own address: stopping it stops all children.
func (n *Nursery) PID() *PID { return n.pid }

// Spawn starts a child.
func (n *Nursery) Spawn(ctx context.Context, a Actor) (*PID, error) {
	reply := make(chan birthReply, 1)
	n.sys.Send(n.pid, &birth{a, reply})
	select {
	case b := <-reply:
		return b.pid, b.err
	case <-n.gone:
		return nil, ErrStopped
	case <-ctx.Done():
		return nil, fmt.Errorf("start %s: %w", n.kind.Name, ctx.Err())
	}
}

type birth struct {
	child Actor
	reply chan<- birthReply
}

type birthReply struct {
	pid *PID
	err error
}

// maxBirths is how many children may wait to be started.
const maxBirths = 1 << 14

// ErrTooMany is returned where more children are being started at once than may
// wait for it.
var ErrTooMany = errors.New("too many connections are being opened at once; try again")

func refuseBirth(message any) {
	if b, ok := message.(*birth); ok {
		b.reply <- birthReply{err: ErrTooMany}
	}
}

var errBirth = errors.New("the broker failed while taking this connection; try again")

// failBirth answers a start that panicked.
func failBirth(message any) {
	if b, ok := message.(*birth); ok {
		b.reply <- birthReply{err: errBirth}
	}
}

// Tell sends a message to every child that lives when it arrives.
func (n *Nursery) Tell(message any) { n.sys.Send(n.pid, &toChildren{message}) }

// Stop takes no more children and waits for the living ones to end by
// themselves. When ctx ends first they are stopped; its error is returned.
func (n *Nursery) Stop(ctx context.Context) error {
	empty := make(chan struct{})
	n.sys.Send(n.pid, &closeNursery{empty})
	var err error
	select {
	case <-empty:
	case <-n.gone:
		return nil
	case <-ctx.Done():
		err = fmt.Errorf("stop every %s: %w", n.kind.Name, ctx.Err())
	}
	return errors.Join(err, n.sys.StopAndWait(context.Background(), n.pid))
}

type toChildren struct{ message any }

type closeNursery struct{ empty chan struct{} }

// ControlMessage implements Control: a burst of births must not lose the stop.
func (*closeNursery) ControlMessage() {}

// Receive implements Actor.
func (n *Nursery) Receive(c Context) {
	switch m := c.Message().(type) {
	case *birth:
		if n.empty != nil {
			m.reply <- birthReply{err: ErrStopped}
			return
		}
		n.cradle = cradle{m.child, newMailbox(&n.kind)}
		m.reply <- birthReply{pid: c.SpawnPrefix(n.props, n.kind.Name+"-")}
		n.cradle = cradle{}
	case *toChildren:
		for _, child := range c.Children() {
			c.Send(child, m.message)
		}
	case *closeNursery:
		n.empty = m.empty
		n.checkEmpty(c)
	case *Terminated:
		n.checkEmpty(c)
	case *Stopped:
		close(n.gone)
	}
}

func (n *Nursery) checkEmpty(c Context) {
	if n.empty != nil && !n.closed && len(c.Children()) == 0 {
		n.closed = true
		close(n.empty)
	}
}
