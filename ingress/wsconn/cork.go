package wsconn

import (
	"net"
	"sync"
	"time"
)

// corkConn collects what is written between start and flush, so that a batch of
// messages is one system call. Outside of that, writes pass through: the pongs
// and close frames the library sends on its own.
type corkConn struct {
	net.Conn
	mu     sync.Mutex
	corked bool
	buf    *[]byte
	held   []byte // the handshake's answer and what goes behind it, until release
}

// corkSize is where a batch is written out although it is not complete; a write
// of that size passes by the buffer.
const corkSize = 16 << 10

var corkBuffers = sync.Pool{New: func() any { b := make([]byte, 0, corkSize); return &b }}

// release writes what has been held back; writes go through from then on.
func (c *corkConn) release(deadline time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	held := c.held
	c.held = nil
	_ = c.SetWriteDeadline(deadline)
	_, err := c.Conn.Write(held)
	if !c.corked {
		_ = c.SetWriteDeadline(time.Time{})
	}
	return err
}

func (c *corkConn) start(deadline time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.SetWriteDeadline(deadline)
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
	_, err := parts.WriteTo(c.Conn)
	*c.buf = (*c.buf)[:0]
	return err
}

func (c *corkConn) flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.corked = false
	var err error
	if len(*c.buf) > 0 {
		_, err = c.Conn.Write(*c.buf)
	}
	*c.buf = (*c.buf)[:0]
	corkBuffers.Put(c.buf)
	c.buf = nil
	_ = c.SetWriteDeadline(time.Time{})
	return err
}
