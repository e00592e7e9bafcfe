package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/wire"
	"mcpbroker/ingress/wsconn"
)

// subprotocol is offered to servers that ask for one.
const subprotocol = "mcp"

// socket is a WebSocket: one text frame a message, both ways.
type socket struct {
	*link
	http   *client
	outbox *rt.Outbox
	conn   *wsconn.Conn // set before the connection opens
}

func newSocket(l *link, c *client) *socket {
	s := &socket{link: l, http: c}
	s.outbox = l.newOutbox(s.write)
	l.owner = reporter{l.owner, s.outbox}
	return s
}

// reporter adds to the last word of a socket, which comes behind its writer's end, the
// messages that were never handed to the WebSocket library.
type reporter struct {
	msg.Ref
	outbox *rt.Outbox
}

// Send implements msg.Ref.
func (r reporter) Send(message any) {
	if m, ok := message.(*msg.UpstreamEnded); ok {
		m.Unsent = r.outbox.Unsent()
	}
	r.Ref.Send(message)
}

// Send implements msg.Conduit.
func (s *socket) Send(frame []byte, class mcp.Class) bool {
	return s.ctx.Err() == nil && s.outbox.Push(rt.Item{Frame: frame, Class: class})
}

func (s *socket) write(batch []rt.Item) error {
	handed := 0
	err := s.conn.WriteBatch(func(write func([]byte) error) error {
		for _, item := range batch {
			handed++
			if err := write(item.Frame); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.fail(fmt.Errorf("its socket broke: %s", sentence(err)))
		return &rt.WriteError{Begun: handed, Err: err}
	}
	return nil
}

func (s *socket) run() {
	conn, err := s.dial(s.http.tokens)
	var refused *wsconn.RefusedError
	if errors.As(err, &refused) && refused.Response.StatusCode == http.StatusUnauthorized && s.http.tokens != nil {
		conn, err = s.dial(s.http.tokens)
	}
	if err != nil {
		s.refused(err)
		return
	}
	s.conn = conn
	// A read ends with its connection only.
	left := make(chan struct{})
	context.AfterFunc(s.ctx, func() { defer close(left); s.leave(conn) })
	if s.open(s) {
		s.spawn(s.heartbeat)
		s.read()
	}
	<-left
}

// dial opens the socket. A token the server refuses is not used again.
func (s *socket) dial(t *tokens) (*wsconn.Conn, error) {
	ctx, cancel := context.WithTimeout(s.ctx, 3*s.cfg.ConnectTimeout) // lookup and TCP, TLS, the handshake
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.http.target.String(), nil)
	if err != nil {
		return nil, withoutURL(err)
	}
	token, err := s.http.dress(r, nil)
	if err != nil {
		return nil, err
	}
	conn, err := wsconn.Dial(ctx, wsconn.DialConfig{
		URL: r.URL.String(), Host: r.Host, Header: r.Header, Subprotocol: subprotocol,
		Transport: s.http.transport, Redirect: keepOrigin,
	})
	if err != nil && t != nil {
		t.drop(token)
	}
	return conn, err
}

// refused ends a connection that has not come about.
func (s *socket) refused(err error) {
	var refused *wsconn.RefusedError
	switch {
	case s.ctx.Err() != nil:
	case errors.Is(err, errCredentials):
		s.deny(err)
	case errors.As(err, &refused):
		refusal := readRefusal(refused.Response)
		if refusal.denied() {
			s.deny(refusal)
			return
		}
		s.fail(advised(refusal))
	default:
		s.fail(unreachable(withoutURL(err)))
	}
}

// read passes on what the server says until the connection ends.
func (s *socket) read() {
	for {
		data, tail, err := s.conn.ReadUpTo(s.cfg.Limit)
		switch {
		case errors.Is(err, wire.ErrTooLong):
			s.oversized(data, tail)
			continue
		case err != nil:
			s.fail(fmt.Errorf("its socket was closed: %s", wsconn.Reason(err)))
			return
		}
		f, err := wire.Scan(data)
		if err != nil {
			s.junk(data)
			continue
		}
		s.deliver(&f)
	}
}

// heartbeat pings, and ends a connection whose peer left the previous ping unanswered.
func (s *socket) heartbeat() {
	ticks := time.NewTicker(s.pace.ping)
	defer ticks.Stop()
	answered := make(chan struct{}, 1)
	for waiting := false; ; {
		select {
		case <-answered:
			waiting = false
		case <-ticks.C:
			if waiting {
				s.fail(fmt.Errorf("it did not answer a WebSocket ping within %s", s.pace.ping))
				return
			}
			waiting = true
			s.spawn(func() {
				if s.conn.Ping() == nil {
					answered <- struct{}{}
				}
			})
		case <-s.ctx.Done():
			return
		}
	}
}

// leave ends the connection once the driver does: with a close frame after a Stop, else
// at once.
func (s *socket) leave(conn *wsconn.Conn) {
	how := s.ending()
	if how.within == 0 {
		conn.Terminate()
		return
	}
	cut := time.AfterFunc(how.within, conn.Terminate)
	defer cut.Stop()
	conn.Close(wire.CloseGoingAway, "The broker ends the connection")
}

func (s *socket) goodbye(time.Duration) {}
