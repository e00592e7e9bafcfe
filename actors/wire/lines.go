package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// ErrTooLong is returned for a line or an event over its reader's limit.
var ErrTooLong = errors.New("longer than allowed")

// LineReader splits a byte stream into newline-delimited messages (spec 01 5.7).
// Only LF ends a line: U+2028, U+0085 and the like are text. A CR before it, blanks
// around a message and a byte order mark at the start of the stream are left out.
type LineReader struct {
	r     *bufio.Reader
	limit int
	begun bool // the first line has been read
	skip  bool // the rest of an over-long line comes next
}

// lineBlanks is how much around a message of the largest size is still read.
const lineBlanks = 64

// NewLineReader reads messages of at most limit bytes.
func NewLineReader(r io.Reader, limit int) *LineReader {
	return &LineReader{r: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// Next returns the next message; blank lines are none. The bytes are the caller's
// to keep. For a message over the limit it returns ErrTooLong as soon as that is
// known, and leaves the rest of it out. A last line without LF counts; behind it
// comes io.EOF.
func (l *LineReader) Next() ([]byte, error) {
	if l.skip {
		if err := l.skipRest(); err != nil {
			return nil, err
		}
	}
	for {
		line, err := l.line()
		if len(line) > 0 || err != nil {
			return line, err
		}
	}
}

func (l *LineReader) skipRest() error {
	for {
		_, err := l.r.ReadSlice('\n')
		if err == nil {
			l.skip = false
			return nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

func (l *LineReader) line() ([]byte, error) {
	var line []byte
	for {
		piece, err := l.r.ReadSlice('\n')
		line = append(line, piece...)
		switch {
		case err == nil, errors.Is(err, io.EOF) && len(line) > 0:
			return l.message(line)
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err // a line cut off by a fault is no message
		case len(line) > l.limit+lineBlanks:
			l.begun, l.skip = true, true
			return nil, ErrTooLong
		}
	}
}

func (l *LineReader) message(line []byte) ([]byte, error) {
	if !l.begun {
		l.begun = true
		line = bytes.TrimPrefix(line, []byte("\xEF\xBB\xBF"))
	}
	line = bytes.Trim(line, " \t\r\n")
	if len(line) > l.limit {
		return nil, ErrTooLong
	}
	return line, nil
}
