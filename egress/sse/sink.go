package sse

import (
	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// take hands a message to the session. What is no JSON at all never gets there:
// its error goes straight to the stream.
func (e *entry) take(body []byte) {
	f, err := wire.Scan(body)
	switch {
	case err != nil:
		e.credits.Give()
		e.send(wire.Unscannable(err).Response(nil))
	case f.Shape == wire.Array:
		e.ref.Send(&msg.ClientBatch{Array: f, Sink: sink{e}, Credit: e.credits})
	default:
		e.ref.Send(&msg.ClientFrame{Frame: f, Sink: sink{e}, Credit: e.credits})
	}
}

func (e *entry) send(frame []byte) { e.stream.Event(0, frame, mcp.Required, "") }

// sink answers posted messages on the stream.
type sink struct{ e *entry }

// Reply implements msg.Sink.
func (s sink) Reply(frame []byte) { s.e.send(frame) }

// Event implements msg.Sink; the stream is always open, so it is never used.
func (s sink) Event(frame []byte, _ mcp.Class) { s.e.send(frame) }

// Accepted implements msg.Sink: the POST has been answered.
func (s sink) Accepted() {}

// Refuse implements msg.Sink.
func (s sink) Refuse(err *wire.Error) { s.e.send(err.Response(nil)) }

// Closed implements msg.Sink: the end of the stream says it.
func (s sink) Closed() {}
