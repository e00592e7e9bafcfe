package session

import (
	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// batch collects the answers to one JSON array. Only revision 2025-03-26 knows
// batches; in any other session they are refused whole (F-19).
type batch struct {
	missing int
	answers [][]byte
}

// add takes one answer and reports whether it was the last.
func (b *batch) add(frame []byte) bool {
	b.answers = append(b.answers, frame)
	b.missing--
	return b.missing == 0
}

func (b *batch) join() []byte {
	out := []byte{'['}
	for i, answer := range b.answers {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, answer...)
	}
	return append(out, ']')
}

func (s *State) clientBatch(m *msg.ClientBatch) {
	if !mcp.AllowsBatch(s.revision) {
		s.refuse(m.Sink, wire.NoBatch())
		return
	}
	var frames []wire.Frame
	wire.Elements(m.Array.Bytes, func(raw []byte) {
		f, err := wire.Scan(raw)
		if err != nil { // a duplicate member: refused as one message
			f = wire.Frame{Bytes: raw}
		}
		frames = append(frames, f)
	})
	switch {
	case len(frames) == 0:
		s.refuse(m.Sink, wire.NotAMessage())
	case len(frames) > mcp.MaxBatch:
		s.refuse(m.Sink, wire.BatchTooLarge(len(frames), mcp.MaxBatch))
	default:
		s.split(frames, m.Sink)
	}
}

func (s *State) split(frames []wire.Frame, sink msg.Sink) {
	b := &batch{}
	for i := range frames {
		if f := &frames[i]; !f.IsNotification() && !f.IsResponse() {
			b.missing++
		}
	}
	if b.missing == 0 {
		s.accept(sink)
	}
	for i := range frames {
		switch f := &frames[i]; {
		case f.IsRequest():
			s.request(f, sink, false, b)
		case f.IsNotification():
			s.note(f)
		case f.IsResponse():
			s.response(f)
		default:
			s.finish(&inflight{sink: sink, batch: b}, malformed(f).Response(nil))
		}
	}
}
