package wsconn

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// corkConn collects what is written between start and flush, so that a batch of
// messages is one system call. Outside of that, writes pass through: the pongs
// and close frames the library sends on its own.
type corkConn struct {
	net.Conn
	mu     sync.Mutex
	raw    syscall.RawConn // nil where a write cannot be tried without waiting
	corked bool
	buf    *[]byte
	held   []byte // the handshake's answer and what goes behind it, until release

	closing atomic.Bool // a close frame went out
}

// closeFrame is the first byte of one. A frame of the library's own is one write.
const closeFrame = 0x88

// corkSize is where a batch is written out although it is not complete; a write
// of that size passes by the buffer.
const corkSize = 16 << 10

var corkBuffers = sync.Pool{New: func() any { b := make([]byte, 0, corkSize); return &b }}

func newCorkConn(conn net.Conn, answer []byte) *corkConn {
	c := &corkConn{Conn: conn, held: answer}
	if sc, ok := conn.(syscall.Conn); ok {
		c.raw, _ = sc.SyscallConn()
	}
	return c
}

// release writes what has been held back; writes go through from then on.
func (c *corkConn) release() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	held := c.held
	c.held = nil
	return c.bounded(func() error { _, err := c.Conn.Write(held); return err })
}

func (c *corkConn) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.corked = true
	c.buf = corkBuffers.Get().(*[]byte)
}

func (c *corkConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held != nil {
		c.held = append(c.held, p...)
		return len(p), nil
	}
	if !c.corked {
		if len(p) > 0 && p[0] == closeFrame {
			c.closing.Store(true) // before the peer can see it
		}
		return c.Conn.Write(p)
	}
	if len(*c.buf)+len(p) > corkSize {
		return len(p), c.spill(p)
	}
	*c.buf = append(*c.buf, p...)
	return len(p), nil
}

// spill writes what is collected and p behind it.
func (c *corkConn) spill(p []byte) error {
	parts := net.Buffers{*c.buf, p}
	if len(*c.buf) == 0 {
		parts = parts[1:]
	}
	err := c.bounded(func() error { _, err := parts.WriteTo(c.Conn); return err })
	*c.buf = (*c.buf)[:0]
	return err
}

// bounded runs a write that may wait for the peer.
func (c *corkConn) bounded(write func() error) error {
	_ = c.SetWriteDeadline(time.Now().Add(WriteTimeout))
	err := write()
	_ = c.SetWriteDeadline(time.Time{})
	return err
}

// writeNow takes off the buffer what the socket accepts without waiting.
func (c *corkConn) writeNow() error {
	if c.raw == nil || c.held != nil || len(*c.buf) == 0 {
		return nil
	}
	n, err := writeWithoutWaiting(c.raw, *c.buf)
	*c.buf = (*c.buf)[:copy(*c.buf, (*c.buf)[n:])]
	return err
}

// flush writes what is collected. What the socket takes at once needs no deadline,
// which is most of what there is to save on a small message.
func (c *corkConn) flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.writeNow()
	if err == nil && len(*c.buf) > 0 {
		err = c.bounded(func() error { _, err := c.Conn.Write(*c.buf); return err })
	}
	c.corked = false
	*c.buf = (*c.buf)[:0]
	corkBuffers.Put(c.buf)
	c.buf = nil
	return err
}
