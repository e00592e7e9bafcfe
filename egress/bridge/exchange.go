package bridge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"mcpbroker/actors/wire"
	"mcpbroker/internal/idleconn"
)

const (
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"
)

// expectBytes is the size from which a body waits for the broker's word: one that
// is refused for its size need not be sent, and the refusal is not lost in it.
const expectBytes = 256 << 10

// newClient is an HTTP client for one broker. There is no deadline for an answer:
// the broker has one for its providers.
func newClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 64
	t.DisableCompression = true // a stream must not wait for a full block
	t.DialContext = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext
	return &http.Client{Transport: t, CheckRedirect: sameOrigin}
}

// lasting is a client that outlives the broker it talks to: what it says to one that has
// just been started goes over a new connection.
func lasting(c *http.Client) *http.Client {
	plain, ok := c.Transport.(*http.Transport)
	if !ok {
		return c
	}
	kept := *c
	kept.Transport = idleconn.Transport{Transport: plain}
	return &kept
}

// sameOrigin follows a redirect that keeps the method, the body and the origin; a
// session must not be told to anybody else.
func sameOrigin(r *http.Request, via []*http.Request) error {
	first := via[0]
	if len(via) > 3 || r.Method != first.Method || r.URL.Scheme != first.URL.Scheme || r.URL.Host != first.URL.Host {
		return http.ErrUseLastResponse
	}
	return nil
}

func (b *bridge) do(ctx context.Context, method string, body []byte, s session, header ...string) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		content = bytes.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, b.cfg.URL, content)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	if s.id != "" {
		r.Header.Set(sessionHeader, s.id)
	}
	if s.version != "" {
		r.Header.Set(versionHeader, s.version)
	}
	resp, err := b.http.Do(r)
	if ctx.Err() == nil {
		b.reached(err)
	}
	return resp, err
}

func (b *bridge) post(ctx context.Context, body []byte, s session) (*http.Response, error) {
	header := []string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream"}
	if len(body) >= expectBytes {
		header = append(header, "Expect", "100-continue")
	}
	return b.do(ctx, http.MethodPost, body, s, header...)
}

// errSessionGone: the broker does not know the session, and has not looked at the
// message.
var errSessionGone = errors.New("the broker has forgotten the session")

// once posts one message in a session and brings what comes back to the host. A
// request that gets no response is an error; a *wire.Error is one to answer it with.
func (b *bridge) once(ctx context.Context, body, id []byte, s session) error {
	resp, err := b.post(ctx, body, s)
	if err != nil {
		return err
	}
	defer discard(resp)
	if resp.StatusCode == http.StatusNotFound && s.id != "" {
		return errSessionGone
	}
	answered, err := b.relay(ctx, resp, id)
	if err == nil && id != nil && !answered {
		err = wire.AnswerLost(b.cfg.URL, errNoAnswer)
	}
	return err
}

var errNoAnswer = errors.New("it held no response to the request")

// relay brings the messages of an answer to the host and tells whether the
// response to id was among them.
func (b *bridge) relay(ctx context.Context, resp *http.Response, id []byte) (answered bool, err error) {
	switch kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); {
	case resp.StatusCode == http.StatusAccepted, resp.StatusCode == http.StatusNoContent:
		return false, nil
	case resp.StatusCode != http.StatusOK:
		return false, b.refusal(resp)
	case kind == "text/event-stream":
		return b.relayStream(ctx, resp.Body, id)
	case kind != "application/json":
		return false, wire.AnswerLost(b.cfg.URL, fmt.Errorf("it is %q, neither JSON nor an event stream", kind))
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxMessageBytes+1))
	if err == nil && len(body) > MaxMessageBytes {
		err = wire.ErrTooLong
	}
	if err != nil {
		return false, wire.AnswerLost(b.cfg.URL, err)
	}
	f, err := wire.Scan(body)
	if err != nil {
		return false, wire.AnswerLost(b.cfg.URL, err)
	}
	b.send(f.Bytes)
	return answers(&f, id), nil
}

