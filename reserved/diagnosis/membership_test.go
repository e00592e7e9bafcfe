package diagnosis

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpbroker/actors/msg"
)

// behind makes the slot pump-1 one of an upstream, unless kind is empty.
func (f *Facts) behind(kind string) {
	if kind != "" {
		f.Instances = append(f.Instances, msg.Instance{Slot: "pump-1", Kind: kind, Target: "the target", Verdict: msg.Healthy, Since: ago(0), Aggregate: true})
	}
}

// Spec 03 2.4: the fix is one for the cause, and for the kind of provider.
func TestMemberFixes(t *testing.T) {
	const (
		cursors = "without nextCursor"
		handler = "install its message handler before it connects"
		restart = "'broker restart pump-1'"
		logs    = "'broker logs pump-1'"
	)
	for _, c := range []struct {
		name, kind, reason string
		joined, joining    bool
		has, lacks         []string
	}{
		{"no names", "", "tools/list: 2 entries have no name and are left out", true, false,
			[]string{"Give each entry a name", "or connects again."}, []string{cursors, restart}},
		{"no array", "", "tools/list ended early: the result has no array of tools", true, false,
			[]string{`{"tools":[]}`}, []string{cursors, "Give each"}},
		{"a cursor again", "", "tools/list ended early: the provider repeats a cursor after 3 pages", true, false,
			[]string{cursors}, []string{"Give each", "publish less"}},
		{"pages without end", "stdio", "tools/list ended early: more than 1000 pages", true, false,
			[]string{cursors, restart}, []string{"publish less"}},
		{"too many", "", "tools/list ended early: more than 20000 items", true, false,
			[]string{"publish less"}, []string{cursors}},
		{"too large", "", "tools/list ended early: larger than 16777216 bytes", true, false,
			[]string{"publish less"}, []string{cursors}},
		{"an error", "", "prompts/list failed: the database has no pages", true, false,
			[]string{"answered with a result"}, []string{cursors, "publish less"}},
		{"two causes", "", "tools/list: 1 entries have no name and are left out; prompts/list ended early: more than 1000 pages", true, false,
			[]string{"Give each entry a name", cursors}, []string{"publish less"}},

		{"silent over a socket", "", "handshake in progress", false, true,
			[]string{handler, "Then connect it again"}, []string{restart, logs}},
		{"a silent process", "stdio", "handshake in progress", false, true,
			[]string{logs, restart}, []string{handler, "connect it again"}},
		{"a silent bundle", "bundle", "initialize failed: no answer", false, false,
			[]string{logs, restart}, []string{handler}},
		{"a silent server", "streamable-http", "handshake in progress", false, true,
			[]string{"the server at the target", restart}, []string{handler, logs}},
		{"a refusal", "", "initialize refused: no licence", false, false,
			[]string{"remove what it complains of", "Then connect it again"}, []string{handler}},
		{"a refusal of an upstream", "streamable-http", "initialize refused: no licence", false, false,
			[]string{"remove what it complains of", restart}, []string{handler, "connect it again"}},
		{"no room", "", "the slot cannot be joined: Slot \"pump-1\" has too many sessions", false, false,
			[]string{"tries again by itself", "maxSessionsPerSlot"}, []string{handler, "connect it again"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := healthy()
			f.behind(c.kind)
			f.Aggregate.Members[1] = Member{Slot: "pump-1", Joined: c.joined, Joining: c.joining, Reason: c.reason}
			if c.joining {
				f.Aggregate.Members[1].Since = ago(60e9)
			}
			fix := ""
			for _, p := range Diagnose(*f, "pump-1").Problems {
				if strings.HasPrefix(p.ID, "aggregate-member-") {
					fix += p.Fix
				}
			}
			for _, part := range c.has {
				if !strings.Contains(fix, part) {
					t.Errorf("the fix does not say %q: %s", part, fix)
				}
			}
			for _, part := range c.lacks {
				if strings.Contains(fix, part) {
					t.Errorf("the fix says %q: %s", part, fix)
				}
			}
		})
	}
}

// The fixes go by the words of the package aggregate.
func TestReasonsAreThoseOfAggregate(t *testing.T) {
	files, err := filepath.Glob("../aggregate/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no sources: %v", err)
	}
	var all strings.Builder
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for _, words := range []string{
		`" failed: "`, ` ended early: `, `the result has no array of `, `entries have no %s and are left out`,
		`the provider repeats a cursor `, `%d pages`, `initialize refused: `, `initialize failed: `,
		`"the slot cannot be joined: `, `"the slot was reset"`, `"the slot ended the session: `,
	} {
		if !strings.Contains(all.String(), words) {
			t.Errorf("no reason is spelt %q", words)
		}
	}
}
