package remote

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// fallback finds out that a server without a configured transport is one of the older
// HTTP+SSE transport, by the protocol's rule of backwards compatibility: it refuses the
// POST of the first initialize, and a GET of the same URL opens an event stream that
// names an endpoint. What was found out holds for the connection's life. A nil one finds
// out nothing.
type fallback struct {
	from   *streamable
	trying sync.Mutex
	found  atomic.Pointer[legacy]
}

// newFallback sends what the server is sent over the transport that was found out.
func newFallback(from *streamable) *fallback {
	f := &fallback{from: from}
	from.poster.exchange = func(c *call) {
		if older := f.found.Load(); older != nil {
			older.exchange(c)
			return
		}
		from.exchange(c)
	}
	from.poster.note = func(ctx context.Context, frame *wire.Frame) error {
		if older := f.found.Load(); older != nil {
			return older.note(ctx, frame)
		}
		return from.note(ctx, frame)
	}
	return f
}

// fits reports that a first initialize was answered as an older server would.
func (f *fallback) fits(answer *statusError) bool {
	if f == nil {
		return false
	}
	switch answer.code {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		return true
	}
	return false
}

// try sends the initialize that was refused over the older transport, or ends the
// connection with both answers of the server.
func (f *fallback) try(c *call, refused *statusError) {
	f.trying.Lock()
	older := f.found.Load()
	var err error
	if older == nil {
		older, err = f.connect(refused)
	}
	f.trying.Unlock()
	if err != nil {
		hint := cmp.Or(advice(refused), adviceAddress)
		if denied(err) {
			hint = ""
		}
		f.from.giveOver(fmt.Errorf("it did not take initialize: %s; nor does it speak the older HTTP+SSE transport: %w%s", refused, err, hint))
		return
	}
	older.exchange(c)
}

func (f *fallback) connect(refused *statusError) (*legacy, error) {
	s := f.from
	older := &legacy{poster: s.poster}
	in, err := older.connect()
	if err != nil {
		return nil, err
	}
	f.found.Store(older)
	s.log(slog.LevelInfo, fmt.Sprintf("it speaks the older HTTP+SSE transport (POST was answered HTTP %s); "+
		"with transport = %q it is dialed so at once", s.mask(refused.status), SSE))
	s.owner.Send(&msg.UpstreamDetected{Gen: s.gen, Transport: SSE})
	if !s.spawn(func() { older.serve(in) }) {
		in.close()
	}
	return older, nil
}
