package firmware

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
)

// wsServer is a WebSocket server written by hand after RFC 6455, for devices to
// connect to. It takes nothing but what the RFC and the device's specification
// allow, and sends whatever a test wants.
type wsServer struct {
	t    *testing.T
	ln   net.Listener
	keys map[string]bool // Sec-WebSocket-Key values so far
}

// smallWindow makes a peer that does not read be noticed after little data.
func smallWindow(_, _ string, c syscall.RawConn) error {
	var err error
	return errors.Join(c.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096)
	}), err)
}

func listen(t *testing.T) *wsServer {
	t.Helper()
	ln, err := (&net.ListenConfig{Control: smallWindow}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	return &wsServer{t: t, ln: ln, keys: map[string]bool{}}
}

func (s *wsServer) port() string {
	return strconv.Itoa(s.ln.Addr().(*net.TCPAddr).Port)
}

// accept takes the next connection, before its handshake.
func (s *wsServer) accept() *wsPeer {
	s.t.Helper()
	_ = s.ln.(*net.TCPListener).SetDeadline(time.Now().Add(patience))
	conn, err := s.ln.Accept()
	if err != nil {
		s.t.Fatalf("no device has connected: %v", err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	return &wsPeer{t: s.t, server: s, conn: conn, r: bufio.NewReader(conn), masks: map[[4]byte]bool{}}
}

// serve takes the next connection and completes its handshake.
func (s *wsServer) serve(path string) *wsPeer {
	s.t.Helper()
	p := s.accept()
	p.write(accepted(p.request(path)))
	return p
}

// wsPeer is a connection with a device.
type wsPeer struct {
	t      *testing.T
	server *wsServer
	conn   net.Conn
	r      *bufio.Reader
	header map[string]string // of the request, names in lower case
	masks  map[[4]byte]bool
	again  int // masks that were there before
}

// request reads the request of a device and returns its key. Every line of it
// must be as specified.
func (p *wsPeer) request(path string) (key string) {
	p.t.Helper()
	_ = p.conn.SetReadDeadline(time.Now().Add(patience))
	if got, want := p.line(), "GET "+path+" HTTP/1.1"; got != want {
		p.t.Fatalf("request line %q, want %q", got, want)
	}
	p.header = map[string]string{}
	for line := p.line(); line != ""; line = p.line() {
		name, value, ok := strings.Cut(line, ": ")
		name = strings.ToLower(name)
		if _, twice := p.header[name]; !ok || twice {
			p.t.Fatalf("header line %q: malformed, or there twice", line)
		}
		p.header[name] = value
	}
	for name, want := range map[string]string{
		"host": "127.0.0.1:" + p.server.port(), "upgrade": "websocket", "connection": "Upgrade", "sec-websocket-version": "13",
	} {
		if p.header[name] != want {
			p.t.Errorf("header %s: %q, want %q", name, p.header[name], want)
		}
	}
	for _, name := range []string{"origin", "sec-websocket-protocol", "sec-websocket-extensions"} {
		if value, sent := p.header[name]; sent {
			p.t.Errorf("header %s: %q, want none", name, value)
		}
	}
	if p.header["user-agent"] == "" {
		p.t.Error("no User-Agent")
	}
	key = p.header["sec-websocket-key"]
	if raw, err := base64.StdEncoding.Strict().DecodeString(key); err != nil || len(raw) != 16 || p.server.keys[key] {
		p.t.Errorf("Sec-WebSocket-Key %q: want 16 fresh bytes in base64", key)
	}
	p.server.keys[key] = true
	return key
}

// line reads a line that ends in CRLF.
func (p *wsPeer) line() string {
	p.t.Helper()
	text, err := p.r.ReadString('\n')
	line, ok := strings.CutSuffix(text, "\r\n")
	if err != nil || !ok {
		p.t.Fatalf("line %q of the request: %v", text, err)
	}
	return line
}

func acceptFor(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// accepted is the answer that completes a handshake.
func accepted(key string) string {
	return "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + acceptFor(key) + "\r\n\r\n"
}

// write sends bytes as they are.
func (p *wsPeer) write(text string) {
	p.t.Helper()
	_ = p.conn.SetWriteDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(p.conn, text); err != nil {
		p.t.Fatalf("write to the device: %v", err)
	}
}

// Opcodes; a first byte has fin besides.
const (
	opContinuation = 0x0
	opText         = 0x1
	opBinary       = 0x2
	opClose        = 0x8
	opPing         = 0x9
	opPong         = 0xA
	fin            = 0x80
)

// frame is the bytes of one server frame.
func frame(first byte, payload string) string {
	b := []byte{first}
	switch n := len(payload); {
	case n < 126:
		b = append(b, byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 127), uint64(n))
	}
	return string(b) + payload
}

func closeFrame(code uint16, reason string) string {
	return frame(fin|opClose, string(binary.BigEndian.AppendUint16(nil, code))+reason)
}

// read returns the next frame of the device. It must be final, masked with a mask
// of its own, of the shortest length form, and UTF-8 if it is text.
func (p *wsPeer) read() (opcode byte, payload string, err error) {
	_ = p.conn.SetReadDeadline(time.Now().Add(patience))
	var head [2]byte
	if _, err := io.ReadFull(p.r, head[:]); err != nil {
		return 0, "", err
	}
	if head[0]&0xF0 != fin || head[1]&0x80 == 0 {
		return 0, "", fmt.Errorf("frame header %x: want fin, no reserved bits, a mask", head)
	}
	n := uint64(head[1] & 0x7F)
	if n, err = p.length(n); err != nil {
		return 0, "", err
	}
	var mask [4]byte
	if _, err := io.ReadFull(p.r, mask[:]); err != nil {
		return 0, "", err
	}
	if p.masks[mask] {
		p.again++
	}
	if p.again > 1 { // among thousands of random ones, two may be equal
		return 0, "", fmt.Errorf("mask %x: masks are used again", mask)
	}
	p.masks[mask] = true
	body := make([]byte, n)
	if _, err := io.ReadFull(p.r, body); err != nil {
		return 0, "", err
	}
	for i := range body {
		body[i] ^= mask[i%4]
	}
	opcode = head[0] & 0x0F
	return opcode, string(body), p.judge(opcode, body)
}

func (p *wsPeer) length(n uint64) (uint64, error) {
	var ext [8]byte
	switch n {
	case 126:
		_, err := io.ReadFull(p.r, ext[6:])
		n = binary.BigEndian.Uint64(ext[:])
		if err == nil && n < 126 {
			err = fmt.Errorf("length %d in the 16-bit form", n)
		}
		return n, err
	case 127:
		_, err := io.ReadFull(p.r, ext[:])
		n = binary.BigEndian.Uint64(ext[:])
		if err == nil && (n < 1<<16 || n > 1<<24) {
			err = fmt.Errorf("length %d in the 64-bit form", n)
		}
		return n, err
	}
	return n, nil
}

func (p *wsPeer) judge(opcode byte, body []byte) error {
	switch opcode {
	case opText:
		if !utf8.Valid(body) {
			return fmt.Errorf("text %q is not UTF-8", body)
		}
	case opClose, opPing, opPong:
		if len(body) > 125 {
			return fmt.Errorf("control frame of %d bytes", len(body))
		}
	default:
		return fmt.Errorf("opcode %d", opcode)
	}
	return nil
}

// text returns the next text message; pings before it are answered.
func (p *wsPeer) text() string {
	p.t.Helper()
	for {
		opcode, payload, err := p.read()
		switch {
		case err != nil:
			p.t.Fatalf("read a message of the device: %v", err)
		case opcode == opText:
			return payload
		case opcode == opPing:
			p.write(frame(fin|opPong, payload))
		default:
			p.t.Fatalf("the device sent opcode %d %q", opcode, payload)
		}
	}
}

// closed reads up to the close frame of the device and returns its payload. Text
// before it is dropped.
func (p *wsPeer) closed() (code int, rest string) {
	p.t.Helper()
	for {
		opcode, payload, err := p.read()
		if err != nil {
			p.t.Fatalf("read the close frame of the device: %v", err)
		}
		if opcode == opClose {
			if len(payload) < 2 {
				return 1005, payload
			}
			return int(binary.BigEndian.Uint16([]byte(payload))), payload[2:]
		}
	}
}

// gone waits until the device has closed its side, whatever it sends before.
func (p *wsPeer) gone() {
	p.t.Helper()
	_ = p.conn.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.Copy(io.Discard, p.r); errors.Is(err, os.ErrDeadlineExceeded) {
		p.t.Fatalf("the device still holds the connection after %s", patience)
	}
}

// drip sends bytes one by one.
func (p *wsPeer) drip(ctx context.Context, text string, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for b := range bytes.SplitSeq([]byte(text), nil) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if _, err := p.conn.Write(b); err != nil {
			return
		}
	}
}
