// Package streamable serves Streamable HTTP: POST, GET and DELETE on
// /<slot>/mcp (spec 01 5.1 to 5.5). Each client session is an actor; the handlers
// of this package are its transport.
package streamable

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
	"mcpbroker/egress"
	"mcpbroker/egress/session"
)

// Config of the endpoint.
type Config struct {
	Origins   egress.OriginRule
	Limit     func(slot string) int // largest body in bytes
	KeepAlive time.Duration         // between comments on a silent stream; 0 is off
	Strict    bool                  // check Content-Type and Accept (F-30)

	MaxPending  int           // requests in flight of one session
	IdleTimeout time.Duration // of a session; 0 is none

	// Authenticate names the caller of a request; nil makes everybody anonymous.
	// An error has been answered.
	Authenticate func(w http.ResponseWriter, r *http.Request, slot string) (principal string, ok bool)

	// Relays says of which slots a provider may ask the client something, beside
	// the call it answers; nil is of none.
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

// entry is how a handler reaches a session.
type entry struct {
	id    string
	slot  string
	owner string // principal that created it (F-33)
	ref   *rt.Ref
}

// New returns an endpoint without sessions.
func New(sys *rt.System, registry msg.Ref, cfg Config) *Server {
	return &Server{sys: sys, cfg: cfg, sessions: session.NewGroup(sys, registry)}
}

// SlowReaders tells what was dropped, and how many streams ended, because clients
// read too slowly.
func (s *Server) SlowReaders() rt.SlowReport { return s.slow.Report() }

// ServeSlot implements egress.SlotHandler. The checks run in the order of spec
// 01 5.1, the origin first.
func (s *Server) ServeSlot(w http.ResponseWriter, r *http.Request, slot string) {
	if refusal := egress.CheckOrigin(s.cfg.Origins, r.Header["Origin"], egress.Endpoint(r)); refusal != "" {
		egress.FailOrigin(w, refusal)
		return
	}
	principal, ok := s.authenticate(w, r, slot)
	if !ok {
		return
	}
	known, ok := s.session(w, r, slot, principal)
	if !ok || !checkVersion(w, r) {
		return
	}
	switch r.Method {
	case http.MethodPost:
		s.post(w, r, slot, principal, known)
	case http.MethodGet:
		if s.present(w, r, known) && s.acceptable(w, r, "text/event-stream") {
			s.listen(w, r, known)
		}
	case http.MethodDelete:
		if s.present(w, r, known) {
			s.delete(w, r, known)
		}
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		egress.Fail(w, http.StatusMethodNotAllowed, "method_not_allowed", "Unsupported method: "+r.Method)
	}
}

func (s *Server) relays(slot string) bool { return s.cfg.Relays != nil && s.cfg.Relays(slot) }

func (s *Server) authenticate(w http.ResponseWriter, r *http.Request, slot string) (string, bool) {
	if s.cfg.Authenticate == nil {
		return "", true
	}
	return s.cfg.Authenticate(w, r, slot)
}

// session finds the session the request names. It is nil for a request that
// names none, and for one the later checks answer with unknown_session.
func (s *Server) session(w http.ResponseWriter, r *http.Request, slot, principal string) (*entry, bool) {
	id := r.Header.Get(sessionHeader)
	if id == "" {
		return nil, true
	}
	found, ok := s.byID.Load(id)
	if !ok {
		return nil, true
	}
	e := found.(*entry)
	if e.slot != slot {
		return nil, true
	}
	if e.owner != principal {
		s.sys.Log().Warn(fmt.Sprintf(`[broker] refused a request on Streamable HTTP session "%s" of slot "%s"`, id, slot))
		egress.FailForeign(w)
		return nil, false
	}
	return e, true
}

// present answers a request that needs a session and has none.
func (s *Server) present(w http.ResponseWriter, r *http.Request, e *entry) bool {
	switch {
	case e != nil:
		return true
	case r.Header.Get(sessionHeader) == "":
		egress.Fail(w, http.StatusBadRequest, "missing_session", "Mcp-Session-Id header is required")
	default:
		egress.Fail(w, http.StatusNotFound, "unknown_session", "Session not found or terminated")
	}
	return false
}

// open starts a session owned by principal.
func (s *Server) open(ctx context.Context, slot, principal string) (*entry, error) {
	e := &entry{id: egress.NewSessionID(), slot: slot, owner: principal}
	ref, err := s.sessions.Open(ctx, session.Config{
		Slot: slot, Number: s.cfg.NextSession(),
		MaxPending: s.cfg.MaxPending, IdleTimeout: s.cfg.IdleTimeout, Trace: s.cfg.Trace, Resumable: true,
		Answers: s.relays(slot),
	}, func() { s.byID.Delete(e.id) })
	if err != nil {
		return nil, fmt.Errorf("open a session on slot %q: %w", slot, err)
	}
	e.ref = ref
	s.byID.Store(e.id, e)
	return e, nil
}

func (s *Server) delete(w http.ResponseWriter, r *http.Request, e *entry) {
	s.byID.Delete(e.id)
	done := make(chan struct{})
	e.ref.Send(&msg.CloseSession{Done: done})
	select {
	case <-done:
	case <-r.Context().Done():
	}
	w.WriteHeader(http.StatusNoContent)
}

// EndSessions takes no more sessions and ends those there are, each as soon as what
// it was asked is answered, or ctx ends: what is in flight then is answered with
// 503, as new requests are meanwhile. Their streams end behind what is queued.
func (s *Server) EndSessions(ctx context.Context) error {
	s.stopping.Store(true)
	return s.sessions.End(ctx)
}

const sessionHeader = "Mcp-Session-Id"
