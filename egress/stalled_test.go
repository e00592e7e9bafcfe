//go:build unix

package egress_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpbroker/brokertest"
)

// stalled is a client that reads only when the test does: a socket or a stream
// with so little room in the system's buffers that what the client leaves unread
// is the broker's to hold.
type stalled interface {
	// arrived returns once the broker has begun to write something unread.
	arrived()
	// next is the next message; end tells how the connection ended instead, with
	// the close code of a socket, or 0 for the orderly end of a stream.
	next() (message string, end *ending)
}

type ending struct {
	code   int
	reason string
}

// tightConn has small buffers at both ends: the receive buffer is the client's
// own, the broker's send buffer follows the segment size.
type tightConn struct {
	net.Conn
	t testing.TB
	r *bufio.Reader
}

func dialTight(t testing.TB, address string) *tightConn {
	t.Helper()
	dialer := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096)
			_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, 1024)
		})
	}}
	conn, err := dialer.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatalf("dial %s: %v", address, err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &tightConn{conn, t, bufio.NewReaderSize(conn, 256)}
}

// Read implements net.Conn.
func (c *tightConn) Read(p []byte) (int, error) { return c.r.Read(p) }

func (c *tightConn) arrived() {
	c.t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(loadPatience))
	if _, err := c.r.Peek(1); err != nil {
		c.t.Fatalf("the broker wrote nothing: %v", err)
	}
}

// stalledSocket is a raw WebSocket client.
type stalledSocket struct {
	*brokertest.Raw
	*tightConn
}

func openStalledSocket(t testing.TB, b *brokertest.Broker, slot string) stalledSocket {
	t.Helper()
	s := stalledSocket{}
	s.Raw = brokertest.RawVia(t, b.ClientURL(slot), func(_ context.Context, _, address string) (net.Conn, error) {
		s.tightConn = dialTight(t, address)
		return s.tightConn, nil
	})
	return s
}

func (s stalledSocket) next() (string, *ending) {
	for {
		opcode, payload, err := s.Raw.Read()
		switch {
		case err != nil:
			return "", &ending{code: 1006}
		case opcode == brokertest.OpText:
			return string(payload), nil
		case opcode == brokertest.OpClose && len(payload) >= 2:
			_ = s.TryWrite(brokertest.AppendFrame(nil, 0x80|brokertest.OpClose, payload[:2]))
			return "", &ending{int(payload[0])<<8 | int(payload[1]), string(payload[2:])}
		}
	}
}

// stalledStream is a client of an event stream.
type stalledStream struct {
	*tightConn
	lead   string // the first block
	lastID string // of the events read
	lines  *bufio.Reader
}

func openStalledStream(t testing.TB, b *brokertest.Broker, target, session string) *stalledStream {
	t.Helper()
	s := &stalledStream{tightConn: dialTight(t, b.Host())}
	request := "GET " + target + " HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n"
	if session != "" {
		request += "Mcp-Session-Id: " + session + "\r\n"
	}
	if _, err := io.WriteString(s.Conn, request+"\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(s.r, nil)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %v %v", target, resp, err)
	}
	t.Cleanup(func() { _ = s.Close(); _ = resp.Body.Close() })
	s.lines = bufio.NewReaderSize(resp.Body, 16)
	s.lead, _ = s.block()
	return s
}

func (s *stalledStream) block() (string, error) {
	_ = s.SetReadDeadline(time.Now().Add(loadPatience))
	var block strings.Builder
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil || line == "\n" {
			return strings.TrimSuffix(block.String(), "\n"), err
		}
		block.WriteString(line)
	}
}

func (s *stalledStream) next() (string, *ending) {
	block, err := s.block()
	switch {
	case errors.Is(err, io.EOF) && block == "":
		return "", &ending{}
	case err != nil:
		return "", &ending{1006, fmt.Sprintf("%v behind %.100q", err, block)}
	}
	head, data, ok := strings.Cut(block, "data: ")
	if !ok {
		return s.next() // a comment
	}
	if _, id, ok := strings.Cut(head, "id: "); ok {
		s.lastID = strings.TrimSuffix(id, "\n")
	}
	return data, nil
}
