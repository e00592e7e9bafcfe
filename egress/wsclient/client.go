package wsclient

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/wire"
	"mcpbroker/ingress/wsconn"
)

// client is one socket: a reader that posts frames to the session's actor, and
// an outbox that takes what the session has to say. The session ends first, then
// the socket, with the close frame behind everything the session said.
type client struct {
	server  *Server
	sys     *rt.System
	conn    *wsconn.Conn
	slot    string
	session *rt.Ref
	outbox  *rt.Outbox
	ended   chan struct{} // closed with the session

	goodbye atomic.Pointer[farewell] // why we end the session, nil while we do not

	unanswered atomic.Bool // a ping is out
	mu         sync.Mutex  // guards what follows
	timer      *time.Timer
	gone       bool
}

// farewell is a close frame.
type farewell struct {
	code   int
	reason string
}

func newClient(s *Server, conn *wsconn.Conn, slot string) *client {
	c := &client{server: s, sys: s.sys, conn: conn, slot: slot, ended: make(chan struct{})}
	c.outbox = rt.NewOutbox(rt.OutboxConfig{
		Limit: OutboxBytes, Run: s.sys.Go,
		Write:   c.write,
		Failed:  c.writeFailed,
		Dropped: s.slow.Dropping(s.sys.Log(), "a WebSocket client", slot),
		Overrun: c.tooSlow,
	})
	return c
}

func (c *client) start(session *rt.Ref) {
	c.session = session
	session.Send(&msg.StreamOpened{Stream: stream{c}})
	c.startPings()
	if c.conn.Open() != nil {
		c.conn.Terminate()
	}
	go c.read()
}

// read is the one goroutine that reads the socket, until it is closed. What comes
// behind a fault, or after the session's end, is not handled.
func (c *client) read() {
	defer c.server.remove(c)
	credits := rt.NewCredits(FramesInFlight)
	for {
		data, err := c.conn.Read()
		if err != nil {
			if fault := wsconn.Fault(err); fault != nil {
				c.fault(fault)
			}
			c.session.Send(&msg.CloseSession{})
			return
		}
		if c.goodbye.Load() == nil && credits.Take(c.ended) {
			c.take(data, credits)
		}
	}
}

func (c *client) fault(err error) {
	c.sys.Log().Error(fmt.Sprintf(`[broker] client socket error on slot "%s": %v`, c.slot, err))
}

func (c *client) take(data []byte, credit msg.Credit) {
	f, err := wire.Scan(data)
	switch {
	case errors.Is(err, wire.ErrUTF8):
		credit.Give()
		c.fault(fmt.Errorf("a message is %w", err))
		c.end(wire.CloseInvalidText, "Invalid UTF-8 in a message")
	case err != nil:
		credit.Give()
		c.send(wire.Unscannable(err).Response(nil))
	case f.Shape == wire.Array:
		c.session.Send(&msg.ClientBatch{Array: f, Sink: sink{c}, Credit: credit})
	default:
		c.session.Send(&msg.ClientFrame{Frame: f, Sink: sink{c}, Credit: credit})
	}
}

func (c *client) send(frame []byte) { c.outbox.Push(rt.Item{Frame: frame}) }

func (c *client) write(batch []rt.Item) error {
	return c.conn.WriteBatch(func(write func([]byte) error) error {
		for _, item := range batch {
			if err := write(item.Frame); err != nil {
				return err
			}
		}
		return nil
	})
}

// writeFailed cuts the connection. A client that took nothing for wsconn.WriteTimeout
// is a slow one as well, unless it is being closed for that already.
func (c *client) writeFailed(err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) && c.goodbye.Load() == nil {
		c.countSlow()
	}
	c.conn.Terminate()
}

func (c *client) countSlow() {
	c.server.slow.Closed()
	c.sys.Log().Warn(fmt.Sprintf(`[broker] a WebSocket client of slot "%s" was closed: it reads too slowly`, c.slot))
}

// tooSlow drops what waits. The close frame goes behind the batch that is being
// written, if the client takes that within wsconn.WriteTimeout.
func (c *client) tooSlow() {
	c.countSlow()
	c.outbox.Close()
	c.end(wire.CloseTryLater, "The client reads too slowly")
}

// end ends the session, and the socket with this close frame. The first reason
// counts.
func (c *client) end(code int, reason string) {
	c.goodbye.CompareAndSwap(nil, &farewell{code, reason})
	c.session.Send(&msg.CloseSession{})
}

// sessionEnded says goodbye once what the session had to say is written.
func (c *client) sessionEnded() {
	c.stopPings()
	close(c.ended)
	bye := c.goodbye.Load()
	switch {
	case bye != nil:
	case c.server.stopping.Load():
		bye = &farewell{wire.CloseGoingAway, stopReason}
	default: // the socket is closed already, or the actor crashed
		bye = &farewell{wire.CloseInternalError, "The session failed; connect again"}
	}
	c.outbox.Finish(func() { c.conn.Close(bye.code, bye.reason) })
}

// sink answers the client's frames on the socket.
type sink struct{ c *client }

// Reply implements msg.Sink.
func (s sink) Reply(frame []byte) { s.c.send(frame) }

// Event implements msg.Sink; the stream is always open, so it is never used.
func (s sink) Event(frame []byte, _ mcp.Class) { s.c.send(frame) }

// Accepted implements msg.Sink.
func (s sink) Accepted() {}

// Refuse implements msg.Sink.
func (s sink) Refuse(err *wire.Error) { s.c.send(err.Response(nil)) }

// Closed implements msg.Sink: the close frame says it.
func (s sink) Closed() {}
