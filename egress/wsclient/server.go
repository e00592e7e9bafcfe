// Package wsclient serves raw WebSocket clients at /<slot>: bare JSON-RPC text
// frames both ways, no session header, no initialize required (spec 01 5.7).
package wsclient

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/wire"
	"mcpbroker/egress/session"
	"mcpbroker/ingress/wsconn"
)

// Bounds of one client socket.
const (
	FramesInFlight = 64      // frames read and not yet taken by the session
	OutboxBytes    = 1 << 20 // frames that wait to be written
)

// Config of raw WebSocket clients.
type Config struct {
	Limit      func(slot string) int // largest message in bytes
	KeepAlive  time.Duration         // between pings; 0 is off
	MaxPending int                   // requests in flight of one client

	NextSession func() uint64
	Trace       func() string
}

// Server holds the raw clients of all slots.
type Server struct {
	sys      *rt.System
	registry msg.Ref
	cfg      Config
	sessions *rt.Nursery
}

// New returns a server without clients.
func New(sys *rt.System, registry msg.Ref, cfg Config) *Server {
	return &Server{sys, registry, cfg, rt.NewNursery(sys, session.Kind())}
}

// Serve completes the upgrade of a client. accepted is called in between, for the
// connect line.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, slot string, accepted func()) {
	conn, err := wsconn.Accept(w, r, s.cfg.Limit(slot))
	if err != nil {
		s.sys.Log().Warn(fmt.Sprintf(`[broker] ws upgrade REFUSED slot="%s": %v`, slot, err))
		return
	}
	accepted()
	c := newClient(s.sys, conn, slot, s.cfg.KeepAlive)
	actor := session.NewActor(s.sys, s.registry, session.Config{
		Slot: slot, Number: s.cfg.NextSession(), MaxPending: s.cfg.MaxPending,
		Trace: s.cfg.Trace, Advice: wire.AdviceSocket,
	}, c.sessionEnded)
	pid, err := s.sessions.Spawn(r.Context(), actor)
	if err != nil {
		_ = conn.Open()
		go conn.Close(wire.CloseTryLater, err.Error())
		return
	}
	c.start(s.sys.Ref(pid))
}

// Stop says goodbye to every client with 1001 and waits until they are gone, or
// ctx ends and they are cut.
func (s *Server) Stop(ctx context.Context) error {
	s.sessions.Tell(&msg.CloseSession{})
	return s.sessions.Stop(ctx)
}