// answers tells whether a message is the response to id. An error without an id in
// place of the response is not: the host could not tell whose it is.
func answers(f *wire.Frame, id []byte) bool {
	return f.IsResponse() && (id == nil || bytes.Equal(f.Raw(f.ID), id))
}

// relayStream brings events to the host until the response to id, which ends the
// stream, or the stream's end.
func (b *bridge) relayStream(ctx context.Context, body io.Reader, id []byte) (answered bool, err error) {
	events := wire.NewEventReader(body, MaxMessageBytes)
	for {
		ev, err := events.Next()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, wire.AnswerLost(b.cfg.URL, err)
		}
		if f, ok := b.event(ev); ok && id != nil && answers(&f, id) {
			return true, nil
		}
	}
}

// event brings one event to the host, if it is a message.
func (b *bridge) event(ev wire.ServerEvent) (wire.Frame, bool) {
	if len(ev.Data) == 0 || ev.Name != "" && ev.Name != "message" {
		return wire.Frame{}, false
	}
	f, err := wire.Scan(ev.Data)
	if err != nil {
		b.cfg.Log.Warn(fmt.Sprintf("[mcp-broker] bridge: the broker sent an event that is no message: %v: %s", err, wire.Excerpt(ev.Data)))
		return wire.Frame{}, false
	}
	b.send(f.Bytes)
	return f, true
}

// refusal turns an HTTP answer that is not the one asked for into an error for the
// host: the broker's own words where it has some.
func (b *bridge) refusal(resp *http.Response) *wire.Error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	plain := wire.RefusedHTTP(b.cfg.URL, resp.Status)
	if f, err := wire.Scan(body); err != nil || f.Shape != wire.Object {
		return plain
	}
	said := wire.Member(body, "error")
	if message, ok := wire.Unquote(wire.Member(said, "message")); ok {
		code, err := strconv.Atoi(string(wire.Member(said, "code")))
		if err != nil {
			code = wire.CodeUnavailable
		}
		return &wire.Error{Code: code, Message: message}
	}
	code, _ := wire.Unquote(said)
	if description, ok := wire.Unquote(wire.Member(body, "error_description")); ok {
		return &wire.Error{Code: codeOf(resp.StatusCode, code), Message: description}
	}
	return plain
}

func codeOf(status int, code string) int {
	switch {
	case code == "parse_error":
		return wire.CodeParse
	case status == http.StatusBadRequest, status == http.StatusRequestEntityTooLarge:
		return wire.CodeInvalidRequest
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return wire.CodeForbidden
	}
	return wire.CodeUnavailable
}

// discard lets the connection be used again, if the answer is one that ends and
// little is left of it.
func discard(resp *http.Response) {
	if resp.ContentLength >= 0 {
		_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	}
	_ = resp.Body.Close()
}

// cause leaves out what a *url.Error repeats: the method and the URL.
func cause(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// lostOnTheWay tells a connection that broke in the middle from one that was never
// made.
func lostOnTheWay(err error) bool {
	var op *net.OpError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &op) && op.Op != "dial"
}

// undialled tells that no connection was made, so that nothing was sent.
func undialled(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// reached logs when the broker goes out of reach and when it is back, once each.
func (b *bridge) reached(err error) {
	b.mu.Lock()
	before := b.trouble
	b.trouble = ""
	if err != nil {
		b.trouble = cause(err).Error()
	}
	now := b.trouble
	b.mu.Unlock()
	switch {
	case before == "" && now != "":
		b.cfg.Log.Warn(fmt.Sprintf("[mcp-broker] bridge: cannot reach the broker at %s: %s", b.cfg.URL, now))
	case before != "" && now == "":
		b.cfg.Log.Info(fmt.Sprintf("[mcp-broker] bridge: the broker at %s answers again", b.cfg.URL))
	}
}

const (
	retryBase = 250 * time.Millisecond
	retryCap  = 10 * time.Second
	retrySoon = time.Second // while a host waits for its handshake
)

func retryDelay(n int) time.Duration {
	delay := retryCap
	if n < 6 { // 250 ms doubled six times is over the cap
		delay = retryBase << n
	}
	return time.Duration(float64(delay) * (0.5 + 0.5*rand.Float64()))
}
