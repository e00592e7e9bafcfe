package ingress

import (
	"context"
	"fmt"
	"net/http"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/wire"
	"mcpbroker/ingress/socket"
	"mcpbroker/ingress/wsconn"
)

// Providers accepts provider sockets.
type Providers struct {
	sys      *rt.System
	registry msg.Ref
	sockets  *rt.Nursery
	cfg      socket.Config
	limit    func(slot string) int
}

// NewProviders starts the parent of all provider sockets. limit is the largest
// message of a slot in bytes; the empty name stands for a multiplexed socket.
func NewProviders(sys *rt.System, registry msg.Ref, cfg socket.Config, limit func(slot string) int) *Providers {
	return &Providers{
		sys: sys, registry: registry, cfg: cfg, limit: limit,
		sockets: rt.NewNursery(sys, rt.Kind{Name: "provider-socket", Headroom: 1 << 15, Overflow: rt.Refuse, Crashed: rt.Refuse}),
	}
}

// Serve completes an upgrade that Classify found to be a provider's.
func (p *Providers) Serve(w http.ResponseWriter, r *http.Request, u Upgrade) {
	conn, err := wsconn.Accept(w, r, p.limit(u.Slot))
	if err != nil {
		p.sys.Log().Warn(fmt.Sprintf(`[broker] ws upgrade REFUSED path="%s": %v`, r.RequestURI, err))
		return
	}
	LogConnect(p.sys, r, u)
	a := p.actor(conn, u)
	if _, err := p.sockets.Spawn(r.Context(), a); err != nil {
		_ = conn.Open()
		go conn.Close(wire.CloseTryLater, err.Error())
		return
	}
	a.WaitSettled()
	if err := conn.Open(); err != nil {
		conn.Terminate()
	}
}

func (p *Providers) actor(conn *wsconn.Conn, u Upgrade) *socket.Actor {
	if u.Role == DedicatedProvider {
		return socket.NewDedicated(p.sys, p.registry, conn, p.cfg, u.Slot)
	}
	return socket.NewMultiplexed(p.sys, p.registry, conn, p.cfg)
}

// LogConnect writes the connect line of an accepted upgrade (spec 01 8.1).
func LogConnect(sys *rt.System, r *http.Request, u Upgrade) {
	slot := u.Slot
	if u.Role == MultiplexedProvider {
		slot = "(announced per envelope)"
	}
	line := fmt.Sprintf(`[broker] ws connect path="%s" role=%s slot="%s"`, r.RequestURI, u.Role, slot)
	if u.Hint != "" {
		line += " -- " + u.Hint
	}
	sys.Log().Info(line)
}

// Stop says goodbye to every provider with 1001 (F-14) and waits until their
// sockets are closed, or ctx ends and they are cut.
func (p *Providers) Stop(ctx context.Context) error {
	p.sockets.Tell(&msg.CloseSocket{Code: wire.CloseGoingAway, Reason: "The broker is stopping"})
	return p.sockets.Stop(ctx)
}
