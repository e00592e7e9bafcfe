package bridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/wire"
)

// session is one at the broker. The zero value is none.
type session struct {
	id      string
	version string // negotiated, empty while unknown
	number  int    // of the sessions this bridge has had
}

const initializedFrame = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

func (b *bridge) current() session {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.session
}

func (b *bridge) hostInitialized() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.initialized = true
}

// open takes the host's initialize: it opens the session, or is an ordinary
// message of the one there is. The host's other messages wait for it.
func (b *bridge) open(ctx context.Context, f *wire.Frame) {
	b.mu.Lock()
	b.initialize = f.Bytes
	b.mu.Unlock()
	var answer []byte
	err := b.alone(ctx, func() error {
		return b.patiently(ctx, func() (err error) {
			s := b.current()
			if answer, err = b.shake(ctx, s); errors.Is(err, errSessionGone) {
				answer, err = b.shake(ctx, session{number: s.number})
			}
			return err
		})
	})
	if err == nil {
		b.send(answer)
	}
	b.fail(ctx, err, f.Raw(f.ID))
}

// patiently repeats what fails because the broker cannot be reached, for as long as
// initialize may wait.
func (b *bridge) patiently(ctx context.Context, fn func() error) error {
	late := time.NewTimer(max(0, b.cfg.Wait))
	defer late.Stop()
	for n := 0; ; n++ {
		err := fn()
		if b.cfg.Wait < 0 || !undialled(err) {
			return err
		}
		if n == 0 {
			b.cfg.Log.Info(fmt.Sprintf("[mcp-broker] bridge: initialize waits for it, up to %s", b.cfg.Wait))
		}
		again := time.NewTimer(min(b.cfg.Retry(n), retrySoon))
		select {
		case <-again.C:
			continue
		case <-late.C:
		case <-b.hostEnded:
		case <-ctx.Done():
		}
		again.Stop()
		return err
	}
}

// alone runs fn while nobody else opens a session.
func (b *bridge) alone(ctx context.Context, fn func() error) error {
	select {
	case <-b.renewing:
		defer func() { b.renewing <- struct{}{} }()
		return fn()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// established returns the session, and opens one where an earlier initialize of
// the host failed to. Without any initialize there is none, which is the broker's
// to judge.
func (b *bridge) established(ctx context.Context) (session, error) {
	b.mu.Lock()
	s, opened := b.session, b.session.number > 0
	asked := b.initialize != nil
	b.mu.Unlock()
	if opened || !asked {
		return s, nil
	}
	return b.renew(ctx, s)
}

// renew opens another session after old, with the host's own initialize. Of all who
// ask for it one does it.
func (b *bridge) renew(ctx context.Context, old session) (session, error) {
	err := b.alone(ctx, func() error {
		if b.current().number != old.number {
			return nil
		}
		return b.reopen(ctx, old)
	})
	return b.current(), err
}

func (b *bridge) reopen(ctx context.Context, old session) error {
	if _, err := b.shake(ctx, session{number: old.number}); err != nil {
		return err
	}
	if old.number > 0 {
		b.cfg.Log.Info("[mcp-broker] bridge: the broker did not know the session any more; a new one was opened")
	}
	b.mu.Lock()
	initialized := b.initialized
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}: // the event stream need not wait for its next try
	default:
	}
	if !initialized {
		return nil
	}
	return b.once(ctx, []byte(initializedFrame), nil, b.current())
}

// shake posts the host's initialize and returns its answer. Without a session, or
// in answer to a broker without sessions, it counts as a new one: also where the
// slot has no provider, for the session exists all the same (spec 01 5.2).
func (b *bridge) shake(ctx context.Context, s session) ([]byte, error) {
	b.mu.Lock()
	frame := b.initialize
	b.mu.Unlock()
	f, err := wire.Scan(frame)
	if err != nil {
		return nil, err
	}
	resp, err := b.post(ctx, frame, session{id: s.id})
	if err != nil {
		return nil, err
	}
	defer discard(resp)
	switch {
	case resp.StatusCode == http.StatusNotFound && s.id != "":
		return nil, errSessionGone
	case resp.StatusCode != http.StatusOK:
		return nil, b.refusal(resp)
	}
	answer, err := b.response(resp, f.Raw(f.ID))
	if err != nil {
		return nil, err
	}
	b.adopt(s, resp.Header.Get(sessionHeader), answer)
	return answer, nil
}

