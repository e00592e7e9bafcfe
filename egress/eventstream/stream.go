// Package eventstream writes server-sent events: the stream of a client session,
// whichever HTTP transport opened it.
package eventstream

import (
	"context"
	"errors"
	"math"
	"net/http"
	"os"
	"sync"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/wire"
)

// Bounds of one event stream.
const (
	Bytes        = 1 << 20 // events that wait to be written
	WriteTimeout = 10 * time.Second
)

// Config of a stream.
type Config struct {
	Lead      []byte        // the first bytes, before any event
	KeepAlive time.Duration // between comments on a silent stream; 0 is off
	Run       func(func())  // starts the writer, see rt.System.Go
	Dropped   func(n int)   // so many messages were dropped, for the client reads too slowly; may be nil
	TooSlow   func()        // the client reads too slowly and the stream ends; may be nil
}

// Stream is an open event stream. Its outbox writes; the handler that opened it
// only waits in Serve. It implements msg.Stream.
type Stream struct {
	out       *rt.Outbox
	keepAlive time.Duration
	ended     chan struct{}
	slow      sync.Once // told

	mu     sync.Mutex // guards closed
	closed bool       // the handler has left: an outbox knows one end only
}

// Start answers a request with the head of an event stream. Proxies must neither
// buffer nor compress it.
func Start(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("Connection", "keep-alive")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
}

// Open answers a request with a stream. Nothing else may use w until Close has
// returned; Serve lets the lead go out.
func Open(w http.ResponseWriter, cfg Config) *Stream {
	Start(w)
	s := &Stream{keepAlive: cfg.KeepAlive, ended: make(chan struct{}, 1)}
	out := &writer{w: w, ctl: http.NewResponseController(w), lead: cfg.Lead}
	s.out = rt.NewOutbox(rt.OutboxConfig{
		Limit: Bytes, Run: cfg.Run,
		Write: out.write,
		Failed: func(err error) {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				s.tooSlow(cfg.TooSlow)
				return
			}
			s.end()
		},
		Dropped: cfg.Dropped,
		Overrun: func() { s.tooSlow(cfg.TooSlow) },
	})
	return s
}

// tooSlow ends the stream of a client that leaves too much unread, or takes nothing
// for as long as a write may take.
func (s *Stream) tooSlow(tell func()) {
	if tell != nil {
		s.slow.Do(tell)
	}
	s.end()
}

// Event implements msg.Stream. id 0 leaves the id field out.
func (s *Stream) Event(id uint64, frame []byte, class mcp.Class, key string) bool {
	return s.out.Push(rt.Item{Frame: frame, Class: class, Key: key, ID: id})
}

// End implements msg.Stream.
func (s *Stream) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.out.Finish(s.end)
	}
}

func (s *Stream) end() {
	select {
	case s.ended <- struct{}{}:
	default:
	}
}

// verbatim is the id of an item that is no event; it is written as it is.
const verbatim = math.MaxUint64

// Comment keeps proxies from closing a silent stream (F-43). It must not be
// changed.
var Comment = []byte(": keep-alive\n\n")

// Serve keeps the stream until the client leaves (ctx), its reader is too slow,
// or End was called and what waited is written.
func (s *Stream) Serve(ctx context.Context) {
	s.out.Push(rt.Item{Class: mcp.Droppable, ID: verbatim})
	var tick <-chan time.Time
	if s.keepAlive > 0 {
		ticker := time.NewTicker(s.keepAlive)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case <-tick:
			if !s.out.Waiting() { // else it is not silent
				s.out.Push(rt.Item{Frame: Comment, Class: mcp.Droppable, ID: verbatim})
			}
		case <-s.ended:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Close drops what waits and returns once the writer has left the response.
func (s *Stream) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	written := make(chan struct{})
	s.out.Close()
	s.out.Finish(func() { close(written) })
	<-written
}

// writer belongs to the outbox: one goroutine at a time.
type writer struct {
	w    http.ResponseWriter
	ctl  *http.ResponseController
	lead []byte
}

func (w *writer) write(batch []rt.Item) error {
	b := w.lead
	w.lead = nil
	for _, item := range batch {
		if item.ID == verbatim {
			b = append(b, item.Frame...)
			continue
		}
		b = wire.AppendEvent(b, item.ID, item.Frame)
	}
	return Write(w.w, w.ctl, b)
}

// Write writes and flushes, within WriteTimeout.
func Write(w http.ResponseWriter, ctl *http.ResponseController, b []byte) error {
	_ = ctl.SetWriteDeadline(time.Now().Add(WriteTimeout))
	if _, err := w.Write(b); err != nil {
		return err
	}
	return ctl.Flush()
}
