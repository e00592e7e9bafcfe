package session

import (
	"context"
	"fmt"
	"sync/atomic"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
)

// Group is the sessions of one transport. One that crashes ends alone.
type Group struct {
	sys      *rt.System
	registry msg.Ref
	nursery  *rt.Nursery
	ending   atomic.Bool
}

// NewGroup returns a group without sessions, which will join their slots through
// the registry.
func NewGroup(sys *rt.System, registry msg.Ref) *Group {
	return &Group{sys: sys, registry: registry, nursery: rt.NewNursery(sys, kind(sys))}
}

// kind is how sessions are spawned. A session that is too busy to take the
// notifications of its provider loses some; the log says so, less and less often.
func kind(sys *rt.System) rt.Kind {
	var lost atomic.Uint64
	return rt.Kind{Name: "client-session", Crashed: rt.Refuse, Overflow: func(message any) {
		if _, ok := message.(*msg.Notify); ok {
			if n := lost.Add(1); n&(n-1) == 0 {
				sys.Log().Warn(fmt.Sprintf("[broker] the queue of a client session was full: %d notifications dropped so far", n))
			}
		}
		rt.Refuse(message)
	}}
}

// Open starts a session. gone is called, once, when it has ended and what was in
// flight is answered; not where Open fails. The error is that of the nursery, fit
// to be shown to the client.
func (g *Group) Open(ctx context.Context, cfg Config, gone func()) (*rt.Ref, error) {
	pid, err := g.nursery.Spawn(ctx, NewActor(g.sys, g.registry, cfg, gone))
	if err != nil {
		return nil, err
	}
	ref := g.sys.Ref(pid)
	if g.ending.Load() { // it may have been born behind the word to all
		ref.Send(&Drain{})
	}
	return ref, nil
}

// End takes no more sessions and ends the living ones, each as soon as its client
// has the answers it waits for. Calls without an answer when ctx ends are ended
// with their sessions. It returns once all have ended.
func (g *Group) End(ctx context.Context) error {
	g.ending.Store(true)
	g.nursery.Tell(&Drain{})
	defer context.AfterFunc(ctx, func() { g.nursery.Tell(&msg.CloseSession{}) })()
	return g.nursery.Stop(context.WithoutCancel(ctx))
}
