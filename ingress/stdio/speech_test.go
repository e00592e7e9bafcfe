//go:build unix

package stdio

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"mcpbroker/actors/msg"
)

func newSpeech() (*speech, *logged, inbox) {
	log, owner := &logged{}, make(inbox, room)
	plain := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key != slog.MessageKey {
			return slog.Attr{}
		}
		return a
	}}))
	return &speech{name: "s", log: plain, owner: owner, gen: 3, mask: masking(nil)}, log, owner
}

func told(owner inbox) []string {
	var lines []string
	for len(owner) > 0 {
		lines = append(lines, (<-owner).(*msg.UpstreamSaid).Line)
	}
	return lines
}

func numbered(from, to int) []string {
	var lines []string
	for n := from; n <= to; n++ {
		lines = append(lines, fmt.Sprintf("line %d", n))
	}
	return lines
}

// Of a flood the log has the first hundred lines of a second and a count, the
// owner the last fifty as well. A flood that stops is reported all the same.
func TestSpeechRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log, owner := newSpeech()
		for n := 1; n <= 1000; n++ {
			s.say(fmt.Sprintf("line %d", n))
		}
		equal(t, "told at once", told(owner), numbered(1, 100))
		equal(t, "remembered", s.lines(), numbered(951, 1000))
		time.Sleep(time.Second)
		synctest.Wait()
		equal(t, "told later", told(owner), numbered(951, 1000))
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		equal(t, "lines in the log", len(lines), 101)
		equal(t, "the last", lines[100], `msg="[s] ... 900 more lines within one second are not shown"`)
		s.say("line 1001")
		equal(t, "in the next second", told(owner), numbered(1001, 1001))
		for n := 2; n <= 101; n++ {
			s.say(fmt.Sprintf("line %d", n))
		}
		s.end()
		s.end()
		equal(t, "at the end", strings.Count(log.String(), "[s] ... 1 more lines"), 1)
	})
}

// A line is bounded, and shows nothing but text.
func TestLegible(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"plain", "plain"},
		{"  indented\tand tabbed  \r", "  indented and tabbed"},
		{"\x1b[1;31mred\x1b[0m \x1b]0;title\a\x1b[", "red ]0;title"},
		{"a\x00b\x7fc\u0085d\u009be", "abcde"},
		{"a\u202eb\u2066c\u200bd\ufeffe\u2028f\U000E0041g", `a\u202eb\u2066c\u200bd\ufeffe\u2028f\U000e0041g`},
		{strings.Repeat("x", 496) + "\u202e", strings.Repeat("x", 496)},
		{"bad \xff utf", "bad \uFFFD utf"},
		{"cut é"[:5], "cut"},
		{strings.Repeat("x", 501), strings.Repeat("x", 500)},
		{strings.Repeat("x", 499) + "é", strings.Repeat("x", 499)},
		{strings.Repeat("\xff", 500), strings.Repeat("\uFFFD", 166)},
	} {
		equal(t, fmt.Sprintf("%q", test.in), legible([]byte(test.in)), test.want)
	}
}

// Lines are cut where the stream is, and the rest of a long one is left out.
func TestSpeechRead(t *testing.T) {
	s, _, owner := newSpeech()
	s.read(strings.NewReader("one\r\n\n \n" + strings.Repeat("é", 10000) + "\nwithout end"))
	equal(t, "lines", told(owner), []string{"one", strings.Repeat("é", 250), "without end"})
}

func FuzzLegible(f *testing.F) {
	f.Add([]byte("\x1b[31mtext\x1b[0m\t\xff"))
	f.Fuzz(func(t *testing.T, line []byte) {
		text := legible(line)
		if len(text) > maxLineBytes || !utf8.ValidString(text) || strings.ContainsAny(text, "\x1b\n\r\x00\a\b\u202e\u2028") {
			t.Errorf("%q is shown as %q", line, text)
		}
	})
}
