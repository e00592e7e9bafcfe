package stdio

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// lineReader splits a child's stdout into messages, one a line. Only LF ends a
// line: U+2028, U+0085 and the like are text. A CR before it, blanks around a
// message and a byte order mark at the start are left out. Unlike the reader of a
// host's lines it tells of a line that is too long how it begins and ends, so that
// the one call it answers can be told.
type lineReader struct {
	r     *bufio.Reader
	limit int
	begun bool // the first line has been read
}

// What is kept of a line that is too long, and how much around a message of the
// largest size is still read.
const (
	headBytes  = 64 << 10
	tailBytes  = 256
	lineBlanks = 64
)

// longLine is a line over the limit. It has been read to its end and left out.
type longLine struct {
	head, tail []byte
	limit      int
}

func (l *longLine) Error() string { return fmt.Sprintf("a line is longer than %d bytes", l.limit) }

func newLineReader(r io.Reader, limit int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// next returns the next message, which is the caller's to keep; blank lines are
// none. A line over the limit is a *longLine, and what follows it can be read. A
// last line without LF counts; behind it comes io.EOF.
func (l *lineReader) next() ([]byte, error) {
	for {
		line, err := l.line()
		if err != nil {
			return nil, err
		}
		if line = l.trim(line); len(line) > l.limit {
			return nil, l.long(line)
		}
		if len(line) > 0 {
			return line, nil
		}
	}
}

func (l *lineReader) line() ([]byte, error) {
	var line []byte
	for {
		piece, err := l.r.ReadSlice('\n')
		line = append(line, piece...)
		more := errors.Is(err, bufio.ErrBufferFull)
		switch {
		case err != nil && !more && (!errors.Is(err, io.EOF) || len(line) == 0):
			return nil, err // a line cut off by a fault is no message
		case !more:
			return line, nil
		case len(line) > l.limit+lineBlanks:
			return nil, l.discard(line)
		}
	}
}

func (l *lineReader) trim(line []byte) []byte {
	if !l.begun {
		l.begun = true
		line = bytes.TrimPrefix(line, []byte("\xEF\xBB\xBF"))
	}
	return bytes.Trim(line, " \t\r\n")
}

// discard reads the rest of a line without keeping it.
func (l *lineReader) discard(start []byte) error {
	l.begun = true
	long := l.long(start)
	for {
		piece, err := l.r.ReadSlice('\n')
		long.tail = end(append(long.tail, end(piece)...))
		switch {
		case err == nil, errors.Is(err, io.EOF):
			return long
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
}

func (l *lineReader) long(line []byte) *longLine {
	return &longLine{bytes.Clone(line[:min(len(line), headBytes)]), bytes.Clone(end(line)), l.limit}
}

func end(b []byte) []byte { return b[max(0, len(b)-tailBytes):] }
