package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAppendStringEveryRune(t *testing.T) {
	var text strings.Builder
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if utf8.ValidRune(r) {
			text.WriteRune(r)
		}
	}
	raw := AppendString(nil, text.String())
	var back string
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	if back != text.String() {
		t.Error("the text of all runes does not come back from JSON")
	}
	f, err := Scan(raw)
	if err != nil || f.Shape != String {
		t.Fatalf("Scan: shape %v, err %v", f.Shape, err)
	}
	if got, _ := Unquote(raw); got != text.String() {
		t.Error("the text of all runes does not come back from Unquote")
	}
}

func TestAppendString(t *testing.T) {
	for text, want := range map[string]string{
		"":                       `""`,
		`say "hi" \ /`:           `"say \"hi\" \\ /"`,
		"\n\r\t\b\f\x00\x1f\x7f": `"\n\r\t\u0008\u000c\u0000\u001f` + "\x7f\"",
		"<&>\u2028\u2029é🎉":      "\"<&>\u2028\u2029é🎉\"",
		"a\xffb\xc3":             "\"a\ufffdb\ufffd\"",
		"\xed\xa0\x80":           "\"\ufffd\ufffd\ufffd\"",
	} {
		if got := string(AppendString([]byte("x"), text)); got != "x"+want {
			t.Errorf("AppendString(%q) = %s, want %s", text, got[1:], want)
		}
	}
}

// spec 01 2.2
func TestCloseReason(t *testing.T) {
	repeat := strings.Repeat
	for _, c := range []struct{ name, in, want string }{
		{"empty", "", ""},
		{"short", "bye", "bye"},
		{"exactly 123 bytes", repeat("x", 123), repeat("x", 123)},
		{"one too long", repeat("x", 124), repeat("x", 120) + "..."},
		{"exactly 123 bytes of two", repeat("é", 61) + "x", repeat("é", 61) + "x"},
		{"é times 80", repeat("é", 80), repeat("é", 60) + "..."},
		{"é times 80 on odd offsets", "x" + repeat("é", 80), "x" + repeat("é", 59) + "..."},
		{"three bytes", "x" + repeat("读", 80), "x" + repeat("读", 39) + "..."},
		{"four bytes", repeat("🎉", 40), repeat("🎉", 30) + "..."},
		{"four bytes, one off", "x" + repeat("🎉", 40), "x" + repeat("🎉", 29) + "..."},
		{"four bytes, three off", "xyz" + repeat("🎉", 40), "xyz" + repeat("🎉", 29) + "..."},
		{"invalid, short", "a\xffb", "a\ufffdb"},
		{"continuation bytes only", repeat("\x80", 200), "\ufffd"},
		{"invalid, long", repeat("x\x80", 200), repeat("x\ufffd", 30) + "..."},
	} {
		if got := CloseReason(c.in); got != c.want {
			t.Errorf("%s: CloseReason = %q (%d bytes), want %q", c.name, got, len(got), c.want)
		}
	}
	held := CloseReason(HeldReason(repeat("n", 150)))
	if len(held) != MaxReason || !strings.HasPrefix(held, `Slot already held by a live provider; call provider_status on _broker. Slot: "nnn`) || !strings.HasSuffix(held, "n...") {
		t.Errorf("reason with a name of 150 characters = %q (%d bytes)", held, len(held))
	}
}

func TestExcerpt(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", `""`},
		{"a\nb\"", `"a\nb\""`},
		{"\xff\x00", "\"\ufffd\\u0000\""},
		{strings.Repeat("x", 201), `"` + strings.Repeat("x", 200) + `"`},
		{strings.Repeat("é", 300), `"` + strings.Repeat("é", 200) + `"`},
		{strings.Repeat("🎉", 1000), `"` + strings.Repeat("🎉", 200) + `"`},
		{strings.Repeat("\x80", 900), `"` + strings.Repeat("\ufffd", 200) + `"`},
		{"x" + strings.Repeat("🎉", 1000), `"x` + strings.Repeat("🎉", 199) + `"`},
	} {
		if got := Excerpt([]byte(c.in)); got != c.want {
			t.Errorf("Excerpt(%.20q) = %q, want %q", c.in, got, c.want)
		}
		if got := Excerpt(Preview([]byte(c.in))); got != c.want {
			t.Errorf("Excerpt(Preview(%.20q)) = %q, want %q", c.in, got, c.want)
		}
		if n := len(Preview([]byte(c.in))); n != min(len(c.in), 800) {
			t.Errorf("Preview(%.20q) keeps %d bytes", c.in, n)
		}
	}
}
