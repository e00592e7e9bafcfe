package wire

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// readLines reads everything; an over-long line is shown as "too long", a fault by
// its text.
func readLines(r io.Reader, limit int) []string {
	lines := NewLineReader(r, limit)
	var got []string
	for {
		line, err := lines.Next()
		switch {
		case errors.Is(err, io.EOF):
			return got
		case errors.Is(err, ErrTooLong):
			got = append(got, "too long")
		case err != nil:
			return append(got, err.Error())
		default:
			got = append(got, string(line))
		}
	}
}

// Spec 01 5.7; 07 rows 56, 59, 61 and 62.
func TestLines(t *testing.T) {
	const other = "\"a\u2028b\u2029c\u0085d\ve\ff\u00a0\""
	long := strings.Repeat("x", 100)
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"empty", "", nil},
		{"LF", "a\nb\n", []string{"a", "b"}},
		{"CRLF and LF", "a\r\nb\nc\r\n", []string{"a", "b", "c"}},
		{"CR alone ends nothing", "a\rb\n", []string{"a\rb"}},
		{"no last LF", "a\nb", []string{"a", "b"}},
		{"no last LF after CR", "a\r", []string{"a"}},
		{"blank lines", "\n\r\n  \n\t\na\n\n", []string{"a"}},
		{"blanks around", "  a \t\n", []string{"a"}},
		{"byte order mark", "\uFEFFa\nb\n", []string{"a", "b"}},
		{"byte order mark alone", "\uFEFF\na\n", []string{"a"}},
		{"byte order mark later", "a\n\uFEFFb\n", []string{"a", "\uFEFFb"}},
		{"only LF ends a line", other + "\n" + other + "\n", []string{other, other}},
		{"multi-byte text", "读é🎉\n", []string{"读é🎉"}},
		{"at the limit", long + "\r\n" + long + "\n", []string{long, long}},
		{"at the limit with a byte order mark", "\uFEFF  " + long + "\n", []string{long}},
		{"one more", long + "x\na\n", []string{"too long", "a"}},
		{"far more", strings.Repeat(long, 2000) + "\na\n", []string{"too long", "a"}},
		{"far more at the end", strings.Repeat(long, 2000), []string{"too long"}},
		{"far more first", strings.Repeat(long, 2000) + "\n\uFEFF\n", []string{"too long", "\uFEFF"}},
	} {
		for name, r := range map[string]io.Reader{
			"whole": strings.NewReader(c.in), "byte by byte": iotest.OneByteReader(strings.NewReader(c.in)),
			"data with EOF": iotest.DataErrReader(strings.NewReader(c.in)),
		} {
			if diff := cmp.Diff(c.want, readLines(r, 100)); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", c.name, name, diff)
			}
		}
	}
}

// Row 56: lines around the size of a read buffer, and of megabytes.
func TestLongLines(t *testing.T) {
	for _, size := range []int{64<<10 - 1, 64 << 10, 64<<10 + 1, 1 << 20, 4 << 20} {
		line := strings.Repeat("é", size/2)
		got := readLines(strings.NewReader(line+"\nz\n"), 4<<20)
		if len(got) != 2 || got[0] != line || got[1] != "z" {
			t.Errorf("%d bytes: %d lines", size, len(got))
		}
	}
}

// A line that a fault cuts off is no message.
func TestLineFault(t *testing.T) {
	r := io.MultiReader(strings.NewReader("a\n{\"id\":1"), iotest.ErrReader(errors.New("broken")))
	if diff := cmp.Diff([]string{"a", "broken"}, readLines(r, 100)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What a line says does not depend on how it was cut into reads.
func FuzzLines(f *testing.F) {
	f.Add("a\r\n\n\uFEFFb\n"+strings.Repeat("x", 200)+"\nc", 10)
	f.Fuzz(func(t *testing.T, in string, limit int) {
		limit = min(max(limit, 1), 1<<10)
		whole := readLines(strings.NewReader(in), limit)
		pieces := readLines(iotest.HalfReader(iotest.OneByteReader(strings.NewReader(in))), limit)
		if diff := cmp.Diff(whole, pieces); diff != "" {
			t.Errorf("(-whole +pieces):\n%s", diff)
		}
		for _, line := range whole {
			if strings.Contains(line, "\n") || line == "" {
				t.Errorf("line %q", line)
			}
		}
	})
}
