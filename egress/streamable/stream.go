package streamable

import (
	"net/http"
	"strconv"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
	"mcpbroker/egress/eventstream"
)

// listen serves the session's stream until the client leaves, a newer stream
// takes over, the reader is too slow, or the session ends.
func (s *Server) listen(w http.ResponseWriter, r *http.Request, e *entry) {
	w.Header().Set(sessionHeader, e.id)
	st := eventstream.Open(w, eventstream.Config{
		Lead: []byte(": open\n\n"), KeepAlive: s.cfg.KeepAlive, Run: s.sys.Go,
		Dropped: s.slow.Dropping(s.sys.Log(), "a Streamable HTTP stream", e.slot),
		TooSlow: func() { s.tooSlow(e) },
	})
	e.ref.Send(streamOpened(r, st))
	st.Serve(r.Context())
	e.ref.Send(&msg.StreamGone{Stream: st})
	st.Close()
}

func streamOpened(r *http.Request, st *eventstream.Stream) *msg.StreamOpened {
	opened := &msg.StreamOpened{Stream: st}
	if last, err := strconv.ParseUint(r.Header.Get("Last-Event-ID"), 10, 64); err == nil {
		opened.Resume, opened.LastEvent = true, last
	}
	return opened
}

func (s *Server) tooSlow(e *entry) {
	s.slow.Closed()
	s.sys.Log().Warn(`[broker] a Streamable HTTP stream of slot "` + e.slot + `" was closed: its client reads too slowly; it may resume with Last-Event-ID`)
}

// streamPost turns the answer of a POST into an event stream, once a message
// that belongs to the request comes before its answer and the session has no
// stream of its own. The events carry no ids: they cannot be resumed.
func (s *Server) streamPost(w http.ResponseWriter, r *http.Request, e *entry, p *post, first []byte) {
	eventstream.Start(w)
	ctl := http.NewResponseController(w)
	send := func(frame []byte) { _ = eventstream.Write(w, ctl, wire.AppendEvent(nil, 0, frame)) }
	send(first)
	var tick <-chan time.Time
	if s.cfg.KeepAlive > 0 {
		ticker := time.NewTicker(s.cfg.KeepAlive)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case event := <-p.events:
			send(event)
		case <-tick:
			_ = eventstream.Write(w, ctl, eventstream.Comment)
		case <-r.Context().Done():
			e.ref.Send(&msg.SinkGone{Sink: p})
			return
		case out := <-p.outcome:
			for len(p.events) > 0 {
				send(<-p.events)
			}
			if out.closed { // no status can say it any more
				out.frame = wire.SessionClosed().Response(p.id)
			}
			if out.frame != nil {
				send(out.frame)
			}
			return
		}
	}
}