func (b *bridge) adopt(before session, id string, answer []byte) {
	next := before
	if before.id == "" || id != "" && id != before.id {
		next = session{id: id, number: before.number + 1}
	}
	version, _ := wire.Unquote(wire.Member(wire.Member(answer, "result"), "protocolVersion"))
	if mcp.KnownRevision(version) { // a broker refuses the header with any other
		next.version = version
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.session = next
}

// response reads the answer to one request. Messages before it go to the host.
func (b *bridge) response(resp *http.Response, id []byte) ([]byte, error) {
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/event-stream" {
		body, err := io.ReadAll(io.LimitReader(resp.Body, MaxMessageBytes))
		if err != nil {
			return nil, wire.AnswerLost(b.cfg.URL, err)
		}
		if f, err := wire.Scan(body); err != nil || !answers(&f, id) {
			return nil, wire.AnswerLost(b.cfg.URL, errNoAnswer)
		}
		return body, nil
	}
	for events := wire.NewEventReader(resp.Body, MaxMessageBytes); ; {
		ev, err := events.Next()
		if err != nil {
			return nil, wire.AnswerLost(b.cfg.URL, errors.Join(errNoAnswer, err))
		}
		if f, err := wire.Scan(ev.Data); err == nil && answers(&f, id) {
			return ev.Data, nil
		}
		b.event(ev)
	}
}

// end tells the broker that the host has gone.
func (b *bridge) end(ctx context.Context) {
	s := b.current()
	if s.id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, deleteTimeout)
	defer cancel()
	if resp, err := b.do(ctx, http.MethodDelete, nil, s); err == nil {
		discard(resp)
	}
}

// listen opens the event stream once, and again whenever it ends.
func (b *bridge) listen(ctx context.Context) {
	b.mu.Lock()
	first := !b.listening
	b.listening = true
	b.mu.Unlock()
	if first {
		b.streams.Go(func() { b.keepListening(ctx) })
	}
}

func (b *bridge) keepListening(ctx context.Context) {
	var last string // event id, of the session it belongs to
	renewed := false
	for attempt, number := 0, 0; ; attempt++ {
		s, err := b.established(ctx)
		if s.number != number {
			if number > 0 {
				b.streams.Go(func() { b.restore(ctx, s) })
			}
			last, number = "", s.number
		}
		if err == nil {
			var opened bool
			if opened, err = b.stream(ctx, s, &last); opened {
				attempt, renewed = 0, false
			}
		}
		if errors.Is(err, errSessionGone) && !renewed {
			if _, err = b.renew(ctx, s); err == nil {
				renewed = true // once, then the delay rules
				continue
			}
		}
		if errors.Is(err, errNoStream) || !b.pause(ctx, attempt, b.wake) {
			return
		}
	}
}

// pause waits before attempt n, at most until wake; false when ctx ended.
func (b *bridge) pause(ctx context.Context, n int, wake <-chan struct{}) bool {
	timer := time.NewTimer(b.cfg.Retry(n))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// errNoStream: the broker offers none, and says so once.
var errNoStream = errors.New("the broker has no event streams")

// stream opens the event stream behind the event last and serves it to its end.
func (b *bridge) stream(ctx context.Context, s session, last *string) (opened bool, err error) {
	header := []string{"Accept", "text/event-stream"}
	if *last != "" {
		header = append(header, "Last-Event-ID", *last)
	}
	resp, err := b.do(ctx, http.MethodGet, nil, s, header...)
	if err != nil {
		return false, err
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode == http.StatusNotFound && s.id != "":
		return false, errSessionGone
	case resp.StatusCode == http.StatusMethodNotAllowed:
		return false, errNoStream
	case resp.StatusCode != http.StatusOK:
		return false, b.refusal(resp)
	}
	for events := wire.NewEventReader(resp.Body, MaxMessageBytes); ; {
		ev, err := events.Next()
		if err != nil {
			return true, err
		}
		*last = ev.ID
		b.event(ev)
	}
}
