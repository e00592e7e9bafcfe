package diagnosis

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/actors/msg"
	"mcpbroker/config"
)

// upstream puts an upstream of a kind behind a slot "up", with a tool that shows
// that it works.
func (f *Facts) upstream(kind string) (*Slot, *msg.Instance) {
	s := f.add("up", msg.Upstream)
	s.Aggregate = true
	f.Aggregate.Members = append(f.Aggregate.Members, Member{Slot: "up", Joined: true, Since: ago(time.Minute)})
	f.Instances = append(f.Instances, msg.Instance{
		Slot: "up", Kind: kind, Target: "npx server", Verdict: msg.Healthy, Check: "ls", Since: ago(time.Minute), LastAttempt: ago(time.Minute),
	})
	return s, &f.Instances[len(f.Instances)-1]
}

// fails takes an upstream down after n failed attempts.
func fails(s *Slot, i *msg.Instance, n int) {
	s.leaves()
	i.Verdict, i.Check, i.Since, i.Attempt, i.LastAttempt, i.NextRetry = msg.Failed, "tools/list", time.Time{}, n, ago(20*time.Second), now.Add(10*time.Second)
	i.Error = "exited with code 1"
}

// restarts takes an upstream down for a moment: it is a member of _all that stays.
func restarts(f *Facts, s *Slot, i *msg.Instance) {
	s.leaves()
	s.Expected, s.Aggregate, i.Verdict = true, true, msg.Starting
	m := &f.Aggregate.Members[len(f.Aggregate.Members)-1]
	m.Restarting, m.Reason = true, "its lists are those of before the restart"
}

