package streamable

import (
	"mime"
	"net/http"
	"strings"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
	"mcpbroker/egress"
)

// checkVersion refuses a revision the broker does not know. An absent header is
// fine.
func checkVersion(w http.ResponseWriter, r *http.Request) bool {
	version := r.Header["Mcp-Protocol-Version"]
	if len(version) == 0 || mcp.KnownRevision(version[0]) {
		return true
	}
	egress.Fail(w, http.StatusBadRequest, "unsupported_protocol_version", "Unsupported MCP-Protocol-Version: "+version[0])
	return false
}

// acceptable applies the strict mode's Accept rule (F-30).
func (s *Server) acceptable(w http.ResponseWriter, r *http.Request, types ...string) bool {
	if !s.cfg.Strict {
		return true
	}
	accept := strings.Join(r.Header["Accept"], ",")
	for _, want := range types {
		if !accepts(accept, want) {
			egress.Fail(w, http.StatusNotAcceptable, "not_acceptable", "The Accept header must include "+strings.Join(types, " and "))
			return false
		}
	}
	return true
}

func accepts(header, want string) bool {
	kind, _, _ := strings.Cut(want, "/")
	for entry := range strings.SplitSeq(header, ",") {
		name, _, _ := strings.Cut(entry, ";")
		switch name = strings.ToLower(strings.TrimSpace(name)); name {
		case want, kind + "/*", "*/*":
			return true
		}
	}
	return false
}

func (s *Server) post(w http.ResponseWriter, r *http.Request, slot, principal string, e *entry) {
	if !s.typed(w, r) || !s.acceptable(w, r, "application/json", "text/event-stream") {
		return
	}
	body, ok := egress.ReadBody(w, r, s.cfg.Limit(slot))
	if !ok {
		return
	}
	if s.stopping.Load() {
		egress.WriteJSON(w, http.StatusServiceUnavailable, wire.SessionClosed().Response(nil))
		return
	}
	f, err := wire.Scan(body)
	if err != nil {
		failScan(w, err)
		return
	}
	opens := r.Header.Get(sessionHeader) == "" && string(f.Method) == mcp.Initialize
	switch {
	case f.Shape == wire.Array && e == nil:
		failMessage(w, wire.NoBatch())
		return
	case f.Shape != wire.Object && f.Shape != wire.Array:
		failMessage(w, wire.NotAMessage())
		return
	case opens && !f.IsRequest() && !f.IsNotification():
		failMessage(w, wire.NullID()) // before a session is opened for it
		return
	case opens:
		if e, err = s.open(r.Context(), slot, principal); err != nil {
			egress.WriteJSON(w, http.StatusServiceUnavailable, wire.SessionClosed().Response(nil))
			return
		}
		w.Header().Set(sessionHeader, e.id)
	case !s.present(w, r, e):
		return
	}
	s.exchange(w, r, &f, e, opens)
}

// typed applies the strict mode's Content-Type rule (F-30).
func (s *Server) typed(w http.ResponseWriter, r *http.Request) bool {
	if !s.cfg.Strict {
		return true
	}
	if name, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil && name == "application/json" {
		return true
	}
	egress.Fail(w, http.StatusUnsupportedMediaType, "unsupported_media_type", "The Content-Type must be application/json")
	return false
}

func failScan(w http.ResponseWriter, err error) {
	if refusal := wire.Unscannable(err); refusal.Code == wire.CodeInvalidRequest {
		failMessage(w, refusal)
		return
	}
	egress.Fail(w, http.StatusBadRequest, "parse_error", "Body is not valid JSON")
}

func failMessage(w http.ResponseWriter, err *wire.Error) {
	egress.Fail(w, http.StatusBadRequest, "invalid_request", err.Message)
}

// exchange hands the message to its session and writes what comes of it. A session it
// opens ends with a client that leaves before it has heard the session's id.
func (s *Server) exchange(w http.ResponseWriter, r *http.Request, f *wire.Frame, e *entry, opens bool) {
	p := &post{outcome: make(chan outcome, 1)}
	if f.IsRequest() {
		p.id = f.Raw(f.ID)
	}
	if f.Shape == wire.Array {
		e.ref.Send(&msg.ClientBatch{Array: *f, Sink: p})
	} else {
		beside := f.Token.Present() || f.IsRequest() && s.relays(e.slot) // a message may come before the answer
		streams := beside && accepts(strings.Join(r.Header["Accept"], ","), "text/event-stream")
		if streams {
			p.events = make(chan []byte, maxPostEvents)
		}
		e.ref.Send(&msg.ClientFrame{Frame: *f, Sink: p, Streams: streams})
	}
	select {
	case out := <-p.outcome:
		if len(p.events) > 0 { // progress came first, and both were ready
			p.outcome <- out
			s.streamPost(w, r, e, p, <-p.events)
			return
		}
		p.finish(w, out)
	case event := <-p.events:
		s.streamPost(w, r, e, p, event)
	case <-r.Context().Done():
		if opens {
			e.ref.Send(&msg.CloseSession{})
			return
		}
		e.ref.Send(&msg.SinkGone{Sink: p})
	}
}

// What may wait for one POST: newer progress is dropped over the first bound, and
// the room behind it is for the questions of a provider.
const (
	maxPostProgress = 64
	maxPostEvents   = 2 * maxPostProgress
)

// post is the sink of one POST. Exactly one outcome is ever sent.
type post struct {
	id      []byte // of the request, nil for anything else
	outcome chan outcome
	events  chan []byte
}

type outcome struct {
	frame  []byte
	err    *wire.Error
	status int
	closed bool // the session ended
}

// Reply implements msg.Sink.
func (p *post) Reply(frame []byte) { p.settle(outcome{frame: frame, status: http.StatusOK}) }

// Accepted implements msg.Sink.
func (p *post) Accepted() { p.settle(outcome{status: http.StatusAccepted}) }

// Refuse implements msg.Sink.
func (p *post) Refuse(err *wire.Error) { p.settle(outcome{err: err}) }

// Closed implements msg.Sink.
func (p *post) Closed() { p.settle(outcome{closed: true}) }

// Event implements msg.Sink.
func (p *post) Event(frame []byte, class mcp.Class) {
	if class == mcp.Droppable && len(p.events) >= maxPostProgress {
		return
	}
	select {
	case p.events <- frame:
	default:
	}
}

func (p *post) settle(out outcome) {
	select {
	case p.outcome <- out:
	default:
	}
}

func (p *post) finish(w http.ResponseWriter, out outcome) {
	switch {
	case out.err != nil:
		failMessage(w, out.err)
	case out.closed:
		egress.WriteJSON(w, http.StatusServiceUnavailable, wire.SessionClosed().Response(nil))
	case out.frame == nil:
		w.WriteHeader(out.status)
	default:
		egress.WriteJSON(w, out.status, out.frame)
	}
}
