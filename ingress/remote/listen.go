package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"mcpbroker/actors/wire"
)

// The event stream carries what the server says without being asked.

const (
	reopenBase   = 500 * time.Millisecond
	reopenCap    = 30 * time.Second
	reopenSteady = 10 * time.Second // a stream that lived this long starts the series anew
)

// reopenDelay is the wait before the stream is opened again for the n-th time in a row
// (spec 03 4.2).
func reopenDelay(n int) time.Duration {
	return min(reopenCap, reopenBase<<min(n-1, 6))
}

// series counts the failures in a row.
type series struct{ failures int }

// failed counts one, of a stream that lived so long, and returns their number.
func (s *series) failed(lived time.Duration) int {
	if lived >= reopenSteady {
		s.failures = 0
	}
	s.failures++
	return s.failures
}

// listen opens the event stream once there is a session, and keeps it open.
func (s *streamable) listen() {
	s.mu.Lock()
	first := !s.listening && s.session.id != ""
	s.listening = s.listening || first
	s.mu.Unlock()
	if first {
		s.spawn(s.keepListening)
	}
}

// errNoStream: the server has none, and says so once.
var errNoStream = errors.New("the server has no event stream")

// listener is the event stream across its reconnections.
type listener struct {
	in     session
	last   string // event id, in that session
	opened bool   // at least once, in that session
	row    series

	retry time.Duration // what the last stream asked to wait, if it asked
	asked bool
}

func (s *streamable) keepListening() {
	l := &listener{}
	for {
		if now := s.current(); now.number != l.in.number {
			l.in, l.last, l.opened = now, "", false
		}
		if l.in.id == "" {
			if !s.pause(nil, l.in) {
				return
			}
			continue
		}
		began := time.Now()
		l.retry, l.asked = 0, false
		err := s.streamOf(l)
		if s.ctx.Err() != nil {
			return
		}
		if s.current().number != l.in.number {
			continue
		}
		if errors.Is(err, errNoStream) {
			return
		}
		if gone(err, l.in) {
			// Of a stream that has been open, the session is gone. Of one that has not, it may
			// be, or the path is one the server does not know for GET: the next session tells.
			if !l.opened {
				if !s.pause(nil, l.in) {
					return
				}
				continue
			}
			_, lost := s.renew(l.in, err)
			if lost == nil {
				continue
			}
			s.giveUpSession(lost)
			err = lost
		}
		if !s.pause(time.After(s.reopening(l, err, time.Since(began))), l.in) {
			return
		}
	}
}

// reopening is the wait before a stream that ended with err is opened again. One that
// ends in order and has said for how long is the server's way, and no trouble.
func (s *streamable) reopening(l *listener, err error, lived time.Duration) time.Duration {
	n := l.row.failed(lived)
	if refusedPosition(err) {
		l.last = ""
	}
	if !l.asked || !errors.Is(err, io.EOF) {
		s.trouble(err)
	}
	if l.asked {
		return max(l.retry, minRetry)
	}
	return s.pace.reopen(n)
}

// refusedPosition reports that the server does not take the request as it is, which may
// be for the event it is to go on behind.
func refusedPosition(err error) bool {
	var status *statusError
	if !errors.As(err, &status) || status.denied() {
		return false
	}
	later := status.code == http.StatusRequestTimeout || status.code == http.StatusTooManyRequests
	return 400 <= status.code && status.code < 500 && !later
}

func (s *streamable) trouble(err error) {
	if s.ctx.Err() == nil {
		s.problem(aboutStream, "its event stream ended, and is opened again: "+streamTrouble(err))
	}
}

// pause waits for after, at most until there is another session than in; false when the
// connection has ended.
func (s *streamable) pause(after <-chan time.Time, in session) bool {
	for s.current().number == in.number {
		select {
		case <-after:
			return s.ctx.Err() == nil
		case <-s.wake:
		case <-s.ctx.Done():
			return false
		}
	}
	return true
}

func streamTrouble(err error) string {
	var status *statusError
	if errors.As(err, &status) && status.denied() {
		return fmt.Sprintf("%s; POST works, so headers and auth must be honoured on GET as well", status)
	}
	return sentence(err)
}

// streamOf is stream, at most until there is another session: a server may keep the stream
// of one it does not know any more open.
func (s *streamable) streamOf(l *listener) error {
	ctx, end := context.WithCancel(s.ctx)
	defer end()
	s.mu.Lock()
	s.endStream = end
	over := s.session.number != l.in.number
	s.mu.Unlock()
	if over {
		return context.Canceled
	}
	return s.stream(ctx, l)
}

// stream opens the event stream behind the last event and serves it to its end, which
// is always an error.
func (s *streamable) stream(ctx context.Context, l *listener) error {
	header := []string{"Accept", "text/event-stream"}
	if l.last != "" {
		header = append(header, eventHeader, l.last)
	}
	resp, err := s.do(ctx, http.MethodGet, nil, l.in, header...)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode == http.StatusMethodNotAllowed, resp.StatusCode == http.StatusNotImplemented:
		return errNoStream
	case !isStream(resp):
		return readRefusal(resp)
	}
	l.opened = true
	s.solved(aboutStream, "its event stream is open again")
	events := wire.NewEventReader(resp.Body, s.cfg.Limit)
	err = s.events(events, func(id string) { l.last = resumable(id) })
	l.retry, l.asked = retryOf(events)
	return err
}
