package aggregate

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// spec 03 3.4: the vectors. toolName puts a dash behind the slot, so they are cut
// there.
func TestToolNameVectors(t *testing.T) {
	for _, c := range []struct{ slot, tool, want string }{
		{"weather", "forecast", "weather-forecast"},
		{"my", "very-long-provider-name-" + strings.Repeat("tool_", 12) + "end",
			"my-very-long-provider-name-tool_tool_tool_tool_tool_too-015rh6dd"},
		{"a", strings.Repeat("b", 62), "a-" + strings.Repeat("b", 62)},
	} {
		if got := toolName(c.slot, c.tool); got != c.want {
			t.Errorf("toolName(%q, %q) = %q, want %q", c.slot, c.tool, got, c.want)
		}
	}
	for _, c := range []struct{ whole, want string }{
		{"weather-forecast", "0171eb95"},
		{strings.Repeat("x", 65), "00hhf50d"},
		{strings.Repeat("é", 70), "0062uqu3"},
	} {
		if got := hash(c.whole); got != c.want {
			t.Errorf("hash(%q) = %q, want %q", c.whole, got, c.want)
		}
	}
	if got, want := cut(strings.Repeat("é", 70), keptPart), strings.Repeat("é", 55); got != want {
		t.Errorf("cut = %q, want %q", got, want)
	}
}

// spec 03 3.4, without the half surrogate: a pair that does not fit whole is left
// out.
func TestToolNameKeepsPairsWhole(t *testing.T) {
	whole := "s-" + strings.Repeat("x", 52) + "🎉" + strings.Repeat("y", 20)
	if got, want := toolName("s", whole[2:]), "s-"+strings.Repeat("x", 52)+"-"+hash(whole); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNumberedKeepsWithinTheLimit(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int
		want string
	}{
		{"a-b", 2, "a-b-2"},
		{strings.Repeat("x", 62), 2, strings.Repeat("x", 62) + "-2"},
		{strings.Repeat("x", 63), 2, strings.Repeat("x", 62) + "-2"},
		{strings.Repeat("x", 64), 10, strings.Repeat("x", 61) + "-10"},
		{strings.Repeat("x", 61) + "🎉", 2, strings.Repeat("x", 61) + "-2"},
	} {
		if got := numbered(c.name, c.n, maxName); got != c.want {
			t.Errorf("numbered(%q, %d) = %q, want %q", c.name, c.n, got, c.want)
		}
	}
	if got, want := numbered(strings.Repeat("p", 100), 2, 0), strings.Repeat("p", 100)+"-2"; got != want {
		t.Errorf("a prompt's name became %q", got)
	}
}

func TestToolNameProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slot, tool := rapid.String().Draw(t, "slot"), rapid.String().Draw(t, "tool")
		name := toolName(slot, tool)
		if n := units(name); n > maxName {
			t.Fatalf("%q has %d units", name, n)
		}
		if !utf8.ValidString(name) {
			t.Fatalf("%q is not valid UTF-8", name)
		}
		if whole := slot + "-" + tool; units(whole) <= maxName && name != whole {
			t.Fatalf("%q became %q", whole, name)
		}
	})
}
