// Package sse serves the legacy pair of GET /<slot>/sse and POST
// /<slot>/messages?sessionId= (spec 01 5.6): the stream is the session, requests
// are posted beside it, and everything comes back as an event.
package sse

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
	"mcpbroker/egress"
	"mcpbroker/egress/eventstream"
	"mcpbroker/egress/session"
)

// FramesInFlight bounds the messages of one session that its actor has not taken
// yet; the next POST waits.
const FramesInFlight = 64

// Config of the endpoints.
type Config struct {
	Origins    egress.OriginRule
	Limit      func(slot string) int // largest body in bytes
	Messages   string                // suffix of the POST endpoint, without slash
	KeepAlive  time.Duration         // between comments on a silent stream; 0 is off
	MaxPending int                   // requests in flight of one session

	// Authenticate names the caller of a request; nil makes everybody anonymous.
	// An error has been answered.
	Authenticate func(w http.ResponseWriter, r *http.Request, slot string) (principal string, ok bool)

	// Relays says of which slots a provider may ask the client something; nil is
	// of none.
	Relays func(slot string) bool

	NextSession func() uint64 // process-wide session numbers
	Trace       func() string // fresh traceparents
}

// Server holds the sessions of all slots.
type Server struct {
	sys      *rt.System
	cfg      Config
	sessions *session.Group
	byID     sync.Map // session id to *entry
	slow     rt.SlowReaders
	stopping atomic.Bool
}

// entry is one open session.
type entry struct {
	id      string
	slot    string
	owner   string // principal that opened the stream (F-33)
	ref     *rt.Ref
	stream  *eventstream.Stream
	credits rt.Credits
	ended   context.Context // done with the session
}

// New returns endpoints without sessions.
func New(sys *rt.System, registry msg.Ref, cfg Config) *Server {
	return &Server{sys: sys, cfg: cfg, sessions: session.NewGroup(sys, registry)}
}

// SlowReaders tells what was dropped, and how many streams ended, because clients
// read too slowly.
func (s *Server) SlowReaders() rt.SlowReport { return s.slow.Report() }

// ServeStream serves GET /<slot>/sse: it opens a session, which ends with the
// stream.
func (s *Server) ServeStream(w http.ResponseWriter, r *http.Request, slot string) {
	principal, ok := s.admit(w, r, slot)
	if !ok {
		return
	}
	e := &entry{id: egress.NewSessionID(), slot: slot, owner: principal, credits: rt.NewCredits(FramesInFlight)}
	if err := s.open(r, e); err != nil {
		closed(w)
		return
	}
	e.stream = eventstream.Open(w, eventstream.Config{
		Lead: s.endpoint(e), KeepAlive: s.cfg.KeepAlive, Run: s.sys.Go,
		Dropped: s.slow.Dropping(s.sys.Log(), "an SSE stream", slot),
		TooSlow: func() { s.tooSlow(slot) },
	})
	defer context.AfterFunc(e.ended, e.stream.End)()

	s.byID.Store(e.id, e)
	defer s.byID.Delete(e.id)
	e.ref.Send(&msg.StreamOpened{Stream: e.stream})
	e.stream.Serve(r.Context())
	e.ref.Send(&msg.CloseSession{})
	e.stream.Close()
}

func (s *Server) open(r *http.Request, e *entry) error {
	ended, end := context.WithCancel(context.Background())
	e.ended = ended
	var err error
	e.ref, err = s.sessions.Open(r.Context(), session.Config{
		Slot: e.slot, Number: s.cfg.NextSession(), MaxPending: s.cfg.MaxPending, Trace: s.cfg.Trace,
		Answers: s.cfg.Relays != nil && s.cfg.Relays(e.slot),
	}, end)
	if err != nil {
		end()
		return fmt.Errorf("open a session on slot %q: %w", e.slot, err)
	}
	return nil
}

// endpoint is the first event: where to post.
func (s *Server) endpoint(e *entry) []byte {
	return fmt.Appendf(nil, "event: endpoint\ndata: /%s/%s?sessionId=%s\n\n", wire.EncodeSlot(e.slot), s.cfg.Messages, e.id)
}

func (s *Server) tooSlow(slot string) {
	s.slow.Closed()
	s.sys.Log().Warn(fmt.Sprintf(`[broker] an SSE stream of slot "%s" was closed: its client reads too slowly`, slot))
}

// ServePost serves POST /<slot>/messages. Once the session is known the answer is
// 202 whatever the body says; what comes of it is an event.
func (s *Server) ServePost(w http.ResponseWriter, r *http.Request, slot string) {
	principal, ok := s.admit(w, r, slot)
	if !ok {
		return
	}
	e := s.find(r, slot)
	if e == nil {
		s.gone(w)
		return
	}
	if e.owner != principal {
		s.sys.Log().Warn(fmt.Sprintf(`[broker] refused a request on SSE session "%s" of slot "%s"`, e.id, slot))
		egress.FailForeign(w)
		return
	}
	body, ok := egress.ReadBody(w, r, s.cfg.Limit(slot))
	if !ok {
		return
	}
	if e.ended.Err() != nil || !e.credits.Take(e.ended.Done()) {
		s.gone(w)
		return
	}
	e.take(body)
	w.WriteHeader(http.StatusAccepted)
}

func (s *Server) find(r *http.Request, slot string) *entry {
	found, ok := s.byID.Load(r.URL.Query().Get("sessionId"))
	if !ok {
		return nil
	}
	if e := found.(*entry); e.slot == slot && e.ended.Err() == nil {
		return e
	}
	return nil
}

// gone answers a post on a session that is not there.
func (s *Server) gone(w http.ResponseWriter) {
	if s.stopping.Load() {
		closed(w)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write([]byte("Unknown or expired session"))
}

func closed(w http.ResponseWriter) {
	egress.WriteJSON(w, http.StatusServiceUnavailable, wire.SessionClosed().Response(nil))
}

// admit checks the origin, then the caller. An empty Origin header counts as none
// on these endpoints (spec 01 5.5).
func (s *Server) admit(w http.ResponseWriter, r *http.Request, slot string) (principal string, ok bool) {
	origin := r.Header["Origin"]
	if len(origin) == 1 && origin[0] == "" {
		origin = nil
	}
	endpoint := egress.Endpoint(r)
	if refusal := egress.CheckOrigin(s.cfg.Origins, origin, endpoint); refusal != "" {
		s.sys.Log().Warn(fmt.Sprintf(`[broker] refused SSE request on "%s": %s`, endpoint, refusal))
		egress.FailOrigin(w, refusal)
		return "", false
	}
	if s.cfg.Authenticate == nil {
		return "", true
	}
	return s.cfg.Authenticate(w, r, slot)
}

// EndSessions takes no more sessions and ends those there are, each as soon as
// what it was asked is answered, or ctx ends; new requests are refused meanwhile.
// Their streams end behind what is queued.
func (s *Server) EndSessions(ctx context.Context) error {
	s.stopping.Store(true)
	return s.sessions.End(ctx)
}
