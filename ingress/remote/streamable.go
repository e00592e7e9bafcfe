package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/wire"
)

const (
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"
	eventHeader   = "Last-Event-ID"
)

// streamable is a session over Streamable HTTP. It takes frames at once: the first
// exchange tells whether there is a server.
type streamable struct {
	*poster
	url   string
	older *fallback // nil where the configuration names the transport

	renewing chan struct{} // who has its one place may open a session
	failed   failure       // the last one; belongs to who has that place

	mu          sync.Mutex
	session     session
	initialize  *wire.Frame // the last one that opened a session
	initialized *wire.Frame // likewise; nil until the slot has sent it
	listening   bool
	endStream   context.CancelFunc // of the event stream; nil until there was one
	told        time.Time          // when the slot last heard of another session
	tenure      tenure
	setup       setup
	wake        chan struct{} // there is another session
}

func newStreamable(l *link, c *client) *streamable {
	s := &streamable{
		poster: newPoster(l, c), url: c.target.String(),
		renewing: make(chan struct{}, 1), wake: make(chan struct{}, 1),
	}
	s.poster.exchange = s.exchange
	s.poster.note = s.note
	if l.cfg.guessed {
		s.older = newFallback(s)
	}
	return s
}

func (s *streamable) run() { s.open(s) }

// goodbye ends the session at the server.
func (s *streamable) goodbye(within time.Duration) {
	if within > 0 {
		s.forget(context.Background(), s.current(), within)
	}
}

// forget tells the server that a session is over.
func (s *streamable) forget(ctx context.Context, old session, within time.Duration) {
	if old.id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if resp, err := s.do(ctx, http.MethodDelete, nil, old); err == nil {
		discard(resp)
	}
}

func (s *streamable) do(ctx context.Context, method string, body []byte, in session, header ...string) (*http.Response, error) {
	if in.id != "" {
		header = append(header, sessionHeader, in.id)
	}
	if in.version != "" {
		header = append(header, versionHeader, in.version)
	}
	return s.http.do(ctx, method, s.url, body, header...)
}

func (s *streamable) post(ctx context.Context, body []byte, in session) (*http.Response, error) {
	return s.do(ctx, http.MethodPost, body, in, "Content-Type", "application/json", "Accept", "application/json, text/event-stream")
}

// exchange implements poster.exchange.
func (s *streamable) exchange(c *call) {
	if string(c.frame.Method) == mcp.Initialize {
		s.greeted(c)
		return
	}
	in := s.current()
	err := s.once(c, in)
	if gone(err, in) {
		if in, err = s.renew(in, err); err != nil {
			s.giveUpSession(err)
			s.refuse(c, s.fault(c, err))
			return
		}
		err = s.once(c, in)
	}
	s.settle(c, err)
}

// once sends a request in a session and passes on what comes back. It returns nil once
// the answer is there.
func (s *streamable) once(c *call, in session) error {
	s.enter(in)
	defer s.exit(in)
	resp, err := s.post(traced(c), c.frame.Bytes, in)
	if err != nil {
		return err
	}
	answer := func(f *wire.Frame) {
		if f.Result.Present() {
			s.setup.note(&c.frame)
		}
		s.incoming(f)
	}
	return s.read(c.ctx, resp, in, reading{id: c.id(), answer: answer, other: s.incoming})
}

// greeted sends the slot's initialize, which opens a session of its own. A first one
// that fails ends the connection: there is nothing to be had of the server.
func (s *streamable) greeted(c *call) {
	before := s.current()
	answer, opened, err := s.shake(traced(c), &c.frame, s.incoming)
	var status *statusError
	switch {
	case err == nil && answer.Result.Present():
		replaced := s.adopt(&c.frame, opened)
		s.incoming(answer)
		s.retire(replaced)
	case err == nil:
		s.incoming(answer)
		s.end(opened)
	case s.ctx.Err() != nil:
	case before.number > 0:
		s.settle(c, err)
	case errors.As(err, &status) && status.denied():
		s.deny(err)
	default:
		if errors.As(err, &status) {
			if f, ok := status.own(c.id()); ok {
				s.incoming(&f)
				return
			}
			if s.older.fits(status) {
				s.older.try(c, status)
				return
			}
		}
		s.settleFirst(err)
	}
}

// settleFirst ends a connection that has never had a session.
func (s *streamable) settleFirst(err error) {
	if errors.As(err, new(unsent)) {
		s.unreachable(err)
		return
	}
	s.fail(fmt.Errorf("it did not take initialize: %s%s", sentence(err), advice(err)))
}

// note implements poster.note. A message the server refused with the session is sent
// once more in the next one; the answer to a request of the lost session is not.
func (s *streamable) note(ctx context.Context, f *wire.Frame) error {
	if string(f.Method) == mcp.Initialized {
		s.mu.Lock()
		s.initialized = f
		s.mu.Unlock()
		defer s.listen()
	}
	in := s.current()
	err := s.tell(ctx, f, in)
	if gone(err, in) {
		if in, err = s.renew(in, err); err != nil {
			s.giveUpSession(err)
			return err
		}
		if f.IsNotification() && string(f.Method) != mcp.Initialized {
			err = s.tell(ctx, f, in)
		}
	}
	if errors.As(err, new(unsent)) && ctx.Err() == nil {
		s.depart(unreachable(err))
	}
	return err
}

// tell sends a message that has no answer.
func (s *streamable) tell(ctx context.Context, f *wire.Frame, in session) error {
	resp, err := s.post(ctx, f.Bytes, in)
	if err != nil {
		return err
	}
	defer discard(resp)
	if resp.StatusCode >= 300 {
		return readRefusal(resp)
	}
	return nil
}
