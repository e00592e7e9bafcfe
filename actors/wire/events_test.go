package wire

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func readEvents(r io.Reader, limit int) []string {
	events := NewEventReader(r, limit)
	var got []string
	for {
		ev, err := events.Next()
		if errors.Is(err, io.EOF) {
			return got
		}
		if err != nil {
			return append(got, err.Error())
		}
		got = append(got, fmt.Sprintf("%s|%s|%s", ev.ID, ev.Name, ev.Data))
	}
}

// 07 rows 61 and 64.
func TestEvents(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"empty", "", nil},
		{"plain", "data: a\n\ndata: b\n\n", []string{"||a", "||b"}},
		{"named", "event: message\nid: 7\ndata: a\n\n", []string{"7|message|a"}},
		{"CRLF", "event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n", []string{"|x|a", "||b"}},
		{"CR", "event: x\rdata: a\r\rdata: b\r\r", []string{"|x|a", "||b"}},
		{"mixed", "data: a\r\n\ndata: b\n\r\ndata: c\r\r\n", []string{"||a", "||b", "||c"}},
		{"comments", ": open\n\n: keep-alive\n\ndata: a\n: between\n\n", []string{"||a"}},
		{"data lines", "data: {\ndata:\ndata:  1}\n\n", []string{"||{\n\n 1}"}},
		{"no space", "data:a\nid:1\n\n", []string{"1||a"}},
		{"field without colon", "data\n\ndata\ndata\n\n", []string{"||", "||\n"}},
		{"unknown fields", "retry: 10\nx: y\ndata: a\n\n", []string{"||a"}},
		{"no data", "event: x\nid: 3\n\ndata: a\n\n", []string{"3||a"}},
		{"id kept, reset, and ignored with NUL", "id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\nid: \x00\ndata: d\n\n", []string{"1||a", "1||b", "||c", "||d"}},
		{"no blank line at the end", "data: a\n", []string{"||a"}},
		{"no line end at the end", "data: a\n\ndata: b", []string{"||a", "||b"}},
		{"byte order mark", "\uFEFFdata: a\n\ndata: \uFEFF\n\n", []string{"||a", "||\uFEFF"}},
		{"text with other separators", "data: a\u2028b\u2029c\u0085d\n\n", []string{"||a\u2028b\u2029c\u0085d"}},
		{"at the limit", "data: " + strings.Repeat("é", 10) + "\n\n", []string{"||" + strings.Repeat("é", 10)}},
		{"one line too long", "data: a\n\ndata: " + strings.Repeat("x", 40000), []string{"||a", ErrTooLong.Error()}},
		{"many lines too long", strings.Repeat("data: xxxxxx\n", 5), []string{ErrTooLong.Error()}},
	} {
		for name, r := range map[string]io.Reader{
			"whole": strings.NewReader(c.in), "byte by byte": iotest.OneByteReader(strings.NewReader(c.in)),
		} {
			if diff := cmp.Diff(c.want, readEvents(r, 21)); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", c.name, name, diff)
			}
		}
	}
	cut := io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(io.ErrUnexpectedEOF))
	if diff := cmp.Diff([]string{"||a", "unexpected EOF"}, readEvents(cut, 20)); diff != "" {
		t.Errorf("a stream cut off (-want +got):\n%s", diff)
	}
}

// A retry holds from the line on that names it, with or without an event, and is made of
// digits only.
func TestEventRetry(t *testing.T) {
	for _, c := range []struct {
		in   string
		want time.Duration
		ok   bool
	}{
		{"data: a\n\n", 0, false},
		{"retry: 1500\n\n", 1500 * time.Millisecond, true},
		{"id: 1\nretry: 20\ndata:\n\n", 20 * time.Millisecond, true},
		{"retry:0\n\n", 0, true},
		{"retry: 20\n\nretry: 30\ndata: a\n\n", 30 * time.Millisecond, true},
		{"retry: 20\n\nretry: soon\nretry\nretry: -1\nretry: +1\nretry: 1.5\ndata: a\n\n", 20 * time.Millisecond, true},
		{"retry: 99999999999999999999999\n\n", 24 * time.Hour, true},
		{"retry: 86400001\n\n", 24 * time.Hour, true},
	} {
		events := NewEventReader(strings.NewReader(c.in), 20)
		for {
			if _, err := events.Next(); err != nil {
				break
			}
		}
		if got, ok := events.Retry(); got != c.want || ok != c.ok {
			t.Errorf("%q: %s, %v, want %s, %v", c.in, got, ok, c.want, c.ok)
		}
	}
}

// What AppendEvent writes, EventReader reads (F-29).
func FuzzEvents(f *testing.F) {
	f.Add(uint64(7), "{\n \"a\": 1\r\n}", "{}")
	f.Fuzz(func(t *testing.T, id uint64, first, second string) {
		stream := string(AppendEvent(AppendEvent(nil, id, []byte(first)), 0, []byte(second)))
		want := readEvents(strings.NewReader(stream), 1<<20)
		if len(want) != 2 {
			t.Fatalf("%q reads as %q", stream, want)
		}
		if diff := cmp.Diff(want, readEvents(iotest.OneByteReader(strings.NewReader(stream)), 1<<20)); diff != "" {
			t.Errorf("(-whole +pieces):\n%s", diff)
		}
		if data := want[1][strings.LastIndexByte(want[1], '|')+1:]; !strings.Contains(second, "|") && data != string(OneLine([]byte(second))) {
			t.Errorf("%q reads as %q", second, data)
		}
	})
}
