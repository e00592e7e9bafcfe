package streamable

import (
	"net/http"
	"strconv"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/wire"
)

// Bounds of one event stream.
const (
	StreamBytes  = 1 << 20 // events that wait to be written
	writeTimeout = 10 * time.Second
)

func startStream(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("Connection", "keep-alive")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
}

// stream is the GET stream of a session. Its outbox writes; the handler only
// waits.
type stream struct {
	out   *rt.Outbox
	ended chan struct{}
}

// Event implements msg.Stream.
func (s *stream) Event(id uint64, frame []byte, class mcp.Class, key string) bool {
	return s.out.Push(rt.Item{Frame: frame, Class: class, Key: key, ID: id})
}

// End implements msg.Stream.
func (s *stream) End() { s.out.Finish(func() { s.end() }) }

func (s *stream) end() {
	select {
	case s.ended <- struct{}{}:
	default:
	}
}

// comment keeps proxies from closing a silent stream.
var comment = []byte(": keep-alive\n\n")

// listen serves the session's stream until the client leaves, a newer stream
// takes over, the reader is too slow, or the session ends.
func (s *Server) listen(w http.ResponseWriter, r *http.Request, e *entry) {
	w.Header().Set(sessionHeader, e.id)
	startStream(w)
	ctl := http.NewResponseController(w)
	_, _ = w.Write([]byte(": open\n\n"))
	_ = ctl.Flush()

	st := &stream{ended: make(chan struct{}, 1)}
	st.out = rt.NewOutbox(rt.OutboxConfig{
		Limit: StreamBytes, Run: s.sys.Go,
		Write:   func(batch []rt.Item) error { return writeEvents(w, ctl, batch) },
		Failed:  func(error) { st.end() },
		Overrun: func() { s.tooSlow(e); st.end() },
	})
	e.ref.Send(streamOpened(r, st))
	s.wait(r, st)
	e.ref.Send(&msg.StreamGone{Stream: st})

	// The writer may be in the middle of a batch; w must not be used once this
	// handler has returned.
	written := make(chan struct{})
	st.out.Close()
	st.out.Finish(func() { close(written) })
	<-written
}

func streamOpened(r *http.Request, st *stream) *msg.StreamOpened {
	opened := &msg.StreamOpened{Stream: st}
	if last, err := strconv.ParseUint(r.Header.Get("Last-Event-ID"), 10, 64); err == nil {
		opened.Resume, opened.LastEvent = true, last
	}
	return opened
}

func (s *Server) wait(r *http.Request, st *stream) {
	var tick <-chan time.Time
	if s.cfg.KeepAlive > 0 {
		ticker := time.NewTicker(s.cfg.KeepAlive)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case <-tick:
			st.out.Push(rt.Item{Frame: comment, Class: mcp.Droppable})
		case <-st.ended:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (s *Server) tooSlow(e *entry) {
	s.sys.Log().Warn(`[broker] a Streamable HTTP stream of slot "` + e.slot + `" was closed: its client reads too slowly; it may resume with Last-Event-ID`)
}

func writeEvents(w http.ResponseWriter, ctl *http.ResponseController, batch []rt.Item) error {
	var b []byte
	for _, item := range batch {
		if item.ID == 0 {
			b = append(b, item.Frame...)
			continue
		}
		b = wire.AppendEvent(b, item.ID, item.Frame)
	}
	_ = ctl.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := w.Write(b); err != nil {
		return err
	}
	return ctl.Flush()
}

// streamPost turns the answer of a POST into an event stream, once a message
// that belongs to the request comes before its answer and the session has no
// stream of its own. The events carry no ids: they cannot be resumed.
func (s *Server) streamPost(w http.ResponseWriter, r *http.Request, e *entry, p *post, first []byte) {
	startStream(w)
	ctl := http.NewResponseController(w)
	send := func(frame []byte) {
		_ = ctl.SetWriteDeadline(time.Now().Add(writeTimeout))
		_, _ = w.Write(wire.AppendEvent(nil, 0, frame))
		_ = ctl.Flush()
	}
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
			_, _ = w.Write(comment)
			_ = ctl.Flush()
		case <-r.Context().Done():
			e.ref.Send(&msg.SinkGone{Sink: p})
			return
		case out := <-p.outcome:
			for len(p.events) > 0 {
				send(<-p.events)
			}
			if out.frame != nil {
				send(out.frame)
			}
			return
		}
	}
}
