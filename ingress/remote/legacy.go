package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	in, err := s.connect()
	if err != nil {
		s.giveOver(advised(err))
		return
	}
	s.open(s)
	s.serve(in)
}

// stream is an event stream that has named its endpoint.
type stream struct {
	events *wire.EventReader
	body   io.Closer
	end    context.CancelCauseFunc
}

func (in *stream) close() {
	in.end(nil)
	_ = in.body.Close()
}

// connect opens the stream and waits for its endpoint. It lives as long as the
// connection, or until it is closed.
func (s *legacy) connect() (*stream, error) {
	ctx, end := context.WithCancelCause(s.ctx)
	late := time.AfterFunc(s.pace.endpoint, func() {
		end(fmt.Errorf("it named no endpoint within %s", s.pace.endpoint))
	})
	resp, err := s.http.do(ctx, http.MethodGet, s.http.target.String(), nil, "Accept", "text/event-stream")
	if err != nil {
		err = unreachable(err)
		resp = &http.Response{Body: http.NoBody}
	}
	in := &stream{events: wire.NewEventReader(resp.Body, s.cfg.Limit), body: resp.Body, end: end}
	switch {
	case err != nil:
	case isStream(resp):
		err = s.begin(resp, in.events)
	default:
		err = noStream(resp)
	}
	if !late.Stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

// noStream says what came in the place of an event stream.
func noStream(resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return &otherContent{kind: contentType(resp)}
	}
	return readRefusal(resp)
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
		return nil
	}
}

// serve passes on what comes on the stream. With it the connection ends.
func (s *legacy) serve(in *stream) {
	defer in.close()
	s.fail(fmt.Errorf("its event stream ended: %s", sentence(s.events(in.events, func(string) {}))))
}

// exchange implements poster.exchange: the answer comes on the stream, and until then the
// call is open.
func (s *legacy) exchange(c *call) { s.settle(c, s.post(traced(c), &c.frame)) }

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
