package diagnosis

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
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

var update = flag.Bool("update", false, "rewrite the golden files")

// Spec 03 2.5: whole reports, in the order of their members.
func TestReports(t *testing.T) {
	tests := []struct {
		name string
		slot string
		edit func(*Facts)
	}{
		{"healthy", "", func(*Facts) {}},
		{"mismatch-slot", "site/pump 1", func(f *Facts) {
			s := f.pump()
			s.Name, s.Answered, s.Aggregate, s.ClientCount = "site/pump 1", false, false, 1
			s.waits(3, 12345*time.Millisecond)
			f.RequestTimeoutMs = 0
		}},
		{"everything", "", func(f *Facts) {
			b := &f.Broker
			b.TLS, b.Authority, b.Host, b.BoundWide = true, "broker.example:8443", "0.0.0.0", true
			b.Paths = Paths{Provider: "/in", Providers: "/shared", Client: "/", MCP: "/rpc", SSE: "/events", Messages: "/post"}
			f.HeartbeatMs, f.Takeover = 0, "always"
			f.Bridge.Target, f.Pages.Mounts = "pump-1", []string{"/"}
			f.SlowReaders = map[string]SlowReaders{"ws": {Closed: 2, Dropped: 70, Slot: "pump-1", DroppedAt: ago(2 * time.Second)}, "sse": {Closed: 1}}
			f.pump().waits(900, 7*time.Second)
			f.pump().Restarts = 1
			f.pump().Attached = [msg.FlapCount]time.Time{ago(time.Second), ago(2 * time.Second), ago(3 * time.Second), ago(4 * time.Second), ago(5 * time.Second)}
			silent := f.add("silent", msg.Multiplexed)
			silent.Answered, silent.Aggregate, silent.SessionCount = false, true, 4
			silent.waits(1, 6*time.Second)
			f.Aggregate.Members = append(f.Aggregate.Members, Member{Slot: "silent", Joining: true, Reason: "handshake in progress", Since: ago(6 * time.Second)})
			f.Aggregate.Members[1].Reason = "prompts/list failed: Method not allowed (-32000)"
			f.add("quiet", msg.Dedicated)
			lost := f.add("shared/lost", msg.Dedicated)
			lost.Attached = [msg.FlapCount]time.Time{}
			lost.leaves()
			lost.ClientCount = 1
		}},
		{"nothing-known", "", func(f *Facts) {
			*f = Facts{Now: now, Broker: Broker{Name: "b", Authority: "localhost:3000", ClientAuth: true, ProviderAuth: true}}
		}},
		{"notes", "_all", func(f *Facts) {
			f.Broker.ClientAuth, f.Broker.ProviderAuth, f.Bridge.Target = true, true, "_all"
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := healthy()
			tt.edit(f)
			got := Diagnose(*f, tt.slot).JSON()
			if !json.Valid(got) || bytes.ContainsAny(got, "\n") {
				t.Fatalf("not one line of JSON: %s", got)
			}
			var pretty bytes.Buffer
			if err := json.Indent(&pretty, got, "", "  "); err != nil {
				t.Fatal(err)
			}
			pretty.WriteByte('\n')
			file := filepath.Join("testdata", tt.name+".json")
			if *update {
				if err := os.WriteFile(file, pretty.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), pretty.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		})
	}
}

// A report of thousands of slots in one state stays readable, and says so.
func TestProblemsAreBounded(t *testing.T) {
	f := healthy()
	for i := range 1000 {
		f.add(fmt.Sprintf("away-%d", i), msg.Dedicated).leaves()
	}
	r := Diagnose(*f, "")
	if got := len(r.Problems); got != maxPerRule {
		t.Errorf("%d problems, want %d", got, maxPerRule)
	}
	if want := []string{`900 more problems "slot-never-connected" were left out; ask about one slot to see its own.`}; !cmp.Equal(want, r.Notes) {
		t.Errorf("notes %q, want %q", r.Notes, want)
	}
	if r.Summary.Slots != 1003 || len(r.Slots) != 1003 {
		t.Errorf("summary %+v, %d slots", r.Summary, len(r.Slots))
	}
	if r := Diagnose(*f, "away-999"); len(r.Problems) != 1 || len(r.Slots) != 1 || r.Summary.Slots != 1003 {
		t.Errorf("in slot mode: %d problems, %d slots, summary %+v", len(r.Problems), len(r.Slots), r.Summary)
	}
}

// Spec 03 2.4: a fix names paths and settings in full, those in effect.
func TestFixesNameWhatIsInEffect(t *testing.T) {
	f := healthy()
	f.Broker.TLS, f.Broker.Authority = true, "b.example:8443"
	f.Broker.Paths = Paths{Provider: "/in", Providers: "/shared", Client: "/", MCP: "/rpc", SSE: "/events", Messages: "/post"}
	s := f.pump()
	s.Name, s.Answered = "a/b", false
	s.waits(1, 6*time.Second)
	fix := Diagnose(*f, "").Problems[0].Fix
	for _, part := range []string{
		"wss://b.example:8443/in/a%2Fb", "wss://b.example:8443/shared,", "wss://b.example:8443/shared/a%2Fb",
		"{\"provider\":\"a/b\",\"payload\":{...}}", "60s (providerRequestTimeoutMs = 60000)",
	} {
		if !strings.Contains(fix, part) {
			t.Errorf("the fix lacks %q: %s", part, fix)
		}
	}
}

// Every setting a fix names can be made, in the file and in the environment.
func TestFixesNameRealSettings(t *testing.T) {
	envs := map[string]string{}
	for _, v := range config.EnvVars() {
		envs[v.Name] = v.Key
	}
	assignment := regexp.MustCompile(`set ((\w+) = (\S+)) in broker\.toml, or (\w+)=(\S+) in the environment`)
	variable := regexp.MustCompile(`MCP_BROKER_[A-Z_]*[A-Z]`)
	seen := map[string]bool{}
	check := func(fix string) {
		for _, m := range assignment.FindAllStringSubmatch(fix, -1) {
			seen[m[2]] = true
			if _, err := config.Parse("fix.toml", []byte(m[1])); err != nil || envs[m[4]] != m[2] {
				t.Errorf("%q: %v; %s sets %q", m[0], err, m[4], envs[m[4]])
			}
		}
		for _, name := range variable.FindAllString(fix, -1) {
			if _, ok := envs[name]; !ok {
				t.Errorf("there is no variable %s: %s", name, fix)
			}
		}
	}
	for seed := range uint64(500) {
		f := randomFacts(rand.New(rand.NewPCG(seed, 2)))
		f.Broker.TLS, f.Broker.Authority = false, "localhost:3000"
		for _, p := range Diagnose(f, "").Problems {
			check(p.Fix)
		}
	}
	want := []string{
		"allowedOrigins", "host", "maxPendingPerSlot", "providerHeartbeatIntervalMs", "providerRequestTimeoutMs", "providerTakeover", "sessionIdleTimeoutMs",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(seen))); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}
