package provider

import (
	"context"
	"errors"
	"fmt"
)

// Transport carries the JSON-RPC messages of one slot. Its methods may be
// called from any goroutine, callbacks included.
type Transport interface {
	// Connect opens the transport. It returns once the transport is open; the
	// Open callback is then running or about to. ctx bounds the opening only.
	Connect(ctx context.Context) error

	// Send hands over one JSON-RPC message and does not keep frame. While the
	// transport is not open the frame is queued, at most 64 of them. On an open
	// transport Send blocks until the frame is written; after an error it is
	// unknown whether the broker received the frame, and it is not sent again.
	Send(frame []byte) error

	// Close releases the transport and discards queued frames. Events.Close
	// follows if Events.Open was or is about to be called; Close does not wait
	// for it. Closing a closed transport does nothing.
	Close() error
}

// Events are the callbacks of one transport; each may be nil. They never run
// concurrently, nor inside a method of the transport. Every Open is followed by
// exactly one Close.
//
// A callback should return soon: while Message blocks, further frames wait, and
// once too many wait the socket is not read any more. The broker's heartbeat
// pings then go unanswered and it ends the connection.
type Events struct {
	// Message receives one JSON-RPC message, which the callback may keep.
	Message func(frame []byte)
	// Open tells that the transport is open. The broker's refusal, if any,
	// comes later.
	Open func()
	// Error reports why a Direct or Loopback ended (*CloseError, *OverflowError)
	// or that the broker refused something of a Multiplex (*TunnelError). It
	// runs before Close. Without this callback errors are logged.
	Error func(error)
	// Close tells that the connection has gone. A Multiplex is opened again by
	// its Tunnel, the other transports by Connect.
	Close func()
}

var (
	// ErrClosed is returned by methods of a transport that was closed locally.
	ErrClosed = errors.New("provider: transport is closed")
	// ErrConnected is returned by Connect while the transport is connected or
	// connecting, and when another Multiplex of the tunnel has the same slot.
	ErrConnected = errors.New("provider: already connected")
)

// WebSocket close codes a provider meets (RFC 6455 section 7.4).
const (
	closeNormal   = 1000
	closeAbnormal = 1006
	closeRefused  = 1008
	closeTooBig   = 1009
)

// CloseError tells that the connection ended without a local Close and with a
// code other than 1000.
type CloseError struct {
	// Code is the peer's WebSocket close code; 1005 when its close frame had no
	// code, 1006 when the connection broke without a close frame, 1009 also when
	// the peer's frame exceeded the read limit.
	Code int
	// Reason is the peer's text, at most 123 bytes. Empty for 1005 and 1006.
	Reason string
}

func (e *CloseError) Error() string {
	text := fmt.Sprintf("connection closed: %d", e.Code)
	if e.Refused() {
		text += " (policy refusal)"
	}
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// Refused tells whether the broker refused the provider (code 1008). Connecting
// again without a change, or before the slot's holder leaves, ends the same way.
func (e *CloseError) Refused() bool { return e.Code == closeRefused }

// TunnelError is the broker's refusal of a slot, or of something sent for it, on
// a shared socket. The socket and its other slots are not affected, and nothing
// is sent again.
type TunnelError struct {
	Slot    string
	Code    int // JSON-RPC error code: -32000, or -32001 for missing authority
	Message string
}

func (e *TunnelError) Error() string {
	return fmt.Sprintf("Tunnel error %d on provider %q: %s", e.Code, e.Slot, e.Message)
}

// HandshakeError is an HTTP answer other than 101 to the WebSocket handshake:
// 400 for a malformed path, 401 for a missing or wrong credential, 403 for a
// slot this identity may not publish.
type HandshakeError struct {
	Status int
	Body   string // the broker's explanation, at most 1024 bytes
}

func (e *HandshakeError) Error() string {
	text := fmt.Sprintf("broker refused the WebSocket handshake: HTTP %d", e.Status)
	if e.Body != "" {
		text += ": " + e.Body
	}
	return text
}

// permanent tells whether repeating the same handshake is pointless.
func (e *HandshakeError) permanent() bool { return e.Status >= 400 && e.Status < 500 }
