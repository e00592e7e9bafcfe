package script_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/internal/script"
)

func TestParse(t *testing.T) {
	tests := []struct {
		line string
		want script.Command
	}{
		{"tick 30s", script.Command{Name: "tick", Args: []string{"30s"}, Opts: map[string]string{}}},
		{
			`call c1 id="a" tools/call {"a": 1, "b=c": [2]}`,
			script.Command{Name: "call", Args: []string{"c1", "tools/call"}, Opts: map[string]string{"id": `"a"`}, Body: `{"a": 1, "b=c": [2]}`},
		},
		{`frame p1 "not JSON"`, script.Command{Name: "frame", Args: []string{"p1"}, Opts: map[string]string{}, Body: `"not JSON"`}},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, script.Parse(test.line)); diff != "" {
			t.Errorf("Parse(%q) (-want +got):\n%s", test.line, diff)
		}
	}
}

func TestPlayReplacesEffectsOnly(t *testing.T) {
	in := "# why\n\nsay a\n  stale\n  stale\nsay b\n"
	echo := func(_ *testing.T, c script.Command) []string {
		if c.Arg(0) == "b" {
			return nil
		}
		return []string{"said " + c.Arg(0)}
	}
	want := "# why\n\nsay a\n  said a\nsay b\n"
	if got := string(script.Play(t, []byte(in), echo)); got != want {
		t.Errorf("Play = %q, want %q", got, want)
	}
}
