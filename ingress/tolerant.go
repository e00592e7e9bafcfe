package ingress

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"syscall"
)

// TolerantListener accepts connections whose first request line may hold
// malformed percent escapes. net/http refuses such a target before any handler
// runs, but for a slot name the raw text is meant (spec 01 1.1, F-02), so the
// stray percent signs of the first request line are escaped on their way in. On
// later requests of the same connection net/http's 400 stands.
type TolerantListener struct{ net.Listener }

// Accept implements net.Listener.
func (l TolerantListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &tolerantConn{Conn: conn}, nil
}

// maxRequestLine is how much of a request line is looked at; a longer one is
// left to the server's own limit.
const maxRequestLine = 8 << 10

// tolerantConn is read by one goroutine at a time, as net/http does.
type tolerantConn struct {
	net.Conn
	started bool
	pending []byte
	err     error // met while the first line was read

	sent, mended string // target of the first request, where the two differ
}

// SyscallConn implements syscall.Conn where the connection below does.
func (c *tolerantConn) SyscallConn() (syscall.RawConn, error) {
	if sc, ok := c.Conn.(syscall.Conn); ok {
		return sc.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

type connKey struct{}

// ConnContext makes RawTarget work; it goes into http.Server.
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// RawTarget returns the request target as the client sent it.
func RawTarget(r *http.Request) string {
	if c, ok := r.Context().Value(connKey{}).(*tolerantConn); ok && c.mended == r.RequestURI && c.sent != "" {
		return c.sent
	}
	return r.RequestURI
}

func (c *tolerantConn) Read(p []byte) (int, error) {
	if !c.started {
		n, err := c.Conn.Read(p)
		if n == 0 {
			return n, err
		}
		c.started = true
		if wholeLine(p[:n]) {
			return n, err
		}
		c.first(p[:n], err)
	}
	if len(c.pending) > 0 {
		n := copy(p, c.pending)
		c.pending = c.pending[n:]
		if len(c.pending) == 0 {
			c.pending = nil
		}
		return n, nil
	}
	if c.err != nil {
		err := c.err
		c.err = nil
		return 0, err
	}
	return c.Conn.Read(p)
}

// wholeLine reports the ordinary case: the request line is complete and has no
// percent sign at all.
func wholeLine(b []byte) bool {
	line, _, found := bytes.Cut(b, []byte{'\n'})
	return found && bytes.IndexByte(line, '%') < 0
}

// first reads the request line to its end and mends it.
func (c *tolerantConn) first(head []byte, err error) {
	b := bytes.Clone(head)
	var chunk [512]byte
	for err == nil && bytes.IndexByte(b, '\n') < 0 && len(b) < maxRequestLine {
		var n int
		n, err = c.Conn.Read(chunk[:])
		b = append(b, chunk[:n]...)
	}
	c.pending, c.err = mendRequestLine(b), err
	if len(c.pending) != len(b) {
		c.sent, c.mended = target(b), target(c.pending)
	}
}

func target(request []byte) string {
	line, _, _ := bytes.Cut(request, []byte{'\n'})
	fields := bytes.Fields(line)
	if len(fields) < 2 {
		return ""
	}
	return string(fields[1])
}

// mendRequestLine escapes the percent signs of the first line that begin no
// valid escape.
func mendRequestLine(b []byte) []byte {
	line, rest, found := bytes.Cut(b, []byte{'\n'})
	if !found {
		return b
	}
	var out strings.Builder
	for i := 0; i < len(line); i++ {
		out.WriteByte(line[i])
		if line[i] == '%' && (i+2 >= len(line) || !isHex(line[i+1]) || !isHex(line[i+2])) {
			out.WriteString("25")
		}
	}
	out.WriteByte('\n')
	return append([]byte(out.String()), rest...)
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
