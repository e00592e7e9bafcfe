// Package loopback lets a provider in the broker's own process hold a slot
// without a socket. Each loopback is an actor, like a provider socket, and claims
// its slot the same way; it cannot be taken over.
package loopback

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/wire"
)

// Peer is the provider's end. Its methods do not block and do not call back.
type Peer interface {
	Deliver(frame []byte)
	Closed(code int, reason string)
}

// Port is the broker's end, in the hands of the provider.
type Port struct {
	slot    string
	limit   int
	actor   *rt.Ref
	sys     *rt.System
	ref     msg.Ref
	gen     uint64
	credits rt.Credits
	ended   <-chan struct{}
}

// framesInFlight bounds what a loopback has sent and its slot not yet handled.
const framesInFlight = 64

// Loopbacks is the parent of all loopback providers.
type Loopbacks struct {
	sys      *rt.System
	registry msg.Ref
	limit    func(slot string) int
	nursery  *rt.Nursery
}

// New starts the parent. limit is the largest message of a slot in bytes.
func New(sys *rt.System, registry msg.Ref, limit func(slot string) int) *Loopbacks {
	return &Loopbacks{sys, registry, limit, rt.NewNursery(sys, rt.Kind{Name: "loopback", Overflow: rt.Refuse, Crashed: rt.Refuse})}
}

// Attach claims slot for peer and waits for the answer. The error of a refusal is
// a *wire.Error.
func (l *Loopbacks) Attach(ctx context.Context, slot string, aggregate bool, peer Peer) (*Port, error) {
	if slot == "" {
		return nil, errors.New("attach a loopback provider: the slot name is empty")
	}
	ended := make(chan struct{})
	a := &loopback{
		sys: l.sys, registry: l.registry, peer: peer, slot: slot, aggregate: aggregate,
		settled: make(chan claimed, 1), ended: ended,
	}
	pid, err := l.nursery.Spawn(ctx, a)
	if err != nil {
		return nil, fmt.Errorf("attach a loopback provider to slot %q: %w", slot, err)
	}
	select {
	case c := <-a.settled:
		if c.err != nil {
			return nil, c.err
		}
		return &Port{
			slot: slot, limit: l.limit(slot), actor: l.sys.Ref(pid), sys: l.sys,
			ref: c.ref, gen: c.gen, credits: rt.NewCredits(framesInFlight), ended: ended,
		}, nil
	case <-ctx.Done():
		l.sys.Stop(pid)
		return nil, fmt.Errorf("attach a loopback provider to slot %q: %w", slot, ctx.Err())
	}
}

// Stop tells every loopback that the broker stops.
func (l *Loopbacks) Stop(ctx context.Context) error {
	l.nursery.Tell(&msg.CloseSocket{Code: wire.CloseGoingAway, Reason: "The broker is stopping"})
	return l.nursery.Stop(ctx)
}

// ErrClosed is returned by Send on a loopback that has ended.
var ErrClosed = errors.New("the loopback is closed")

// Send passes one message to the slot. It waits while the slot has
// framesInFlight of them to handle. A message that is no JSON is dropped with
// the slot's warning, as from a socket.
func (p *Port) Send(frame []byte) error {
	if len(frame) > p.limit {
		return fmt.Errorf("send to slot %q: %w", p.slot, wire.TooLarge(p.limit))
	}
	select {
	case <-p.ended:
		return fmt.Errorf("send to slot %q: %w", p.slot, ErrClosed)
	default:
	}
	if !p.credits.Take(p.ended) {
		return fmt.Errorf("send to slot %q: %w", p.slot, ErrClosed)
	}
	f, err := wire.Scan(frame)
	if err != nil {
		p.ref.Send(&msg.ProviderJunk{Gen: p.gen, Head: bytes.Clone(wire.Preview(frame)), Credit: p.credits})
		return nil
	}
	p.ref.Send(&msg.ProviderFrame{Gen: p.gen, Frame: f, Credit: p.credits})
	return nil
}

// Close releases the slot. Closing twice is fine.
func (p *Port) Close() error {
	p.sys.Stop(p.actor.PID())
	return nil
}

type claimed struct {
	ref msg.Ref
	gen uint64
	err error
}

// loopback is the actor that holds the slot.
type loopback struct {
	sys       *rt.System
	registry  msg.Ref
	peer      Peer
	slot      string
	aggregate bool
	settled   chan claimed
	ended     chan struct{} // closed with the actor

	ref msg.Ref
	gen uint64
}

// Receive implements rt.Actor.
func (l *loopback) Receive(c rt.Context) {
	switch m := c.Message().(type) {
	case *rt.Started:
		l.registry.Send(&msg.ClaimSlot{
			Slot: l.slot, Claimant: l.sys.Ref(c.Self()), Conduit: conduit{l.peer},
			Kind: msg.Loopback, Aggregate: l.aggregate,
		})
	case *msg.ClaimGranted:
		l.ref, l.gen = m.Ref, m.Gen
		l.settled <- claimed{ref: m.Ref, gen: m.Gen}
	case *msg.ClaimRefused:
		l.settled <- claimed{err: m.Err}
		c.Stop(c.Self())
	case *msg.LivenessAsked:
		l.ref.Send(&msg.LivenessReport{Gen: m.Gen, Open: true})
	case *msg.EvictHolder:
		l.ref = nil
		l.peer.Closed(wire.CloseInternalError, wire.SlotFailed(l.slot).Message)
		c.Stop(c.Self())
	case *msg.CloseSocket:
		l.peer.Closed(m.Code, m.Reason)
		c.Stop(c.Self())
	case *rt.Stopping:
		close(l.ended)
		if l.ref != nil {
			l.ref.Send(&msg.ProviderGone{Gen: l.gen})
		}
	}
}

type conduit struct{ peer Peer }

// Send implements msg.Conduit.
func (c conduit) Send(frame []byte, _ mcp.Class) bool {
	c.peer.Deliver(frame)
	return true
}
