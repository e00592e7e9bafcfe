package wsclient

import (
	"errors"
	"fmt"
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
// an outbox that takes what the session has to say.
type client struct {
	sys       *rt.System
	conn      *wsconn.Conn
	slot      string
	keepAlive time.Duration
	session   *rt.Ref
	outbox    *rt.Outbox
	ended     chan struct{} // closed with the session

	unanswered atomic.Bool // a ping is out
	mu         sync.Mutex  // guards timer
	timer      *time.Timer
}

func newClient(sys *rt.System, conn *wsconn.Conn, slot string, keepAlive time.Duration) *client {
	c := &client{sys: sys, conn: conn, slot: slot, keepAlive: keepAlive, ended: make(chan struct{})}
	c.outbox = rt.NewOutbox(rt.OutboxConfig{
		Limit: OutboxBytes, Run: sys.Go,
		Write:   c.write,
		Failed:  func(error) { conn.Terminate() },
		Overrun: c.tooSlow,
	})
	return c
}

func (c *client) start(session *rt.Ref) {
	c.session = session
	session.Send(&msg.StreamOpened{Stream: stream{c}})
	if c.keepAlive > 0 {
		c.mu.Lock()
		c.timer = time.AfterFunc(c.keepAlive, c.ping)
		c.mu.Unlock()
	}
	if c.conn.Open() != nil {
		c.conn.Terminate()
	}
	go c.read()
}

// read is the one goroutine that reads the socket.
func (c *client) read() {
	credits := rt.NewCredits(FramesInFlight)
	for {
		data, err := c.conn.Read()
		if err != nil {
			if fault := wsconn.Fault(err); fault != nil {
				c.sys.Log().Error(fmt.Sprintf(`[broker] client socket error on slot "%s": %v`, c.slot, fault))
			}
			c.session.Send(&msg.CloseSession{})
			return
		}
		if !credits.Take(c.ended) {
			return
		}
		c.take(data, credits)
	}
}

func (c *client) take(data []byte, credit msg.Credit) {
	f, err := wire.Scan(data)
	switch {
	case errors.Is(err, wire.ErrUTF8):
		credit.Give()
		c.sys.Log().Error(fmt.Sprintf(`[broker] client socket error on slot "%s": a message is %v`, c.slot, err))
		c.outbox.Finish(func() { c.conn.Close(wire.CloseInvalidText, "Invalid UTF-8 in a message") })
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

func (c *client) tooSlow() {
	c.sys.Log().Warn(fmt.Sprintf(`[broker] a WebSocket client of slot "%s" was closed: it reads too slowly`, c.slot))
	c.sys.Go(func() { c.conn.Close(wire.CloseTryLater, "The client reads too slowly") })
}

// sessionEnded says goodbye once what the session had to say is written.
func (c *client) sessionEnded() {
	c.mu.Lock()
	if c.timer != nil {
		c.timer.Stop()
	}
	c.mu.Unlock()
	close(c.ended)
	c.outbox.Finish(func() { c.conn.Close(wire.CloseGoingAway, "The session has ended") })
}

// ping keeps proxies from closing a silent socket (F-43) and cuts a client that
// left the previous ping unanswered.
func (c *client) ping() {
	select {
	case <-c.ended:
		return
	default:
	}
	if c.unanswered.Swap(true) {
		c.conn.Terminate()
		return
	}
	c.sys.Go(func() {
		if c.conn.Ping() == nil {
			c.unanswered.Store(false)
		}
	})
	c.mu.Lock()
	c.timer.Reset(c.keepAlive)
	c.mu.Unlock()
}

// sink answers the client's frames on the socket.
type sink struct{ c *client }

// Reply implements msg.Sink.
func (s sink) Reply(frame []byte) { s.c.send(frame) }

// Event implements msg.Sink; the stream is always open, so it is never used.
func (s sink) Event(frame []byte) { s.c.send(frame) }

// Accepted implements msg.Sink.
func (s sink) Accepted() {}

// Refuse implements msg.Sink.
func (s sink) Refuse(err *wire.Error) { s.c.send(err.Response(nil)) }

// Closed implements msg.Sink: the close frame says it.
func (s sink) Closed() {}

// stream carries what the client did not ask for, on the same socket.
type stream struct{ c *client }

// Event implements msg.Stream.
func (s stream) Event(_ uint64, frame []byte, class mcp.Class, key string) bool {
	return s.c.outbox.Push(rt.Item{Frame: frame, Class: class, Key: key})
}

// End implements msg.Stream: the session ends with its socket.
func (s stream) End() {}
