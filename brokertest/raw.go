package brokertest

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// WebSocket opcodes for Raw.Frame.
const (
	OpContinuation = 0x0
	OpText         = 0x1
	OpBinary       = 0x2
	OpClose        = 0x8
	OpPing         = 0x9
	OpPong         = 0xA
)

// Raw is a WebSocket peer that writes its frames by hand, for what no library
// would send. Nothing is read, and so no ping answered, unless the test reads.
type Raw struct {
	t    testing.TB
	conn net.Conn
	r    *bufio.Reader

	Header http.Header // of the 101 answer
}

// DialRaw connects to a WebSocket URL. The target of the URL is sent as it is
// spelled.
func DialRaw(t testing.TB, target string) *Raw {
	t.Helper()
	return RawVia(t, target, (&net.Dialer{}).DialContext)
}

// RawVia is DialRaw over another network.
func RawVia(t testing.TB, target string, dial DialFunc) *Raw {
	t.Helper()
	host, path, _ := strings.Cut(strings.TrimPrefix(target, "ws://"), "/")
	conn, err := dial(t.Context(), "tcp", host)
	if err != nil {
		t.Fatalf("dial %s: %v", target, err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	r := &Raw{t: t, conn: conn, r: bufio.NewReader(conn)}
	r.Write([]byte("GET /" + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"))
	resp, err := http.ReadResponse(r.r, nil)
	if err != nil {
		t.Fatalf("handshake with %s: %v", target, err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("handshake with %s: %s", target, resp.Status)
	}
	r.Header = resp.Header
	return r
}

func dialTCP(t testing.TB, host string) net.Conn {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", host)
	if err != nil {
		t.Fatalf("dial %s: %v", host, err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// Frame writes one masked frame; the first byte is used as it is, so fin and the
// reserved bits belong to it.
func (r *Raw) Frame(first byte, payload []byte) {
	r.t.Helper()
	r.Write(AppendFrame(nil, first, payload))
}

// Text writes one text message in one frame.
func (r *Raw) Text(message string) { r.t.Helper(); r.Frame(0x80|OpText, []byte(message)) }

// AppendFrame appends a masked frame whose mask is zero.
func AppendFrame(b []byte, first byte, payload []byte) []byte {
	const masked = 0x80
	b = append(b, first)
	switch n := len(payload); {
	case n < 126:
		b = append(b, masked|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, masked|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, masked|127), uint64(n))
	}
	return append(append(b, 0, 0, 0, 0), payload...)
}

// Write writes bytes as they are.
func (r *Raw) Write(b []byte) {
	r.t.Helper()
	_ = r.conn.SetWriteDeadline(time.Now().Add(patience))
	if _, err := r.conn.Write(b); err != nil {
		r.t.Fatalf("write to the broker: %v", err)
	}
}

// TryWrite is Write to a broker that may have closed.
func (r *Raw) TryWrite(b []byte) error {
	_ = r.conn.SetWriteDeadline(time.Now().Add(patience))
	_, err := r.conn.Write(b)
	return err
}

// Read returns the next frame of the broker.
func (r *Raw) Read() (opcode byte, payload []byte, err error) {
	return r.read(time.Now().Add(patience))
}

func (r *Raw) read(until time.Time) (opcode byte, payload []byte, err error) {
	_ = r.conn.SetReadDeadline(until)
	var head [10]byte
	if _, err := io.ReadFull(r.r, head[:2]); err != nil {
		return 0, nil, err
	}
	if head[0]&0xF0 != 0x80 || head[1]&0x80 != 0 {
		return 0, nil, fmt.Errorf("frame header %x: want fin, no reserved bits, no mask", head[:2])
	}
	n := uint64(head[1])
	switch n {
	case 126:
		_, err = io.ReadFull(r.r, head[2:4])
		n = uint64(binary.BigEndian.Uint16(head[2:4]))
	case 127:
		_, err = io.ReadFull(r.r, head[2:10])
		n = binary.BigEndian.Uint64(head[2:10])
	}
	if err != nil {
		return 0, nil, err
	}
	payload = make([]byte, n)
	_, err = io.ReadFull(r.r, payload)
	return head[0] & 0x0F, payload, err
}

// Closed reads up to the close frame and answers it. It returns how many
// messages came before; the code is 1006 when the connection broke.
func (r *Raw) Closed() (code int, reason string, messages int) {
	r.t.Helper()
	until := time.Now().Add(patience)
	for {
		opcode, payload, err := r.read(until)
		var network net.Error
		switch {
		case errors.As(err, &network) && network.Timeout():
			r.t.Fatalf("the connection is still open after %s", patience)
		case err != nil:
			return 1006, "", messages
		case opcode == OpText:
			messages++
		case opcode == OpClose && len(payload) < 2:
			return 1005, "", messages
		case opcode == OpClose:
			_ = r.TryWrite(AppendFrame(nil, 0x80|OpClose, payload[:2]))
			return int(binary.BigEndian.Uint16(payload)), string(payload[2:]), messages
		}
	}
}

// Drop cuts the connection.
func (r *Raw) Drop() { _ = r.conn.Close() }

// Exchange sends the bytes of one HTTP request and reads the answer. They need
// not be valid HTTP.
func (b *Broker) Exchange(t testing.TB, request string) Answer {
	t.Helper()
	conn := dialTCP(t, b.Host())
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	go func() { _, _ = io.WriteString(conn, request) }() // an early answer may stop the reading
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: methodOf(request)})
	if err != nil {
		t.Fatalf("answer to %.100q: %v", request, err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return Answer{resp.StatusCode, resp.Header, string(body)}
}

func methodOf(request string) string {
	method, _, _ := strings.Cut(request, " ")
	return method
}

// Host is the address the broker listens on.
func (b *Broker) Host() string { return b.Addr().String() }

// Refused dials a WebSocket URL that the broker refuses, and returns the answer.
func (b *Broker) Refused(t testing.TB, target string, extra ...string) Answer {
	t.Helper()
	request := "GET " + target + " HTTP/1.1\r\nHost: " + b.Host() + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
	for _, line := range extra {
		request += line + "\r\n"
	}
	return b.Exchange(t, request+"\r\n")
}

// ask bounds a question to the broker.
func ask(t testing.TB) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(t.Context()), patience)
}
