package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"mcpbroker/actors/wire"
)

// maxRefusalBytes is how much of an HTTP error is looked at.
const maxRefusalBytes = 64 << 10

// statusError is an HTTP answer that is not the one asked for.
type statusError struct {
	code   int
	status string // as "503 Service Unavailable"
	said   string // an excerpt; may be empty
	body   []byte
}

func (e *statusError) Error() string {
	if e.said == "" {
		return "the server answered HTTP " + e.status
	}
	return "the server answered HTTP " + e.status + ": " + e.said
}

// denied: the server refuses the broker's credentials.
func (e *statusError) denied() bool {
	return e.code == http.StatusUnauthorized || e.code == http.StatusForbidden
}

// readRefusal makes an error of an HTTP answer.
func readRefusal(resp *http.Response) *statusError {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusalBytes))
	e := &statusError{code: resp.StatusCode, status: strings.TrimSpace(resp.Status), body: body}
	if 300 <= e.code && e.code < 400 {
		e.said = redirected(resp)
		return e
	}
	e.said = excerpt(resp.Header.Get("Content-Type"), body)
	return e
}

// excerpt is the human part of an error's body: the message of a JSON-RPC or OAuth
// error, or the start of a text. Pages for browsers say nothing.
func excerpt(contentType string, body []byte) string {
	kind, _, _ := mime.ParseMediaType(contentType)
	if f, err := wire.Scan(body); err == nil && f.Shape == wire.Object {
		for _, path := range [][]string{{"error", "message"}, {"error_description"}, {"message"}, {"detail"}, {"error"}} {
			value := body
			for _, name := range path {
				value = wire.Member(value, name)
			}
			if text, ok := wire.Unquote(value); ok {
				return short(text)
			}
		}
		return short(string(body))
	}
	if kind == webPage {
		return ""
	}
	return short(string(body))
}

// short is the first line or so of a text.
func short(text string) string {
	const most = 200
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return text
}

// own is the response to id an HTTP error came with, if any.
func (e *statusError) own(id []byte) (wire.Frame, bool) {
	f, err := wire.Scan(e.body)
	return f, err == nil && f.IsResponse() && bytes.Equal(f.Raw(f.ID), id)
}

// settle sees that a call is answered, whatever its exchange has come to. A server that
// cannot be reached ends the connection, behind the calls under way: the owner makes
// another.
func (p *poster) settle(c *call, err error) {
	if err == nil || p.ctx.Err() != nil {
		return
	}
	var status *statusError
	if errors.As(err, &status) {
		if f, ok := status.own(c.id()); ok && !status.denied() {
			p.incoming(&f)
			return
		}
	}
	stopped := c.ctx.Err() != nil // says nothing about the server
	if errors.As(err, new(unsent)) && !stopped {
		p.depart(unreachable(err)) // before the caller can know, or a later stay would come first
	}
	p.refuse(c, p.fault(c, err))
}

// fault words for its caller what an exchange has come to.
func (p *poster) fault(c *call, err error) *wire.Error {
	var status *statusError
	var lost *sessionLost
	name := p.cfg.Name
	switch {
	case errors.Is(err, errTooLarge):
		return wire.TooLarge(p.cfg.Limit)
	case errors.Is(context.Cause(c.ctx), errWithdrawn):
		return wire.RemoteLost(name, errWithdrawn.Error())
	case errors.As(err, &status) && status.denied():
		return wire.RemoteDenied(name, status.status)
	case errors.As(err, &lost):
		return wire.RemoteUnreachable(name, lost.Error())
	case errors.As(err, &status):
		return wire.RemoteRefused(name, status.status, status.said)
	case errors.As(err, new(unsent)):
		return wire.RemoteUnreachable(name, sentence(err))
	}
	return wire.RemoteLost(name, sentence(err))
}

// unreachable ends the connection to a server nothing can be sent to.
func (p *poster) unreachable(err error) { p.giveOver(unreachable(err)) }

// unreachable words why a request could not be sent.
func unreachable(err error) error {
	if errors.Is(err, errCredentials) {
		return err
	}
	return fmt.Errorf("it cannot be reached: %s%s", sentence(err), advice(err))
}

// denied reports that the server, or the one that issues tokens for it, refuses the
// broker's credentials.
func denied(err error) bool {
	var status *statusError
	return errors.As(err, &status) && status.denied() || errors.Is(err, errCredentials)
}

// giveOver ends the connection for a cause, which tells whether waiting helps.
func (p *poster) giveOver(err error) {
	if denied(err) {
		p.deny(err)
		return
	}
	p.fail(err)
}
