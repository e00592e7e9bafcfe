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
	"mcpbroker/internal/mask"
)

func newSpeech() (*speech, *logged, inbox) {
	log, owner := &logged{}, make(inbox, room)
	plain := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key != slog.MessageKey {
			return slog.Attr{}
		}
		return a
	}}))
	return &speech{name: "s", log: plain, owner: owner, gen: 3, mask: mask.New(nil)}, log, owner
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

const pem = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\r\nBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n-----END PRIVATE KEY-----\n"

// Lines are cut where the stream is, and the rest of a long one is left out.
func TestSpeechRead(t *testing.T) {
	s, _, owner := newSpeech()
	s.read(strings.NewReader("one\r\n\n \n" + strings.Repeat("é", 10000) + "\nwithout end"))
	equal(t, "lines", told(owner), []string{"one", strings.Repeat("é", 250), "without end"})
}

// Security: no text of a child holds its secrets: neither a cut line of stderr, nor what
// came on stdout in the place of a message.
func TestSecretsOfAllTexts(t *testing.T) {
	const secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB"
	h := newHouse(t)
	r := h.start(t, Config{
		Name: "s", Command: "/bin/sh", Secrets: []string{secret, pem}, Limit: 1000, Grace: patience,
		Env: []string{"PATH=/usr/bin:/bin", "TOKEN=" + secret, "KEY=" + pem},
		Args: []string{"-c", `printf '%0465d %s\n' 0 "$TOKEN" >&2; echo "$KEY" >&2; echo "starting with $TOKEN"; printf '%0790d%s\n' 0 "$TOKEN"
			printf '"%s %02000d"\n' "$TOKEN" 0; echo '{"method":"up"}'; read -r _`},
	})
	equal(t, "banner", r.hear(), "junk: starting with ***")
	equal(t, "at the cut", r.hear(), "junk: "+strings.Repeat("0", 790)+"***")
	equal(t, "oversized", r.hear()[:20], `junk: "*** 0000000000000`[:20])
	equal(t, "message", r.hear(), `{"method":"up"}`)
	r.driver.Stop(patience)
	texts := append(r.end().Tail, h.log.String())
	for len(r.owner) > 0 {
		texts = append(texts, (<-r.owner).(*msg.UpstreamSaid).Line)
	}
	all := strings.Join(texts, "\n")
	for _, part := range []string{"ghp_", "MIIEv", "BKcw"} {
		if strings.Contains(all, part) {
			t.Errorf("%s is in\n%s", part, all)
		}
	}
	for _, shown := range []string{"stdout: starting with ***", "begins=\"\\\"\\\\\\\"*** 0000", strings.Repeat("0", 465) + " ***"} {
		if !strings.Contains(all, shown) {
			t.Errorf("%s is not in\n%s", shown, all)
		}
	}
}

// A start that is never answered tells of the first line that was no message, and it is
// among the lines kept, marked.
func TestStray(t *testing.T) {
	s, log, owner := newSpeech()
	s.stray("Listening on 3000")
	s.say("ready")
	equal(t, "told", told(owner), []string{"stdout: Listening on 3000", "ready"})
	equal(t, "kept", s.lines(), []string{"stdout: Listening on 3000", "ready"})
	equal(t, "of stderr", s.lastWords(), []string{"ready"})
	equal(t, "logged", log.String(), "msg=\"[s] ready\"\n")
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
