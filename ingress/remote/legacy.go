package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"mcpbroker/actors/wire"
)

// legacy is the older HTTP+SSE transport: all the server says comes on one stream, which
// names the place messages are posted to. With the stream the session ends.
type legacy struct {
	*poster
	endpoint atomic.Pointer[url.URL] // set before the connection opens
}

func newLegacy(l *link, c *client) *legacy {
	s := &legacy{poster: newPoster(l, c)}
	s.poster.exchange = s.exchange
	s.poster.note = s.note
	return s
}

func (s *legacy) goodbye(time.Duration) {}

func (s *legacy) run() {
	late := time.AfterFunc(s.pace.endpoint, func() {
		if s.endpoint.Load() == nil {
			s.fail(fmt.Errorf("it named no endpoint within %s", s.pace.endpoint))
		}
	})
	defer late.Stop()
	resp, err := s.http.do(s.ctx, http.MethodGet, s.http.target.String(), nil, "Accept", "text/event-stream")
	switch {
	case s.ctx.Err() != nil:
		if err == nil {
			_ = resp.Body.Close()
		}
		return
	case err != nil:
		s.unreachable(err)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	if !isStream(resp) {
		s.refusedStream(resp)
		return
	}
	r := wire.NewEventReader(resp.Body, s.cfg.Limit)
	if err := s.begin(resp, r); err != nil {
		s.fail(err)
		return
	}
	s.fail(fmt.Errorf("its event stream ended: %s", sentence(s.events(r, func(string) {}))))
}

func (s *legacy) refusedStream(resp *http.Response) {
	refusal := readRefusal(resp)
	switch {
	case refusal.denied():
		s.deny(refusal)
	case refusal.code == http.StatusOK:
		s.fail(errors.New("the server answered GET with something else than an event stream; is it a server of transport streamable-http?"))
	default:
		s.fail(refusal)
	}
}

// begin waits for the endpoint event.
func (s *legacy) begin(resp *http.Response, r *wire.EventReader) error {
	for {
		ev, err := r.Next()
		if err != nil {
			return fmt.Errorf("its event stream ended before it named an endpoint: %s", sentence(err))
		}
		if ev.Name != "endpoint" {
			continue
		}
		to, err := resp.Request.URL.Parse(string(ev.Data))
		if err != nil {
			return errors.New("the endpoint it names is no url")
		}
		if !sameOrigin(to, s.http.target) {
			return fmt.Errorf("the endpoint it names is of another origin, %s://%s", to.Scheme, to.Host)
		}
		s.endpoint.Store(to)
		s.open(s)
		return nil
	}
}

// exchange implements poster.exchange: the answer comes on the stream.
func (s *legacy) exchange(c *call) {
	err := s.post(traced(c), &c.frame)
	if err == nil {
		s.calls.settle(c.id())
	}
	s.settle(c, err)
}

// note implements poster.note.
func (s *legacy) note(ctx context.Context, f *wire.Frame) error { return s.post(ctx, f) }

func (s *legacy) post(ctx context.Context, f *wire.Frame) error {
	resp, err := s.http.do(ctx, http.MethodPost, s.endpoint.Load().String(), f.Bytes, "Content-Type", "application/json")
	if err != nil {
		return err
	}
	defer discard(resp)
	if resp.StatusCode >= 300 {
		return readRefusal(resp)
	}
	return nil
}
