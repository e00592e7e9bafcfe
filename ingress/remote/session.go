package remote

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"mcpbroker/actors/msg"
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
// What the server says beside it goes to other.
func (s *streamable) shake(ctx context.Context, f *wire.Frame, other func(*wire.Frame)) (*wire.Frame, session, error) {
	resp, err := s.post(ctx, f.Bytes, session{})
	if err != nil {
		return nil, session{}, err
	}
	id := resp.Header.Get(sessionHeader)
	var answer *wire.Frame
	to := reading{id: f.Raw(f.ID), answer: func(f *wire.Frame) { answer = f }, other: other}
	if err := s.read(ctx, resp, session{id: id}, to); err != nil {
		return nil, session{}, err
	}
	version, _ := wire.Unquote(wire.Member(answer.Raw(answer.Result), "protocolVersion"))
	return answer, session{id: sendable(id), version: sendable(version)}, nil
}

// adopt makes a session the one that messages are sent in from now on, and returns the one
// before it.
func (s *streamable) adopt(initialize *wire.Frame, opened session) (replaced session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replace(initialize, opened)
}

// succeed adopts a session in the place of old, and tells the slot before anything is sent
// in it; false where another one has come first. What the slot is told makes clients read
// the server's lists again: a server that forgets a session soon after it was opened, such
// as replicas that do not share theirs, would never come to rest.
func (s *streamable) succeed(old, opened session, initialize, answer *wire.Frame) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session.number != old.number {
		return false
	}
	if now := time.Now(); now.Sub(s.told) >= s.pace.renewal {
		s.told = now
		s.slot.Send(&msg.ProviderRenewed{Gen: s.slotGen, Answer: *answer})
	}
	s.replace(initialize, opened)
	return true
}

// replace implements adopt and succeed. mu is held.
func (s *streamable) replace(initialize *wire.Frame, opened session) (replaced session) {
	replaced = s.session
	opened.number = replaced.number + 1
	s.initialize, s.session = initialize, opened
	if s.endStream != nil {
		s.endStream()
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return replaced
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

// renew opens another session after old, which is gone for a cause, with the last
// initialize. Of all who ask for it at a time one does it. The error is a *sessionLost; who
// gets it gives the connection up.
func (s *streamable) renew(old session, cause error) (session, error) {
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
	err := s.reopen(old, cause)
	now := s.current()
	if now.number == old.number {
		s.failed = failure{old.number, time.Now(), &sessionLost{err}}
		return session{}, s.failed.err
	}
	return now, nil
}

// giveUpSession ends the connection after renew has failed, behind the calls under way.
func (s *streamable) giveUpSession(err error) { s.depart(err) }

// reopen opens a session in the place of old, unless the slot's own initialize does so
// meanwhile, which ends old. Nothing of it reaches the slot before the slot knows that
// there is another.
func (s *streamable) reopen(old session, cause error) error {
	var early []*wire.Frame
	opened, initialize, answer, err := s.greetAgain(func(f *wire.Frame) {
		if len(early) < FramesInFlight {
			early = append(early, f)
		}
	})
	if err != nil {
		return err
	}
	if !s.awaitSlot() {
		return s.ctx.Err()
	}
	if !s.succeed(old, opened, initialize, answer) {
		s.end(opened)
		return nil
	}
	s.log(slog.LevelInfo, "it did not know the session any more; a new one was opened")
	if mayLive(cause) {
		s.spawn(func() { s.retire(old) })
	}
	for _, f := range early {
		s.incoming(f)
	}
	s.spawn(func() { s.restore(opened) })
	return nil
}

// greetAgain brings the last handshake to the server once more, so that nothing else is
// sent in a session before the server has been told that it is in use.
func (s *streamable) greetAgain(other func(*wire.Frame)) (opened session, initialize, answer *wire.Frame, err error) {
	ctx, cancel := context.WithTimeout(s.ctx, renewTimeout)
	defer cancel()
	s.mu.Lock()
	initialize, initialized := s.initialize, s.initialized
	s.mu.Unlock()
	answer, opened, err = s.shake(ctx, initialize, other)
	if err != nil {
		return session{}, nil, nil, err
	}
	if !answer.Result.Present() {
		return session{}, nil, nil, fmt.Errorf("the server refused initialize: %s", wire.Excerpt(answer.Raw(answer.Error)))
	}
	if initialized != nil {
		err = s.tell(ctx, initialized, opened)
	}
	return opened, initialize, answer, err
}
