package wire

import (
	"bytes"
	"strconv"
)

// AppendEvent appends one server-sent event that carries frame. A frame is
// valid JSON, in which a line break can only stand between tokens, so breaks
// become spaces and the event stays one data line (F-29). id 0 leaves the id
// field out.
func AppendEvent(b []byte, id uint64, frame []byte) []byte {
	b = append(b, "event: message\n"...)
	if id > 0 {
		b = append(b, "id: "...)
		b = strconv.AppendUint(b, id, 10)
		b = append(b, '\n')
	}
	b = append(b, "data: "...)
	b = append(b, OneLine(frame)...)
	return append(b, "\n\n"...)
}

// OneLine returns frame without raw line breaks. It copies only when there are
// some.
func OneLine(frame []byte) []byte {
	if bytes.IndexByte(frame, '\n') < 0 && bytes.IndexByte(frame, '\r') < 0 {
		return frame
	}
	line := bytes.Clone(frame)
	for i, c := range line {
		if c == '\n' || c == '\r' {
			line[i] = ' '
		}
	}
	return line
}
