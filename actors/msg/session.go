package msg

import (
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/wire"
)

// Sink takes what one request of a client comes to. Its methods never block and
// are called by the session's actor only.
type Sink interface {
	// Reply delivers the answer; it is the last call.
	Reply(frame []byte)
	// Event delivers a message that belongs to the request, before its answer.
	// It is called only where the frame said Streams.
	Event(frame []byte, class mcp.Class)
	// Accepted: nothing more will come, the message has been handed over.
	Accepted()
	// Refuse: the message was not taken.
	Refuse(err *wire.Error)
	// Closed: the session ended with the request in flight.
	Closed()
}

// Stream carries messages nobody asked for to one client. Its methods never
// block.
type Stream interface {
	// Event queues a message; false when the stream is closed.
	Event(id uint64, frame []byte, class mcp.Class, key string) bool
	// End closes the stream after what is queued.
	End()
}

// ClientFrame is one scanned message of the client. Streams tells that the sink
// can carry events before the answer.
type ClientFrame struct {
	Frame   wire.Frame
	Sink    Sink
	Streams bool
	Credit  Credit // nil where the transport needs none
}

// ClientBatch is a scanned JSON array of the client.
type ClientBatch struct {
	Array  wire.Frame
	Sink   Sink
	Credit Credit
}

// SinkGone: the client broke off the request.
type SinkGone struct {
	control
	Sink Sink
}

// StreamOpened: the client listens. It replaces the stream before it.
type StreamOpened struct {
	control
	Stream    Stream
	Resume    bool // LastEvent was given
	LastEvent uint64
}

// StreamGone: the client does not listen any more.
type StreamGone struct {
	control
	Stream Stream
}

// CloseSession ends the session; Done, if not nil, is closed when its callers
// have been told.
type CloseSession struct {
	control
	Done chan<- struct{}
}

// IdleDue is the session's own timer.
type IdleDue struct {
	control
	Since time.Time // the last use the timer was armed for
}
