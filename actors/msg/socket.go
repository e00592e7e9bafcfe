package msg

import (
	"time"

	"mcpbroker/actors/wire"
)

// SocketFrame is one message a provider socket's reader took off the wire,
// scanned. Exactly one reader posts them, in order.
type SocketFrame struct {
	control
	Frame    wire.Frame     // dedicated framing, or what was not an envelope
	Envelope *wire.Envelope // multiplexed framing
	Err      error          // the message does not scan; Head holds its start
	Head     []byte
	Credit   Credit
}

// SocketClosed: the reader ended, How says in words by what. Fault names a protocol
// fault; it is nil for an ordinary close or a lost connection. TooBig is the limit
// in bytes that a message of the peer passed.
type SocketClosed struct {
	control
	Fault  error
	How    string
	TooBig int
}

// HeartbeatDue is the socket's own timer.
type HeartbeatDue struct {
	control
	Sweep uint64
}

// Ponged: the peer answered the ping of this sweep.
type Ponged struct {
	control
	Sweep uint64
}

// PeerTooSlow: what waits for the peer has reached its bound or, where Stuck is set,
// the peer has taken nothing for that long.
type PeerTooSlow struct {
	control
	Stuck time.Duration
}

// CloseSocket asks a socket to say goodbye with this code: the broker stops.
type CloseSocket struct {
	control
	Code   int
	Reason string
}
