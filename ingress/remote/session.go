package remote

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/wire"
)

// session is one at the server. The zero value is none.
type session struct {
	id      string // empty where the server keeps none
	version string // negotiated
	number  int    // of the sessions this connection has had, from 1
}

func (s *streamable) current() session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.session
}

// shake posts an initialize and returns its answer, with the session a good one opens.
func (s *streamable) shake(ctx context.Context, f *wire.Frame) (*wire.Frame, session, error) {
	resp, err := s.post(ctx, f.Bytes, session{})
	if err != nil {
		return nil, session{}, err
	}
	id := resp.Header.Get(sessionHeader)
	var answer *wire.Frame
	if err := s.read(ctx, resp, f.Raw(f.ID), session{id: id}, func(f *wire.Frame) { answer = f }); err != nil {
		return nil, session{}, err
	}
	version, _ := wire.Unquote(wire.Member(answer.Raw(answer.Result), "protocolVersion"))
	return answer, session{id: sendable(id), version: sendable(version)}, nil
}

// adopt makes a session the one that messages are sent in from now on.
func (s *streamable) adopt(initialize *wire.Frame, opened session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	opened.number = s.session.number + 1
	s.initialize, s.session = initialize, opened
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// sendable returns text if it can stand in a header as it is, else nothing.
func sendable(text string) string {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return ""
		}
	}
	return text
}

// renewTimeout bounds opening a session again.
const renewTimeout = 30 * time.Second

// sessionLost: the server has forgotten the session, and no other could be opened.
type sessionLost struct{ cause error }

func (l *sessionLost) Error() string {
	return "its session was gone, and another one could not be opened: " + sentence(l.cause)
}

func (l *sessionLost) Unwrap() error { return l.cause }

// failure is an attempt to open another session than the numbered one.
type failure struct {
	number int
	at     time.Time
	err    error
}

// renew opens another session after old, with the last initialize. Of all who ask for
// it at a time one does it. The error is a *sessionLost; who gets it gives the
// connection up.
func (s *streamable) renew(old session) (session, error) {
	asked := time.Now()
	select {
	case s.renewing <- struct{}{}:
		defer func() { <-s.renewing }()
	case <-s.ctx.Done():
		return session{}, &sessionLost{s.ctx.Err()}
	}
	if now := s.current(); now.number != old.number {
		return now, nil
	}
	if last := s.failed; last.number == old.number && last.at.After(asked) {
		return session{}, last.err
	}
	if err := s.reopen(); err != nil {
		s.failed = failure{old.number, time.Now(), &sessionLost{err}}
		return session{}, s.failed.err
	}
	return s.current(), nil
}

// giveUpSession ends the connection after renew has failed, behind the calls under way.
func (s *streamable) giveUpSession(err error) { s.depart(err) }

// reopen opens a session. Nothing else is sent in it before the server has been told that
// it is in use.
func (s *streamable) reopen() error {
	ctx, cancel := context.WithTimeout(s.ctx, renewTimeout)
	defer cancel()
	s.mu.Lock()
	initialize, initialized := s.initialize, s.initialized
	s.mu.Unlock()
	answer, opened, err := s.shake(ctx, initialize)
	if err != nil {
		return err
	}
	if !answer.Result.Present() {
		return fmt.Errorf("the server refused initialize: %s", wire.Excerpt(answer.Raw(answer.Error)))
	}
	if initialized != nil {
		if err := s.tell(ctx, initialized, opened); err != nil {
			return err
		}
	}
	s.adopt(initialize, opened)
	s.log(slog.LevelInfo, "it did not know the session any more; a new one was opened")
	s.spawn(func() { s.restore(opened) })
	return nil
}

// A slot does not notice the new session, so what it has set up at the server is set
// up again.

const setLevel = "logging/setLevel"

// Bounds of that: requests kept, and how many of them are repeated side by side.
const (
	maxSetup    = 1024
	maxRestores = 8
)

// setup are the requests that outlast their answer. The zero value is ready.
type setup struct {
	mu     sync.Mutex
	frames map[string]*wire.Frame
}

// note keeps an answered request, or drops the one it takes back.
func (s *setup) note(f *wire.Frame) {
	key := string(f.Raw(f.URI))
	switch string(f.Method) {
	case mcp.Subscribe, mcp.Unsubscribe:
	case setLevel:
		key = setLevel
	default:
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if string(f.Method) == mcp.Unsubscribe {
		delete(s.frames, key)
		return
	}
	if s.frames == nil {
		s.frames = map[string]*wire.Frame{}
	}
	if s.frames[key] != nil || len(s.frames) < maxSetup {
		s.frames[key] = f
	}
}

func (s *setup) list() []*wire.Frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*wire.Frame
	for _, key := range slices.Sorted(maps.Keys(s.frames)) {
		list = append(list, s.frames[key])
	}
	return list
}

// restore repeats the kept requests in a session; their answers are nobody's.
func (s *streamable) restore(in session) {
	var group sync.WaitGroup
	places := make(chan struct{}, maxRestores)
	for _, f := range s.setup.list() {
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			if err := s.repeat(f, in); err != nil && s.ctx.Err() == nil {
				s.log(slog.LevelWarn, s.mask(fmt.Sprintf("%s could not be repeated in the new session: %s", f.Method, sentence(err))))
			}
		})
	}
	group.Wait()
}

func (s *streamable) repeat(f *wire.Frame, in session) error {
	ctx, cancel := context.WithTimeout(s.ctx, renewTimeout)
	defer cancel()
	resp, err := s.post(ctx, f.Bytes, in)
	if err != nil {
		return err
	}
	return s.read(ctx, resp, f.Raw(f.ID), in, func(answer *wire.Frame) {
		if answer.Error.Present() {
			s.log(slog.LevelWarn, s.mask(fmt.Sprintf("%s was refused in the new session: %s", f.Method, wire.Excerpt(answer.Raw(answer.Error)))))
		}
	})
}
