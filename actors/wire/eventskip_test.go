package wire

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// skipEvents reads a stream and leaves out what is over the limit.
func skipEvents(r io.Reader, limit int) []string {
	var got []string
	for events := NewEventReader(r, limit); ; {
		ev, err := events.Next()
		switch {
		case errors.Is(err, ErrTooLong):
			tail, err := events.Skip()
			if err != nil {
				return append(got, err.Error())
			}
			got = append(got, fmt.Sprintf("%.4s...%s", ev.Data, tail[max(0, len(tail)-4):]))
		case err != nil:
			return append(got, err.Error())
		default:
			got = append(got, string(ev.Data))
		}
	}
}

// 07 row 56: an event that is too large is left out, the stream is read on.
func TestSkip(t *testing.T) {
	long := "head" + strings.Repeat("x", 40_000) + "tail"
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"at the limit", "data: " + strings.Repeat("x", 20) + "\n\ndata: b\n\n", []string{strings.Repeat("x", 20), "b", "EOF"}},
		{"one line", "data: " + long + "\n\ndata: b\n\n", []string{"head...tail", "b", "EOF"}},
		{"a little over", "data: head" + strings.Repeat("x", 17) + "\n\ndata: b\n\n", []string{"head...", "b", "EOF"}},
		{"CRLF", "data: " + long + "\r\n\r\ndata: b\r\n\r\n", []string{"head...tail", "b", "EOF"}},
		{"many lines", strings.Repeat("data: head56789\n", 4) + "data: tail\n\ndata: b\n\n", []string{"head...tail", "b", "EOF"}},
		{"a long line and others", "data: " + long + "\ndata:a\nid: id\n: comment\n\ndata: b\n\n", []string{"head...aila", "b", "EOF"}},
		{"cut off", "data: " + long, []string{"EOF"}},
		{"two in a row", "data: " + long + "\n\ndata: " + long + "\n\n", []string{"head...tail", "head...tail", "EOF"}},
	} {
		for name, r := range map[string]io.Reader{
			"whole": strings.NewReader(c.in), "byte by byte": iotest.OneByteReader(strings.NewReader(c.in)),
		} {
			if diff := cmp.Diff(c.want, skipEvents(r, 20)); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", c.name, name, diff)
			}
		}
	}
}

// Where an event is cut into pieces changes nothing, and nothing of an event that was
// left out shows up later.
func FuzzSkip(f *testing.F) {
	f.Add("data: a\n\ndata: " + strings.Repeat("x", 50) + "\n\ndata: b\r\r")
	f.Add("\uFEFFdata\r\n\r\nid: 1\rdata:" + strings.Repeat("y\n data:", 9))
	f.Fuzz(func(t *testing.T, stream string) {
		small := func(r io.Reader) (kept []string) {
			for events := NewEventReader(r, 20); ; {
				ev, err := events.Next()
				switch {
				case errors.Is(err, ErrTooLong):
					if _, err := events.Skip(); err != nil {
						return kept
					}
				case err != nil:
					return kept
				default:
					if len(ev.Data) > 20 {
						t.Errorf("an event of %d bytes", len(ev.Data))
					}
					kept = append(kept, string(ev.Data))
				}
			}
		}
		var all []string
		for events := NewEventReader(strings.NewReader(stream), 1<<20); ; {
			ev, err := events.Next()
			if err != nil {
				break
			}
			all = append(all, string(ev.Data))
		}
		for _, r := range []io.Reader{strings.NewReader(stream), iotest.OneByteReader(strings.NewReader(stream))} {
			at := 0
			for _, kept := range small(r) {
				for at < len(all) && all[at] != kept {
					at++
				}
				if at == len(all) {
					t.Fatalf("%q is no event of %q", kept, stream)
				}
				at++
			}
		}
	})
}
