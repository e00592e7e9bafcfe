// Package wsclient serves raw WebSocket clients at /<slot>: bare JSON-RPC text
// frames both ways, no session header, no initialize required (spec 01 5.7).
package wsclient

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
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

	// Relays says of which slots a provider may ask the client something; nil is
	// of none.
	Relays func(slot string) bool

	NextSession func() uint64
	Trace       func() string
}

// Server holds the raw clients of all slots.
type Server struct {
	sys      *rt.System
	cfg      Config
	sessions *session.Group
	stopping atomic.Bool
	slow     rt.SlowReaders

	mu      sync.Mutex // guards clients, and the setting of stopping
	clients map[*client]struct{}
	reading sync.WaitGroup // clients whose socket is open
}

// New returns a server without clients.
func New(sys *rt.System, registry msg.Ref, cfg Config) *Server {
	return &Server{
		sys: sys, cfg: cfg,
		sessions: session.NewGroup(sys, registry), clients: map[*client]struct{}{},
	}
}

// SlowReaders tells what was dropped, and how many clients were closed, because they
// read too slowly.
func (s *Server) SlowReaders() rt.SlowReport { return s.slow.Report() }

// Serve completes the upgrade of a client. accepted is called in between, for the
// connect line.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, slot string, accepted func()) {
	conn, err := wsconn.Accept(w, r, s.cfg.Limit(slot))
	if err != nil {
		s.sys.Log().Warn(fmt.Sprintf(`[broker] ws upgrade REFUSED path="%s": %v`, r.RequestURI, err))
		return
	}
	accepted()
	c := newClient(s, conn, slot)
	if !s.add(c) {
		s.turnAway(conn, rt.ErrStopped)
		return
	}
	ref, err := s.sessions.Open(r.Context(), session.Config{
		Slot: slot, Number: s.cfg.NextSession(), Kind: msg.WebSocketClient, MaxPending: s.cfg.MaxPending,
		Trace: s.cfg.Trace, Advice: wire.AdviceSocket,
		Answers: s.cfg.Relays != nil && s.cfg.Relays(slot),
	}, c.sessionEnded)
	if err != nil {
		s.remove(c)
		s.turnAway(conn, err)
		return
	}
	c.start(ref)
}

// turnAway closes a client whose session could not be opened.
func (s *Server) turnAway(conn *wsconn.Conn, err error) {
	code, reason := wire.CloseTryLater, err.Error()
	if s.stopping.Load() {
		code, reason = wire.CloseGoingAway, stopReason
	}
	_ = conn.Open()
	s.sys.Go(func() { conn.Close(code, reason) })
}

const stopReason = "The broker is stopping"

// add counts a client among those a stop waits for; false once the broker stops.
func (s *Server) add(c *client) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping.Load() {
		return false
	}
	s.clients[c] = struct{}{}
	s.reading.Add(1)
	return true
}

func (s *Server) remove(c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, c)
	s.reading.Done()
}

// EndSessions takes no more clients and ends the sessions of those there are, each
// as soon as what it was asked is answered, or ctx ends; new requests are refused
// meanwhile. Their sockets are closed with 1001 behind what the sessions said.
func (s *Server) EndSessions(ctx context.Context) error {
	s.mu.Lock()
	s.stopping.Store(true)
	s.mu.Unlock()
	return s.sessions.End(ctx)
}

// Stop waits, once EndSessions has returned, until the sockets of all clients are
// closed, or ctx ends and they are cut.
func (s *Server) Stop(ctx context.Context) {
	closed := make(chan struct{})
	go func() { s.reading.Wait(); close(closed) }()
	select {
	case <-closed:
	case <-ctx.Done():
		s.cut()
		<-closed
	}
}

func (s *Server) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.clients {
		s.sys.Go(c.conn.Terminate)
	}
}
