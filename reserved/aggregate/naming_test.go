package aggregate

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"mcpbroker/actors/wire"
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

// anyName draws slots and tools of few characters, so that some collide, and of those
// that are hard to keep: separators, spaces, quotes, letters beyond ASCII, pairs.
func anyName() *rapid.Generator[string] {
	hard := rapid.StringOfN(rapid.RuneFrom([]rune("ab-_2./\\ \t\"%~#:<é読🎉\u0301\u200b")), 0, 80, -1)
	return rapid.OneOf(rapid.String(), hard, rapid.StringMatching(`[ab./ é-]{1,3}`))
}

// Spec 07 row 52: within the limit, every character kept, whatever it is.
func TestToolNameProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slot, tool := anyName().Draw(t, "slot"), anyName().Draw(t, "tool")
		name := toolName(slot, tool)
		if n := units(name); n > maxName {
			t.Fatalf("%q has %d units", name, n)
		}
		if !utf8.ValidString(name) {
			t.Fatalf("%q is not valid UTF-8", name)
		}
		whole := slot + "-" + tool
		if units(whole) <= maxName {
			if name != whole {
				t.Fatalf("%q became %q", whole, name)
			}
			return
		}
		if kept := name[:len(name)-hashSize-1]; !strings.HasPrefix(whole, kept) || units(kept) < keptPart-1 {
			t.Fatalf("of %q only %q is kept", whole, kept)
		}
	})
}

// Spec 07 row 52: the table leads back from each name to one tool, and to each tool from
// one name, however many collide.
func TestToolNamesReverse(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := newHouse(t, Config{})
		var want []target
		some := anyName().Filter(func(name string) bool { return name != "" })
		for _, slot := range rapid.SliceOfNDistinct(anyName(), 1, 3, rapid.ID).Draw(rt, "slots") {
			if wire.Reserved(slot) {
				continue
			}
			var items []string
			for _, tool := range rapid.SliceOfN(some, 0, 8).Draw(rt, "tools") {
				raw := wire.AppendString(nil, tool)
				items, want = append(items, `{"name":`+string(raw)+`}`), append(want, target{slot, raw})
			}
			h.result(h.begin(slot, 1), `{"tools":[`+strings.Join(items, ",")+`]}`)
		}
		index := h.state.catalog(tools).index
		if len(index) != len(want) {
			rt.Fatalf("%d names for %d tools", len(index), len(want))
		}
		for name, found := range index {
			if units(name) > maxName {
				rt.Fatalf("%q has %d units", name, units(name))
			}
			at := slices.IndexFunc(want, func(w target) bool { return w.slot == found.slot && string(w.original) == string(found.original) })
			if at < 0 {
				rt.Fatalf("%q leads to %s of %q once more than there is one", name, found.original, found.slot)
			}
			want = slices.Delete(want, at, at+1)
		}
	})
}