// Each rule about upstreams where it fires and where it must not (spec 06, spec 03
// 2.5.1 upstream-not-responding). The list is all that is reported.
func TestUpstreamRules(t *testing.T) {
	tests := []struct {
		name string
		edit func(f *Facts, s *Slot, i *msg.Instance)
		slot string
		want []string
	}{
		{"healthy", func(*Facts, *Slot, *msg.Instance) {}, "", nil},
		{"starting", func(_ *Facts, s *Slot, i *msg.Instance) { s.leaves(); i.Verdict = msg.Starting }, "", nil},
		{"starting, with clients that wait", func(_ *Facts, s *Slot, i *msg.Instance) { s.leaves(); s.ClientCount, i.Verdict = 3, msg.Starting }, "", nil},
		{"stopping", func(_ *Facts, s *Slot, i *msg.Instance) { s.leaves(); i.Verdict = msg.Halted }, "", nil},

		{"started again, a member of _all", restarts, "", []string{"info aggregate-member-restarting up"}},
		{"the same, asked about it", restarts, "up", []string{"info aggregate-member-restarting up"}},
		{"the same, asked about _all", restarts, "_all", []string{"info aggregate-member-restarting up"}},
		{"the same, asked about another", restarts, "pump-1", nil},
		{"the only one is started again", func(f *Facts, s *Slot, i *msg.Instance) {
			restarts(f, s, i)
			f.Slots[2] = *s
			f.Slots, f.Aggregate.Members = f.Slots[:3], slices.Delete(f.Aggregate.Members, 1, 2)
		}, "", []string{"info aggregate-member-restarting up"}},

		{"live", func(_ *Facts, _ *Slot, i *msg.Instance) { i.Verdict, i.Check = msg.Live, "tools/list" }, "", []string{"info upstream-live-only up"}},
		{"live, asked about it", func(_ *Facts, _ *Slot, i *msg.Instance) { i.Verdict, i.Check = msg.Live, "tools/list" }, "up", []string{"info upstream-live-only up"}},
		{"live, asked about another", func(_ *Facts, _ *Slot, i *msg.Instance) { i.Verdict, i.Check = msg.Live, "tools/list" }, "pump-1", nil},
		{"live without tools to check it with", func(_ *Facts, _ *Slot, i *msg.Instance) { i.Verdict, i.Check = msg.Live, "ping" }, "", nil},
		{"one process for each session", func(_ *Facts, _ *Slot, i *msg.Instance) { i.Verdict, i.Isolated = msg.Live, true }, "", nil},

		{"cannot be started", func(_ *Facts, s *Slot, i *msg.Instance) { fails(s, i, 1) }, "", []string{"error upstream-failed up"}},
		{"the same, with clients", func(_ *Facts, s *Slot, i *msg.Instance) { fails(s, i, 9); s.SessionCount = 1 }, "up", []string{"error upstream-failed up"}},
		{"the same, asked about another", func(_ *Facts, s *Slot, i *msg.Instance) { fails(s, i, 9) }, "pump-1", nil},
		{"a setting is missing", func(_ *Facts, s *Slot, i *msg.Instance) { fails(s, i, 1); i.Unresolved = true }, "", []string{"error upstream-secret-missing up"}},
		{"one was missing", func(_ *Facts, _ *Slot, i *msg.Instance) { i.Unresolved = true }, "", nil},
		{"credentials are refused", func(_ *Facts, s *Slot, i *msg.Instance) { fails(s, i, 1); i.Denied = true }, "", []string{"error remote-auth-refused up"}},
		{"they were refused", func(_ *Facts, _ *Slot, i *msg.Instance) { i.Denied = true }, "", nil},
		{"given up", func(_ *Facts, s *Slot, i *msg.Instance) { fails(s, i, 3); i.GaveUp, i.NextRetry = true, time.Time{} }, "", []string{"error upstream-gave-up up"}},
		{"given up for want of a setting", func(_ *Facts, s *Slot, i *msg.Instance) { fails(s, i, 3); i.GaveUp, i.Unresolved = true, true }, "",
			[]string{"error upstream-secret-missing up", "error upstream-gave-up up"}},
		{"crash loop, down", func(_ *Facts, s *Slot, i *msg.Instance) { fails(s, i, 2); i.CrashLoop = true }, "", []string{"error upstream-crash-loop up"}},
		{"crash loop, up", func(_ *Facts, _ *Slot, i *msg.Instance) { i.CrashLoop = true }, "", []string{"warning upstream-crash-loop up"}},
		{"crash loop, asked about another", func(_ *Facts, _ *Slot, i *msg.Instance) { i.CrashLoop = true }, "pump-1", nil},
		{"restarts that are spread over days", func(_ *Facts, _ *Slot, i *msg.Instance) { i.Restarts = 40 }, "", nil},
		{"it comes back often", func(_ *Facts, s *Slot, i *msg.Instance) {
			i.CrashLoop = true
			for n := range s.Attached {
				s.Attached[n] = ago(time.Duration(n) * time.Second)
			}
		}, "", []string{"warning upstream-crash-loop up"}},

		{"degraded", func(_ *Facts, _ *Slot, i *msg.Instance) {
			i.Verdict, i.Error = msg.Degraded, "Readiness check (ls) failed: x"
		}, "", []string{"warning upstream-unhealthy up"}},
		{"unhealthy", func(_ *Facts, _ *Slot, i *msg.Instance) {
			i.Verdict, i.Error = msg.Unhealthy, "Readiness check (ls) failed: x"
		}, "", []string{"error upstream-unhealthy up"}},
		{"ended by the broker after its checks", func(_ *Facts, s *Slot, i *msg.Instance) {
			fails(s, i, 1)
			i.Cause, i.Error = msg.CauseChecks, "Readiness check (ls) failed: x"
		}, "", []string{"error upstream-unhealthy up"}},
		{"its checks go on to fail", func(_ *Facts, _ *Slot, i *msg.Instance) { i.Verdict, i.Unremedied = msg.Unhealthy, true }, "", []string{"error upstream-unhealthy up"}},
		{"given up after its checks", func(_ *Facts, s *Slot, i *msg.Instance) {
			fails(s, i, 3)
			i.Verdict, i.Cause, i.GaveUp, i.NextRetry = msg.Unhealthy, msg.CauseChecks, true, time.Time{}
		}, "", []string{"error upstream-gave-up up"}},
		{"killed while it served", func(_ *Facts, s *Slot, i *msg.Instance) { fails(s, i, 1); i.Cause = msg.CauseEnded }, "", []string{"error upstream-failed up"}},
		{"another provider holds its slot", func(f *Facts, s *Slot, i *msg.Instance) {
			i.Verdict, i.Cause, i.Attempt, i.NextRetry, i.Error = msg.Failed, msg.CauseSlot, 1, now.Add(time.Minute), "its slot is held"
			s.Transport = msg.Dedicated
		}, "", []string{"error upstream-failed up"}},
		{"unhealthy, asked about another", func(_ *Facts, _ *Slot, i *msg.Instance) { i.Verdict = msg.Unhealthy }, "pump-1", nil},

		{"a slow call of one that has answered before", func(_ *Facts, s *Slot, _ *msg.Instance) { s.waits(1, 30*time.Second) }, "", []string{"info provider-slow up"}},
		{"the same, asked about it", func(_ *Facts, s *Slot, _ *msg.Instance) { s.waits(1, 30*time.Second) }, "up", []string{"info provider-slow up"}},
		{"the same, asked about another", func(_ *Facts, s *Slot, _ *msg.Instance) { s.waits(1, 30*time.Second) }, "pump-1", nil},
		{"the same, of an upstream that is not described", func(f *Facts, s *Slot, _ *msg.Instance) { f.Instances = f.Instances[:0]; s.waits(1, 6*time.Second) }, "",
			[]string{"info provider-slow up"}},
		{"the same, with one process for each session", func(_ *Facts, s *Slot, i *msg.Instance) {
			i.Verdict, i.Isolated = msg.Live, true
			s.waits(1, 6*time.Second)
		}, "",
			[]string{"info provider-slow up"}},
		{"a quick call", func(_ *Facts, s *Slot, _ *msg.Instance) { s.waits(9, 5*time.Second) }, "", nil},
		{"never a word", func(_ *Facts, s *Slot, _ *msg.Instance) { s.Answered = false; s.waits(1, 6*time.Second) }, "", []string{"warning upstream-not-responding up"}},
		{"the same, asked about it", func(_ *Facts, s *Slot, _ *msg.Instance) { s.Answered = false; s.waits(1, 6*time.Second) }, "up", []string{"warning upstream-not-responding up"}},
		{"the same, of an upstream that is not described", func(f *Facts, s *Slot, _ *msg.Instance) {
			f.Instances, s.Answered = f.Instances[:0], false
			s.waits(1, 6*time.Second)
		}, "", []string{"warning upstream-not-responding up"}},
		{"never a word, but not for long", func(_ *Facts, s *Slot, _ *msg.Instance) { s.Answered = false; s.waits(9, 5*time.Second) }, "", nil},
		{"never a word, and never asked", func(_ *Facts, s *Slot, _ *msg.Instance) { s.Answered = false }, "", nil},
		{"it has not answered initialize yet", func(_ *Facts, s *Slot, i *msg.Instance) {
			i.Verdict, i.Since = msg.Starting, time.Time{}
			s.waits(1, 6*time.Second)
		}, "", nil},
		{"the same, and _all waits for it", func(f *Facts, s *Slot, i *msg.Instance) {
			i.Verdict, i.Since = msg.Starting, time.Time{}
			s.waits(1, 6*time.Second)
			f.Aggregate.Members[2] = Member{Slot: "up", Joining: true, Reason: "handshake in progress", Since: ago(6 * time.Second)}
		}, "", nil},
		{"calls that are held back", func(_ *Facts, s *Slot, i *msg.Instance) {
			s.leaves()
			s.waits(1, time.Hour)
			i.Verdict = msg.Starting
		}, "", nil},
		{"a slow call of another kind", func(f *Facts, _ *Slot, _ *msg.Instance) { f.pump().waits(1, 6*time.Second) }, "", []string{"info provider-slow pump-1"}},

		{"a host pinned to it", func(f *Facts, s *Slot, i *msg.Instance) { s.leaves(); i.Verdict, f.Bridge.Target = msg.Starting, "up" }, "", nil},
		{"the slot of an upstream that was taken out", func(f *Facts, s *Slot, _ *msg.Instance) { s.leaves(); f.Instances = f.Instances[:0] }, "", []string{"info slot-never-connected up"}},
	}
	for _, kind := range []string{"stdio", "bundle", "streamable-http", "sse", "websocket"} {
		for _, tt := range tests {
			t.Run(kind+" "+tt.name, func(t *testing.T) {
				f := healthy()
				s, i := f.upstream(kind)
				tt.edit(f, s, i)
				var got []string
				for _, p := range Diagnose(*f, tt.slot).Problems {
					got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", p.Severity, p.ID, p.Slot)))
					if p.Symptom == "" || p.Fix == "" || len(p.Evidence) == 0 {
						t.Errorf("%s: symptom %q, evidence %v, fix %q", p.ID, p.Symptom, p.Evidence, p.Fix)
					}
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("problems (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// What is said names counts, the error and the last line of standard error, the
// field and the variable.
func TestUpstreamSymptoms(t *testing.T) {
	tests := []struct {
		edit                 func(*Facts, *Slot, *msg.Instance)
		id, symptom, evident string
	}{
		{func(_ *Facts, s *Slot, i *msg.Instance) {
			fails(s, i, 2)
			i.CrashLoop, i.Restarts, i.Tail = true, 6, []string{"ready", "no DISPLAY", "stdout: usage", "--- process 7 ended: exit code 1 ---"}
		}, "upstream-crash-loop",
			`Upstream "up" answers the handshake and ends soon after, again and again; it was started 7 times. It is down: 2 attempts in a row failed, and the next one is in 10s. The last line of its standard error: no DISPLAY`,
			`{"verdict":"error","error":"exited with code 1","attemptCount":2,"lastAttemptAt":"2026-03-01T11:59:40.000Z","nextRetryAt":"2026-03-01T12:00:10.000Z","restarts":6,"kind":"stdio","target":"npx server","lastStderrLine":"no DISPLAY"}`},
		{func(_ *Facts, s *Slot, i *msg.Instance) {
			fails(s, i, 1)
			i.Unresolved, i.Error, i.NextRetry = true, "env.TOKEN: unresolved: the variable CRM_TOKEN is not set", time.Time{}
		}, "upstream-secret-missing",
			`Upstream "up" is not started, since one of its settings cannot be resolved: env.TOKEN: unresolved: the variable CRM_TOKEN is not set; 1 attempt in a row failed, and the next one is under way.`,
			`{"verdict":"error","error":"env.TOKEN: unresolved: the variable CRM_TOKEN is not set","attemptCount":1,"lastAttemptAt":"2026-03-01T11:59:40.000Z","nextRetryAt":null,"restarts":0,"kind":"stdio","target":"npx server"}`},
		{func(_ *Facts, s *Slot, i *msg.Instance) {
			fails(s, i, 3)
			i.GaveUp = true
		}, "upstream-gave-up",
			`Upstream "up" was given up: 3 attempts in a row failed, and there will be no further attempt (maxRestarts). The last error: exited with code 1.`, ""},
		{func(_ *Facts, s *Slot, i *msg.Instance) {
			fails(s, i, 1)
			i.Cause, i.Error = msg.CauseEnded, "it was killed by SIGKILL"
		}, "upstream-failed",
			`Upstream "up" ended while it served, and is down: it was killed by SIGKILL; the next attempt is in 10s.`, ""},
		{func(_ *Facts, s *Slot, i *msg.Instance) {
			fails(s, i, 1)
			i.Cause, i.Error = msg.CauseChecks, "Readiness check (ls) failed: x"
		}, "upstream-unhealthy",
			`Upstream "up" was ended by the broker, since its checks failed, and is down; the next attempt is in 10s. Readiness check (ls) failed: x.`, ""},
		{func(_ *Facts, s *Slot, i *msg.Instance) {
			fails(s, i, 2)
			i.Verdict, i.Cause, i.Error = msg.Unhealthy, msg.CauseChecks, "Readiness check (ls) failed: x"
		}, "upstream-unhealthy",
			`Upstream "up" was ended by the broker, since its checks failed, and is down; 2 attempts in a row failed, and the next one is in 10s. Readiness check (ls) failed: x.`, ""},
		{func(_ *Facts, s *Slot, i *msg.Instance) { s.Answered = false; s.waits(2, 7*time.Second) }, "upstream-not-responding",
			`The upstream of slot "up" has been connected for 60s and has not sent a JSON-RPC message, with 2 requests in flight, the oldest for 7s.`,
			`{"transport":"stdio","pendingCount":2,"providerRequestTimeoutMs":60000,"oldestPendingMs":7000,"connectedForMs":60000,"heardSinceConnected":false,"slowAfterMs":5000}`},
		{func(_ *Facts, s *Slot, i *msg.Instance) { s.waits(2, 7*time.Second) }, "provider-slow",
			`The upstream of slot "up" has sent messages since it connected, and 2 requests wait without its answer, the oldest for 7s.`,
			`{"transport":"stdio","pendingCount":2,"oldestPendingMs":7000,"heardSinceConnected":true,"slowAfterMs":5000,"providerRequestTimeoutMs":60000}`},
		{func(f *Facts, s *Slot, i *msg.Instance) { restarts(f, s, i); i.Restarts = 1 }, "aggregate-member-restarting",
			`The upstream of slot "up" is being started again. _all shows what it published before, and calls of it wait: its lists are those of before the restart.`,
			`{"reason":"its lists are those of before the restart","joinedForMs":60000,"verdict":"starting","restarts":1}`},
	}
	for _, tt := range tests {
		f := healthy()
		s, i := f.upstream("stdio")
		tt.edit(f, s, i)
		p := Diagnose(*f, "up").Problems[0]
		if p.ID != tt.id || p.Symptom != tt.symptom {
			t.Errorf("%s:\n got %s\nwant %s", p.ID, p.Symptom, tt.symptom)
		}
		if got := string(compact(p.Evidence)); tt.evident != "" && got != tt.evident {
			t.Errorf("%s:\n got %s\nwant %s", p.ID, got, tt.evident)
		}
	}
}

// Fixes can be carried out: the entry they name is of the right list, what they
// write into it is valid, and the commands exist.
func TestUpstreamFixes(t *testing.T) {
	states := []func(*Slot, *msg.Instance){
		func(s *Slot, i *msg.Instance) { fails(s, i, 1) },
		func(s *Slot, i *msg.Instance) { fails(s, i, 1); i.Unresolved = true },
		func(s *Slot, i *msg.Instance) { fails(s, i, 1); i.Denied = true },
		func(s *Slot, i *msg.Instance) { fails(s, i, 1); i.CrashLoop = true },
		func(s *Slot, i *msg.Instance) { fails(s, i, 1); i.GaveUp = true },
		func(_ *Slot, i *msg.Instance) { i.Verdict = msg.Unhealthy },
		func(_ *Slot, i *msg.Instance) { i.Verdict, i.Check = msg.Degraded, "tools/list" },
		func(_ *Slot, i *msg.Instance) { i.Verdict, i.Check = msg.Live, "tools/list" },
		func(s *Slot, _ *msg.Instance) { s.waits(1, time.Minute) },
		func(s *Slot, _ *msg.Instance) { s.Answered = false; s.waits(1, time.Minute) },
	}
	required := map[string]string{
		"stdioUpstreams": "command = 'x'", "mcpServers": "url = 'https://x/mcp'", "mcpbBundles": "path = 'x'\npublicKey = 'x'",
	}
	kinds := map[string]string{"stdio": "stdioUpstreams", "bundle": "mcpbBundles", "sse": "mcpServers"}
	list := regexp.MustCompile(`\[\[(\w+)\]\] with name = "up"`)
	assignment := regexp.MustCompile(`(?:headers|oauth|healthCheck) = \{.*? \}`)
	program := regexp.MustCompile(`'broker (\w+)`)
	commands, assigned := commandNames(t), 0
	for kind, want := range kinds {
		for n, edit := range states {
			f := healthy()
			edit(f.upstream(kind))
			fix := Diagnose(*f, "up").Problems[0].Fix
			for _, m := range list.FindAllStringSubmatch(fix, -1) {
				if m[1] != want {
					t.Errorf("%s, state %d names the list %s", kind, n, m[1])
				}
			}
			for _, text := range assignment.FindAllString(fix, -1) {
				if kind != "sse" && !strings.HasPrefix(text, "healthCheck") {
					continue // no child has credentials to be refused
				}
				assigned++
				text = strings.ReplaceAll(text, "https://...", "https://x/")
				if _, err := config.Parse("fix.toml", fmt.Appendf(nil, "[[%s]]\nname = 'up'\n%s\n%s\n", want, required[want], text)); err != nil {
					t.Errorf("%s: %v", text, err)
				}
			}
			for _, m := range program.FindAllStringSubmatch(fix, -1) {
				if !commands[m[1]] {
					t.Errorf("there is no command %q: %s", m[1], fix)
				}
			}
		}
	}
	if assigned != 5 {
		t.Errorf("%d assignments were found", assigned)
	}
}

// commandNames are the names the command line program gives to its commands.
func commandNames(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("../../cmd/broker/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no program: %v", err)
	}
	names := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`Name: +"(\w+)"`).FindAllSubmatch(text, -1) {
			names[string(m[1])] = true
		}
	}
	return names
}

// A name that a shell would take apart is quoted.
func TestCommandQuotes(t *testing.T) {
	for slot, want := range map[string]string{
		"pump-1": "'broker logs pump-1'", "site/a.b_1": "'broker logs site/a.b_1'", "a b": `'broker logs "a b"'`, "": `'broker logs ""'`, "a;b": `'broker logs "a;b"'`,
	} {
		if got := command("logs", slot); got != want {
			t.Errorf("command of %q is %s, want %s", slot, got, want)
		}
	}
}

// A fix fits the kind of what is in trouble.
func TestFixesFitTheKind(t *testing.T) {
	for _, tt := range []struct {
		kind, id, want string
		edit           func(*Facts, *Slot, *msg.Instance)
	}{
		{"stdio", "upstream-failed", "start its command line in a shell to see what it does: npx server.", func(_ *Facts, s *Slot, i *msg.Instance) { fails(s, i, 1) }},
		{"bundle", "upstream-failed", "Run 'broker logs up' for the last lines it wrote to standard error.", func(_ *Facts, s *Slot, i *msg.Instance) { fails(s, i, 1) }},
		{"stdio", "upstream-failed", `Give the entry of [[stdioUpstreams]] with name = "up" of broker.toml another name, or end that provider;`,
			func(_ *Facts, s *Slot, i *msg.Instance) { fails(s, i, 1); i.Cause = msg.CauseSlot }},
		{"stdio", "provider-slow", "If it hangs: Run 'broker logs up' for the last lines of its standard error. 'broker restart up' makes its connection again",
			func(_ *Facts, s *Slot, _ *msg.Instance) { s.waits(1, time.Minute) }},
		{"sse", "provider-slow", "If it hangs: See that npx server answers with JSON-RPC", func(_ *Facts, s *Slot, _ *msg.Instance) { s.waits(1, time.Minute) }},
		{"sse", "upstream-unhealthy", `The server has no tool "ls": names are case-sensitive`,
			func(_ *Facts, _ *Slot, i *msg.Instance) {
				i.Verdict, i.Unremedied, i.ToolMissing = msg.Unhealthy, true, true
			}},
		{"stdio", "aggregate-missing-live-slots", `Nothing, if that is meant. Set aggregate = true in the entry with name = "up" of broker.toml; `,
			func(f *Facts, s *Slot, _ *msg.Instance) {
				s.Aggregate, f.Aggregate.Members = false, f.Aggregate.Members[:len(f.Aggregate.Members)-1]
			}},
		{"stdio", "slot-never-connected", "A slash in the name often means a provider that dialled a wrong path",
			func(f *Facts, _ *Slot, _ *msg.Instance) {
				s := f.add("provders/pump-1", msg.Dedicated)
				s.Attached = [msg.FlapCount]time.Time{}
				s.leaves()
			}},
	} {
		f := healthy()
		s, i := f.upstream(tt.kind)
		tt.edit(f, s, i)
		fix := ""
		for _, p := range Diagnose(*f, "").Problems {
			if p.ID == tt.id {
				fix = p.Fix
			}
		}
		if !strings.Contains(fix, tt.want) {
			t.Errorf("%s %s: fix %q, want %q in it", tt.kind, tt.id, fix, tt.want)
		}
	}
}
