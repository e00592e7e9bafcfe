package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"
)

// ServerEvent is one server-sent event.
type ServerEvent struct {
	ID   string // of this event, or the last one before it that had an id
	Name string // empty stands for "message"
	Data []byte
}

// EventReader parses a stream of server-sent events by the rules of the HTML
// standard: lines end with LF, CR or CRLF, comments are left out, several data
// lines are one text. Unlike there, an event whose blank line is missing counts
// when the stream ends in order.
type EventReader struct {
	r       *bufio.Reader
	limit   int
	begun   bool // the first line has been read
	afterCR bool // an LF that comes next belongs to the line before
	cut     bool // ErrTooLong came in the middle of a line
	id      string
	retry   time.Duration // negative until the stream has named one
}

// NewEventReader reads events of at most limit bytes.
func NewEventReader(r io.Reader, limit int) *EventReader {
	return &EventReader{r: bufio.NewReaderSize(r, 16<<10), limit: limit, retry: -1}
}

// Next returns the next event that has data, or the error of the stream. With
// ErrTooLong it returns the beginning of the event; the stream can be read on after
// Skip.
func (e *EventReader) Next() (ServerEvent, error) {
	var ev ServerEvent
	for {
		line, err := e.line()
		if err != nil && !(errors.Is(err, io.EOF) && len(line) > 0) {
			if errors.Is(err, io.EOF) && ev.Data != nil {
				return e.complete(ev), nil
			}
			if errors.Is(err, ErrTooLong) {
				e.field(&ev, line)
				return ev, err
			}
			return ServerEvent{}, err
		}
		switch {
		case len(line) > 0:
			e.field(&ev, line)
		case ev.Data != nil:
			return e.complete(ev), nil
		default:
			ev = ServerEvent{}
		}
		if len(ev.Data) > e.limit+1 {
			e.cut = false
			return ev, ErrTooLong
		}
	}
}

// Retry returns how long the stream has asked to be left closed before it is opened
// again; false when it has not. The sender may name any length.
func (e *EventReader) Retry() (time.Duration, bool) { return max(0, e.retry), e.retry >= 0 }

// maxRetry keeps a retry inside a time.Duration.
const maxRetry = 24 * time.Hour

// parseRetry reads the digits of a retry field; anything else is no retry.
func parseRetry(value []byte) (time.Duration, bool) {
	for _, b := range value {
		if b < '0' || b > '9' {
			return 0, false
		}
	}
	ms, err := strconv.ParseUint(string(value), 10, 64)
	if errors.Is(err, strconv.ErrRange) || ms > uint64(maxRetry/time.Millisecond) {
		return maxRetry, true
	}
	return time.Duration(ms) * time.Millisecond, err == nil
}

// skippedBytes is how much of the end of an over-long event Skip keeps.
const skippedBytes = 1 << 10

// Skip leaves out the rest of an event that was too long, and returns the last bytes of
// its data.
func (e *EventReader) Skip() (tail []byte, err error) {
	for data := true; ; {
		continued := e.cut
		e.cut = false
		line, err := e.line()
		switch {
		case errors.Is(err, ErrTooLong):
		case err != nil:
			return nil, err
		case len(line) == 0 && !continued:
			return tail, nil
		}
		if !continued {
			line, data = bytes.CutPrefix(line, []byte("data:"))
		}
		if data {
			tail = append(tail, line[max(0, len(line)-skippedBytes):]...)
			tail = append([]byte(nil), tail[max(0, len(tail)-skippedBytes):]...)
		}
	}
}

func (e *EventReader) complete(ev ServerEvent) ServerEvent {
	ev.ID = e.id
	ev.Data = ev.Data[:len(ev.Data)-1] // the LF behind the last data line
	return ev
}

func (e *EventReader) field(ev *ServerEvent, line []byte) {
	if !e.begun {
		e.begun = true
		line = bytes.TrimPrefix(line, []byte("\xEF\xBB\xBF"))
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		ev.Data = append(append(ev.Data, value...), '\n')
	case "event":
		ev.Name = string(value)
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			e.id = string(value)
		}
	case "retry":
		if d, ok := parseRetry(value); ok {
			e.retry = d
		}
	}
}

// line returns the next line without its end.
func (e *EventReader) line() ([]byte, error) {
	var line []byte
	for {
		if _, err := e.r.Peek(1); err != nil {
			return line, err
		}
		buffered, _ := e.r.Peek(e.r.Buffered())
		if e.afterCR && buffered[0] == '\n' {
			buffered = buffered[1:]
			_, _ = e.r.Discard(1)
		}
		e.afterCR = false
		end := bytes.IndexAny(buffered, "\r\n")
		if end >= 0 {
			line = append(line, buffered[:end]...)
			e.afterCR = buffered[end] == '\r'
			_, _ = e.r.Discard(end + 1)
			return line, nil
		}
		line = append(line, buffered...)
		_, _ = e.r.Discard(len(buffered))
		if len(line) > e.limit+len("data: ") {
			e.cut = true
			return line, ErrTooLong
		}
	}
}
