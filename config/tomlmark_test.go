package config

import (
	"strings"
	"testing"
)

// checkPlaced reports nodes of a parsed document that have no place.
func checkPlaced(t *testing.T, doc, path string, n *node, depth int) {
	t.Helper()
	if depth >= maxMarkDepth {
		return
	}
	if n.pos == 0 {
		t.Errorf("%q: %s has no place", doc, path)
	}
	for _, m := range n.members {
		if m.pos == 0 {
			t.Errorf("%q: key %s.%s has no place", doc, path, m.name)
		}
		checkPlaced(t, doc, path+"."+m.name, m.value, depth+1)
	}
	for _, item := range n.items {
		checkPlaced(t, doc, path+"[]", item, depth+1)
	}
}

func TestMarksFindEverything(t *testing.T) {
	docs := []string{
		"a.b.c = 1\na.b.d = [1, [2, {x.y = 3}],] # [z]\n",
		"[a]\n[a.b]\nx = '''\n[no]\nk = 1''''\ny = \"\"\"\\\"\"\"\"\"\nz = 1\n",
		"[[a]]\nx = 1\n[[a.b]]\ny = 2\n[[a.b]]\n[a.b.c]\nz = 3\n[[a]]\nx = 4\n",
		"\"q\\u00e9\\\"]\" = 1\n[ \"a.b\" . 'c\"d' ]\n\t\"\" = 2\r\nd = 1979-05-27 07:32:00 # x\n",
		"a = { b = [ # ]\n 1, # }\n 2 ], c = {} }\nb = [ ]\n",
	}
	for _, doc := range docs {
		n, syntax := parseTOML(doc)
		if syntax != nil {
			t.Errorf("%q: %s", doc, syntax.text)
			continue
		}
		checkPlaced(t, doc, "", n, 0)
	}
}

func TestMarksKnowArrayElements(t *testing.T) {
	const doc = "[[a]]\nx = 1\n\n[[a]]\n  x = [\n    2]\n"
	n, syntax := parseTOML(doc)
	if syntax != nil {
		t.Fatal(syntax.text)
	}
	a := n.members[0].value.items
	x := a[1].members[0]
	places := []position{a[0].pos, a[1].pos, x.pos, x.value.pos, x.value.items[0].pos}
	want := [][2]int{{1, 1}, {4, 1}, {5, 3}, {5, 7}, {6, 5}}
	for i, p := range places {
		if line, column := newLines(doc).at(p); line != want[i][0] || column != want[i][1] {
			t.Errorf("place %d is %d:%d, want %v", i, line, column, want[i])
		}
	}
}

func TestColumnsCountCharacters(t *testing.T) {
	l := newLines("é=1\r\n日本x\n")
	tests := []struct {
		at           position
		line, column int
	}{
		{0, 0, 0}, {positionOf(0), 1, 1}, {positionOf(2), 1, 2}, {positionOf(6), 2, 1},
		{positionOf(12), 2, 3}, {positionOf(14), 3, 1}, {positionOf(99), 3, 1},
	}
	for _, tt := range tests {
		if line, column := l.at(tt.at); line != tt.line || column != tt.column {
			t.Errorf("at(%d) = %d:%d, want %d:%d", tt.at, line, column, tt.line, tt.column)
		}
	}
}

func TestDeepNestingEnds(t *testing.T) {
	doc := "a = " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	if _, err := Parse("x.toml", []byte(doc)); err == nil {
		t.Error("accepted")
	}
	doc = `{"a": ` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + "}"
	if _, err := Parse("x.json", []byte(doc)); err == nil {
		t.Error("accepted")
	}
}

// Parse never panics, marks end on any text, every place of an accepted
// document is known, and what Parse accepts passes Validate.
func FuzzParse(f *testing.F) {
	for _, doc := range []string{
		"port = 1\n[paths]\nmcp = '/x'\n", "[[a]]\nb = \"\"\"\n\"\"\"\"\n", "a = {b.c = [1, 2], d = 'x'}\n[slots.'x']\ninitialize = 'relay'",
		`{"port": 1, "paths": {"mcp": "/x"}, "a": [1, {"b": null}]}`, "allowedOrigins = {pattern = 'a', flags = 'y'}",
	} {
		f.Add(doc, false)
		f.Add(doc, true)
	}
	f.Fuzz(func(t *testing.T, doc string, isJSON bool) {
		if len(doc) > 1024 {
			t.Skip()
		}
		name := "x.toml"
		if isJSON {
			name = "x.json"
		}
		markTOML(doc)
		if cfg, err := Parse(name, []byte(doc)); err == nil {
			if err := cfg.Validate(); err != nil {
				t.Errorf("Validate: %v", err)
			}
		}
		if n, syntax := parseTOML(doc); syntax == nil && !isJSON {
			checkPlaced(t, doc, "", n, 0)
		}
	})
}
