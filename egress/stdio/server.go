// Package stdio serves the process that started the broker, a host, over the
// broker's standard input and output: newline-delimited JSON-RPC both ways, no
// session header, no initialize required (spec 01 5.7).
package stdio

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/wire"
	"mcpbroker/egress/session"
)

// Bounds of one bridge.
const (
	FramesInFlight = 64              // messages read and not yet taken by the session
	OutboxBytes    = 32 << 20        // messages that wait to be written
	Grace          = 5 * time.Second // for answers owed to a host that has ended
	FlushTimeout   = time.Second     // for a host that does not read its last answers
)

// Config of the bridges.
type Config struct {
	Limit      func(slot string) int  // largest message in bytes
	MaxPending int                    // requests in flight of one host
	Relays     func(slot string) bool // the slot relays requests of its provider; nil is never

	NextSession func() uint64
	Trace       func() string
}

// Server holds the bridges of a broker; there is mostly one.
type Server struct {
	sys      *rt.System
	cfg      Config
	sessions *session.Group

	slow     rt.SlowReaders
	stopping atomic.Bool

	mu      sync.Mutex // guards bridges, and the setting of stopping
	bridges map[*bridge]struct{}
}

// New returns a server without bridges.
func New(sys *rt.System, registry msg.Ref, cfg Config) *Server {
	return &Server{
		sys: sys, cfg: cfg,
		sessions: session.NewGroup(sys, registry), bridges: map[*bridge]struct{}{},
	}
}

// Serve connects a host to a slot. ctx bounds the start only. The channel is
// closed once the bridge has ended: in has ended and the answers owed are written,
// or out has failed, or the broker stops. A Read or Write that blocks then is left
// behind; it ends with in and out, which the caller owns.
func (s *Server) Serve(ctx context.Context, slot string, in io.Reader, out io.Writer) (<-chan struct{}, error) {
	limit := s.cfg.Limit(slot)
	b := newBridge(s, slot, limit, wire.NewLineReader(in, limit), out)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping.Load() {
		return nil, rt.ErrStopped
	}
	if _, err := b.session(ctx); err != nil {
		return nil, err
	}
	s.bridges[b] = struct{}{}
	go b.read()
	return b.done, nil
}

// open starts a session. A host is never anything but one client of its slot.
func (s *Server) open(ctx context.Context, slot string, gone func()) (*rt.Ref, error) {
	ref, err := s.sessions.Open(ctx, session.Config{
		Slot: slot, Number: s.cfg.NextSession(), Kind: msg.StdioClient, MaxPending: s.cfg.MaxPending, Trace: s.cfg.Trace,
		Advice: wire.AdviceStdio, Answers: s.cfg.Relays != nil && s.cfg.Relays(slot),
	}, gone)
	if err != nil {
		return nil, fmt.Errorf("open a session on slot %q: %w", slot, err)
	}
	return ref, nil
}

// SlowReaders tells what was dropped, and how many hosts were closed, because they
// read too slowly.
func (s *Server) SlowReaders() rt.SlowReport { return s.slow.Report() }

func (s *Server) forget(b *bridge) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.bridges, b)
}

// EndSessions takes no more hosts and ends the sessions of those there are, each as
// soon as what it was asked is answered, or ctx ends: what is in flight then is
// answered with an error. New requests are refused meanwhile. A bridge ends with its
// session then.
func (s *Server) EndSessions(ctx context.Context) error {
	s.mu.Lock()
	s.stopping.Store(true)
	s.mu.Unlock()
	return s.sessions.End(ctx)
}

// Stop returns, once EndSessions has, when every bridge has ended: within
// FlushTimeout.
func (s *Server) Stop() {
	s.mu.Lock()
	var living []*bridge
	for b := range s.bridges {
		living = append(living, b)
	}
	s.mu.Unlock()
	for _, b := range living {
		b.close()
	}
	for _, b := range living {
		<-b.done
	}
}
