package scenarios

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// valve lets a peer stop reading its connections without closing them: to the
// broker it looks like a process that hangs, or a cable that was pulled.
type valve struct {
	mu     sync.Mutex
	shut   chan struct{} // nil while open; closed to open it
	unread chan struct{} // of the present silence; closed when bytes came in
}

// silence stops all reading.
func (v *valve) silence() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.shut == nil {
		v.shut, v.unread = make(chan struct{}), make(chan struct{})
	}
}

// resume goes on reading.
func (v *valve) resume() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.shut != nil {
		close(v.shut)
		v.shut = nil
	}
}

// arrived is closed once a silent peer has bytes it did not read. It is nil for
// a peer that was never silent.
func (v *valve) arrived() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.unread
}

// noteUnread returns what to wait for before the bytes may be delivered, nil
// when the peer reads.
func (v *valve) noteUnread(n int) <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.shut == nil {
		return nil
	}
	if n > 0 {
		select {
		case <-v.unread:
		default:
			close(v.unread)
		}
	}
	return v.shut
}

// client returns an HTTP client whose connections go through the valve.
func (v *valve) client() *http.Client {
	var dialer net.Dialer
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &valvedConn{Conn: conn, valve: v, closed: make(chan struct{})}, nil
		},
	}}
}

type valvedConn struct {
	net.Conn
	valve  *valve
	once   sync.Once
	closed chan struct{}
}

// Read implements net.Conn. While the valve is shut it holds back what came in,
// the end of the connection included.
func (c *valvedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	for {
		shut := c.valve.noteUnread(n)
		if shut == nil {
			return n, err
		}
		select {
		case <-shut:
		case <-c.closed:
			return 0, net.ErrClosed
		}
	}
}

// Close implements net.Conn.
func (c *valvedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
