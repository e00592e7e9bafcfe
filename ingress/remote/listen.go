package remote

import (
	"context"
	"errors"
	"fmt"
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
}

func (s *streamable) keepListening() {
	l := &listener{}
	for {
		if now := s.current(); now.number != l.in.number {
			l.in, l.last, l.opened = now, "", false
		}
		if l.in.id == "" {
			return
		}
		began := time.Now()
		err := s.stream(s.ctx, l)
		if s.ctx.Err() != nil || errors.Is(err, errNoStream) {
			return
		}
		if gone(err, l.in) {
			// Of a stream that has been open, the session is gone. The path of one that has
			// not may be one the server does not know for GET.
			if !l.opened {
				return
			}
			if _, err := s.renew(l.in); err != nil {
				s.giveUpSession(err)
				return
			}
			continue
		}
		s.problem(aboutStream, "its event stream ended, and is opened again: "+streamTrouble(err))
		if !s.sleep(s.ctx, s.pace.reopen(l.row.failed(time.Since(began))), s.wake) {
			return
		}
	}
}

func streamTrouble(err error) string {
	var status *statusError
	if errors.As(err, &status) && status.denied() {
		return fmt.Sprintf("%s; POST works, so headers and auth must be honoured on GET as well", status)
	}
	return sentence(err)
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
	return s.events(wire.NewEventReader(resp.Body, s.cfg.Limit), func(id string) { l.last = id })
}
