package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"mcpbroker/actors/wire"
)

var (
	errTooLarge = errors.New("the message is larger than allowed")
	errNoAnswer = errors.New("the server's answer held no response to the request")
)

// lingering is how long an event stream is read on behind the answer: one that ends by
// then leaves its connection to the next request.
const lingering = 250 * time.Millisecond

// reading is what becomes of the messages a POST is answered with.
type reading struct {
	id     []byte            // of the request
	answer func(*wire.Frame) // takes the response to it
	other  func(*wire.Frame) // takes all other messages
}

// read takes what a POST in a session came to. The answer has been called once if read
// returns nil.
func (s *streamable) read(ctx context.Context, resp *http.Response, in session, to reading) error {
	defer func() { discard(resp) }()
	if resp.StatusCode >= 300 {
		return readRefusal(resp)
	}
	if contentType(resp) != "text/event-stream" {
		return s.readJSON(resp, to)
	}
	at, err := s.readEvents(ctx, resp.Body, to, position{})
	for n, tried := 0, ""; err != nil && s.wanted(ctx, to.id, err) && at.last != "" && in.id != ""; n++ {
		if at.last == tried && !at.asked {
			return err
		}
		discard(resp)
		if !s.sleep(ctx, s.resuming(n, at, tried)) {
			return err
		}
		if !s.wanted(ctx, to.id, err) {
			return err
		}
		tried = at.last
		next, failed := s.resume(ctx, in, at.last)
		if failed != nil {
			return err
		}
		resp = next
		at, err = s.readEvents(ctx, resp.Body, to, at)
	}
	return err
}

// resuming is the wait before a stream is asked for what follows at, for the
// n-th time from 0. A server that names the wait has the answer polled for.
func (s *streamable) resuming(n int, at position, tried string) time.Duration {
	switch {
	case at.asked && at.last == tried:
		return max(at.retry, minRetry)
	case at.asked:
		return at.retry
	case n == 0:
		return 0
	}
	return s.pace.reopen(n)
}

// wanted reports that the answer that err kept from coming is to be asked for again. A
// request that is no call of the slot has a deadline.
func (s *streamable) wanted(ctx context.Context, id []byte, err error) bool {
	_, bounded := ctx.Deadline()
	return ctx.Err() == nil && !errors.Is(err, errTooLarge) && (bounded || s.calls.has(id))
}

// resume asks for what followed the event last.
func (s *streamable) resume(ctx context.Context, in session, last string) (*http.Response, error) {
	resp, err := s.do(ctx, http.MethodGet, nil, in, "Accept", "text/event-stream", eventHeader, last)
	if err != nil {
		return nil, err
	}
	if !isStream(resp) {
		defer discard(resp)
		return nil, readRefusal(resp)
	}
	return resp, nil
}

func isStream(resp *http.Response) bool {
	return resp.StatusCode == http.StatusOK && contentType(resp) == "text/event-stream"
}

// readJSON takes a body that is one message, or an array of them.
func (s *streamable) readJSON(resp *http.Response, to reading) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(s.cfg.Limit)+1))
	switch {
	case err != nil:
		return err
	case len(body) > s.cfg.Limit:
		return errTooLarge
	case len(bytes.TrimSpace(body)) == 0:
		return fmt.Errorf("the server answered HTTP %s with an empty body", resp.Status)
	}
	f, err := wire.Scan(body)
	switch kind := contentType(resp); {
	case err != nil && kind != "" && kind != "application/json":
		return &otherContent{kind, short(string(wire.Preview(body)))}
	case err != nil:
		return fmt.Errorf("the body is %w: %s", err, short(string(wire.Preview(body))))
	}
	if f.Shape != wire.Array {
		return s.sort(&f, to)
	}
	found := errNoAnswer
	wire.Elements(f.Bytes, func(raw []byte) {
		if f, err := wire.Scan(raw); err == nil && s.sort(&f, to) == nil {
			found = nil
		}
	})
	return found
}

// sort passes a message on; nil when it was the response.
func (s *streamable) sort(f *wire.Frame, to reading) error {
	switch {
	case f.IsResponse() && bytes.Equal(f.Raw(f.ID), to.id):
		to.answer(f)
		return nil
	case f.Method == nil && f.Error.Present() && (f.IDShape == wire.Null || f.IDShape == wire.Absent):
		// An error that could not name its request, in the place of the answer.
		named, err := wire.Scan(named(to.id, f.Raw(f.Error)))
		if err != nil {
			return err
		}
		to.answer(&named)
		return nil
	case f.Shape != wire.Object || f.Method == nil && !f.IsResponse():
		s.junk(f.Bytes)
	default:
		to.other(f)
	}
	return errNoAnswer
}

func named(id, raw []byte) []byte {
	b := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	b = append(append(b, `,"error":`...), raw...)
	return append(b, '}')
}

// readEvents passes on the messages of an event stream as they come, until the response is
// there, and returns how far they have come from at.
func (s *streamable) readEvents(ctx context.Context, body io.ReadCloser, to reading, at position) (position, error) {
	events := wire.NewEventReader(body, s.cfg.Limit)
	for {
		ev, err := events.Next()
		if retry, ok := retryOf(events); ok {
			at.retry, at.asked = retry, true
		}
		if err != nil {
			return at, streamError(err)
		}
		if ev.ID != "" {
			at.last = resumable(ev.ID)
		}
		if f, ok := s.message(ev); ok && s.sort(f, to) == nil {
			s.linger(events, body, to.other)
			return at, nil
		}
		if ctx.Err() != nil {
			return at, ctx.Err()
		}
	}
}

func streamError(err error) error {
	switch {
	case errors.Is(err, wire.ErrTooLong):
		return errTooLarge
	case errors.Is(err, io.EOF):
		return fmt.Errorf("the event stream ended: %w", errNoAnswer)
	}
	return err
}

// message is the JSON-RPC message of an event, if it is one.
func (p *poster) message(ev wire.ServerEvent) (*wire.Frame, bool) {
	if len(ev.Data) == 0 || ev.Name != "" && ev.Name != "message" {
		return nil, false
	}
	f, err := wire.Scan(ev.Data)
	if err != nil {
		p.junk(ev.Data)
		return nil, false
	}
	return &f, true
}

// events passes on the messages of a stream that belongs to no request, to its end,
// which is always an error. A message that is too large costs its own call only.
func (p *poster) events(r *wire.EventReader, seen func(id string)) error {
	for {
		ev, err := r.Next()
		if errors.Is(err, wire.ErrTooLong) {
			var tail []byte
			if tail, err = r.Skip(); err == nil {
				p.oversized(ev.Data, tail)
				continue
			}
		}
		if err != nil {
			return err
		}
		seen(ev.ID)
		if f, ok := p.message(ev); ok {
			p.incoming(f)
		}
	}
}

// linger reads on behind the answer for a short time.
func (s *streamable) linger(events *wire.EventReader, body io.Closer, other func(*wire.Frame)) {
	enough := time.AfterFunc(lingering, func() { _ = body.Close() })
	defer enough.Stop()
	for {
		ev, err := events.Next()
		if err != nil {
			return
		}
		if f, ok := s.message(ev); ok {
			other(f)
		}
	}
}

// sleep waits for d; false when ctx has ended.
func (p *poster) sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
