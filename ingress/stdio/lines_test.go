//go:build unix

package stdio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"mcpbroker/actors/wire"
)

// readAll returns the lines of a stream; one over the limit as its bounds.
func readAll(r io.Reader, limit int) []string {
	lines, reader := []string(nil), newLineReader(r, limit)
	for {
		line, err := reader.next()
		var long *longLine
		switch {
		case errors.As(err, &long):
			lines = append(lines, fmt.Sprintf("long: %s ... %s (%s)", long.head, long.tail, wire.CutResponseID(long.head, long.tail)))
		case err != nil:
			if !errors.Is(err, io.EOF) {
				lines = append(lines, err.Error())
			}
			return lines
		default:
			lines = append(lines, string(line))
		}
	}
}

// Spec 07 rows 61, 62, and the bound: exactly the limit passes, one more does not.
func TestLineReader(t *testing.T) {
	for _, test := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{"a\nb\r\n\n \t\r\nc", []string{"a", "b", "c"}},
		{"\xEF\xBB\xBFa\n\xEF\xBB\xBFb\n", []string{"a", "\xEF\xBB\xBFb"}},
		{"\xEF\xBB\xBF\na\n", []string{"a"}},
		{"12345678\n", []string{"12345678"}},
		{"  12345678\t\r\n", []string{"12345678"}},
		{"123456789\nb\n", []string{"long: 123456789 ... 123456789 ()", "b"}},
		{"123456789", []string{"long: 123456789 ... 123456789 ()"}},
		{"a\rb\n", []string{"a\rb"}},
	} {
		equal(t, fmt.Sprintf("%q", test.in), readAll(strings.NewReader(test.in), 8), test.want)
		equal(t, fmt.Sprintf("%q, a byte at a time", test.in), readAll(iotest.OneByteReader(strings.NewReader(test.in)), 8), test.want)
	}
	broken := io.MultiReader(strings.NewReader("a\nhalf"), iotest.ErrReader(errors.New("broken")))
	equal(t, "broken", readAll(broken, 8), []string{"a", "broken"})
}

// Of a long line its first 64 KiB and its end are kept, whatever is between.
func TestLongLine(t *testing.T) {
	line := strings.Repeat("x", 1<<20) + `,"id":"brk-12"}`
	reader := newLineReader(strings.NewReader(line+"\nnext\n"), 1000)
	_, err := reader.next()
	var long *longLine
	if !errors.As(err, &long) {
		t.Fatal(err)
	}
	equal(t, "head", string(long.head), line[:headBytes])
	equal(t, "tail", strings.TrimRight(string(long.tail), "\n"), line[len(line)+1-tailBytes:])
	equal(t, "answers", string(wire.CutResponseID(long.head, long.tail)), `"brk-12"`)
	next, err := reader.next()
	equal(t, "next", fmt.Sprintf("%s %v", next, err), "next <nil>")
}

// Whatever comes, the lines are those of the stream, however it is cut.
func FuzzLineReader(f *testing.F) {
	f.Add([]byte("a\r\n\n{\"id\":\"brk-1\"}"), uint8(8))
	f.Fuzz(func(t *testing.T, stream []byte, limit uint8) {
		whole := readAll(bytes.NewReader(stream), int(limit))
		pieces := readAll(iotest.OneByteReader(bytes.NewReader(stream)), int(limit))
		equal(t, "a byte at a time", pieces, whole)
		for _, line := range whole {
			if !strings.HasPrefix(line, "long: ") && (len(line) > int(limit) || strings.Contains(line, "\n")) {
				t.Errorf("line %q with limit %d", line, limit)
			}
		}
	})
}
