package scenarios

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A script with mistakes is refused with all of them, each with its line.
func TestRefusedScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/refused/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			err := Run(t.Context(), fast(newOutput()), file)
			var refused *RefusedError
			if !errors.As(err, &refused) {
				t.Fatalf("not refused: %v", err)
			}
			got := strings.ReplaceAll(refused.Error(), filepath.Dir(file)+string(filepath.Separator), "") + "\n"
			golden(t, strings.TrimSuffix(file, ".toml")+".txt", got)
		})
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// The broker judges its own configuration before anything starts.
func TestRefusedBrokerConfiguration(t *testing.T) {
	file := write(t, `title = "x"
[[step]]
broker = "start"
config = { timout = 1, providerTakeover = "never" }
`)
	out := newOutput()
	err := Run(t.Context(), fast(out), file)
	var refused *RefusedError
	if !errors.As(err, &refused) || len(refused.Problems) != 2 {
		t.Fatalf("got %v, want two problems", err)
	}
	for i, key := range []string{"providerTakeover", "timout"} {
		p := refused.Problems[i]
		if p.File != file || p.Line != 4 || !strings.HasPrefix(p.Message, "config: ") || !strings.Contains(p.Message, key) {
			t.Errorf("problem %d is %s, want one about %s in line 4", i, p, key)
		}
	}
	if out.String() != "" {
		t.Errorf("something was started: %s", out)
	}
}

func TestUnknownScripts(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "gone.toml")
	err := Run(t.Context(), fast(newOutput()), "provider-livecycle", missing)
	want := "provider-livecycle: no built-in scenario has this name (known: aggregate-churn, bundle-signed, deadline, device-lifecycle, embedded, four-transports, framing-mismatch, " +
		"half-open-provider, host-config, live-not-healthy, plant, provider-lifecycle, reload, remote-restart, slot-crash, slow-reader, stdio-host, " +
		"subscription-replay, takeover-modes, upstream-crash, upstream-no-secret); a file is named with its extension, provider-livecycle.toml\n" +
		missing + ": the script cannot be read: no such file or directory"
	if diff := cmp.Diff(want, fmt.Sprint(err)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestVariables(t *testing.T) {
	const text = `title = "port ${port}"
[vars]
port = 1
who = "A"
[[step]]
say = "${who} of ${port}"
broker = "start"
config = { maxSlots = "${port}", nested = { list = ["${who}", "${heartbeat}"] } }
[[step]]
wait = "1.5 heartbeats"
`
	s, problems := parse("f.toml", "f", text, map[string]any{"port": int64(7), "heartbeat": int64(300)})
	if problems != nil {
		t.Fatal(problems)
	}
	start := s.steps[0].action.(*brokerAction)
	want := map[string]any{"maxSlots": int64(7), "nested": map[string]any{"list": []any{"A", int64(300)}}}
	if diff := cmp.Diff(want, start.Config); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	if s.title != "port 7" || s.steps[0].say != "A of 7" || s.port != 7 {
		t.Errorf("title %q, say %q, port %d", s.title, s.steps[0].say, s.port)
	}
	if wait := s.steps[1].action.(*waitAction); time.Duration(wait.For) != 450*time.Millisecond {
		t.Errorf("1.5 heartbeats of 300 ms are %s", time.Duration(wait.For))
	}
}

// What a step is about and what it takes never share a name, so that a step's
// action is recognised without knowing it.
func TestActionsAndKeysAreDistinct(t *testing.T) {
	kinds := map[string]bool{"say": true}
	for _, k := range actionKinds() {
		kinds[k.name] = true
	}
	for _, k := range actionKinds() {
		for _, f := range fields(reflect.ValueOf(k.blank()).Elem()) {
			if f.name != k.name && kinds[f.name] {
				t.Errorf("%q takes the key %q, which is an action", k.name, f.name)
			}
		}
	}
}

// The page for users lists every action with every key it takes.
func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile("../docs/scenarios.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) > 3 {
			rows[strings.Trim(cells[1], " `")] = cells[2]
		}
	}
	for _, k := range actionKinds() {
		row, ok := rows[k.name]
		if !ok {
			t.Errorf("%q is not documented", k.name)
			continue
		}
		want := []string{}
		for _, f := range fields(reflect.ValueOf(k.blank()).Elem()) {
			if f.name != k.name {
				want = append(want, f.name)
			}
		}
		got := strings.FieldsFunc(row, func(r rune) bool { return strings.ContainsRune(" `,", r) })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("keys of %q (-want +got):\n%s", k.name, diff)
		}
	}
	for _, b := range Builtins() {
		if _, ok := rows[b.Name]; !ok {
			t.Errorf("built-in scenario %q is not documented", b.Name)
		}
	}
}

// The script the page shows is one that passes.
func TestDocumentedScript(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/scenarios.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```toml\n")
	text, _, _ = strings.Cut(text, "```")
	out := newOutput()
	o := fast(out)
	o.Heartbeat = 4 * time.Second // three pass, and none is missed
	if err := Run(t.Context(), o, write(t, text)); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func FuzzParse(f *testing.F) {
	for _, b := range Builtins() {
		text, err := builtin.ReadFile(b.Name + ".toml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	files, _ := filepath.Glob("testdata/refused/*.toml")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, problems := parse("f.toml", "f", text, nil)
		for _, p := range problems {
			if p.Line < 1 || p.Line > strings.Count(text, "\n")+1 {
				t.Errorf("%s: the script has %d lines", p, strings.Count(text, "\n")+1)
			}
		}
	})
}
