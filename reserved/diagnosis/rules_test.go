package diagnosis

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/actors/msg"
)

// Spec 03 2.5.1: each rule where it fires and where it must not. The list is all
// that is reported.
func TestRules(t *testing.T) {
	const slow, quick = 6 * time.Second, 4 * time.Second
	attached := func(ages ...time.Duration) (list [msg.FlapCount]time.Time) {
		for i, age := range ages {
			list[i] = ago(age)
		}
		return list
	}
	tests := []struct {
		name string
		edit func(*Facts)
		slot string
		want []string
	}{
		{"a healthy broker", func(*Facts) {}, "", nil},
		{"a healthy slot", func(*Facts) {}, "pump-1", nil},

		{"not started", func(f *Facts) { f.Broker.StartedAt = time.Time{} }, "", []string{"error broker-not-started"}},
		{"not started, asked about a slot", func(f *Facts) { f.Broker.StartedAt = time.Time{} }, "pump-1", []string{"error broker-not-started"}},

		{"a change of the configuration was refused", func(f *Facts) {
			f.Configuration = Configuration{File: "/etc/broker.toml", ReloadedAt: ago(time.Minute), Refused: `broker.toml:3:1: unknown key "prot"`}
		}, "", []string{"warning config-refused"}},
		{"the same, asked about a slot", func(f *Facts) {
			f.Configuration = Configuration{ReloadedAt: ago(time.Minute), Refused: "x"}
		}, "pump-1", []string{"warning config-refused"}},
		{"a change of the configuration was applied", func(f *Facts) {
			f.Configuration = Configuration{File: "/etc/broker.toml", ReloadedAt: ago(time.Minute)}
		}, "", nil},
		{"a change waits for a restart", func(f *Facts) { f.Configuration.Restart = []string{"port"} }, "", []string{"warning config-needs-restart"}},
		{"the same, asked about a slot", func(f *Facts) { f.Configuration.Restart = []string{"port"} }, "pump-1", nil},

		{"bound wide", func(f *Facts) { f.Broker.BoundWide, f.Broker.Host = true, "0.0.0.0" }, "", []string{"warning port-bound-wide"}},
		{"bound wide, providers authenticate", func(f *Facts) { f.Broker.BoundWide, f.Broker.ProviderAuth = true, true }, "", []string{"warning port-bound-wide"}},
		{"bound wide, clients authenticate", func(f *Facts) { f.Broker.BoundWide, f.Broker.ClientAuth = true, true }, "", []string{"warning port-bound-wide"}},
		{"bound wide with authentication", func(f *Facts) { f.Broker.BoundWide, f.Broker.ClientAuth, f.Broker.ProviderAuth = true, true, true }, "", nil},
		{"bound wide, asked about a slot", func(f *Facts) { f.Broker.BoundWide = true }, "pump-1", nil},

		{"takeover always", func(f *Facts) { f.Takeover = "always" }, "", []string{"info takeover-downgraded"}},
		{"takeover always between authenticated providers", func(f *Facts) { f.Takeover, f.Broker.ProviderAuth = "always", true }, "", nil},
		{"takeover always, asked about a slot", func(f *Facts) { f.Takeover = "always" }, "pump-1", nil},

		{"never a word on a dedicated socket", func(f *Facts) { f.pump().Answered = false; f.pump().waits(2, slow) }, "", []string{"error transport-path-mismatch pump-1"}},
		{"the same, asked about", func(f *Facts) { f.pump().Answered = false; f.pump().waits(2, slow) }, "pump-1", []string{"error transport-path-mismatch pump-1"}},
		{"the same, asked about another slot", func(f *Facts) { f.pump().Answered = false; f.pump().waits(2, slow) }, "_all", nil},
		{"never a word, but not for long", func(f *Facts) { f.pump().Answered = false; f.pump().waits(2, quick) }, "", nil},
		{"never a word, and never asked", func(f *Facts) { f.pump().Answered = false }, "", nil},
		{"exactly at the threshold", func(f *Facts) { f.pump().Answered = false; f.pump().waits(2, DefaultSlowAfter) }, "", nil},
		{"another threshold", func(f *Facts) { f.SlowAfter = 3 * time.Second; f.pump().Answered = false; f.pump().waits(2, quick) }, "",
			[]string{"error transport-path-mismatch pump-1"}},
		{"a slow call of a provider that works", func(f *Facts) { f.pump().waits(1, 30*time.Second) }, "", []string{"info provider-slow pump-1"}},
		{"the same on a shared socket", func(f *Facts) { f.pump().Transport = msg.Multiplexed; f.pump().waits(1, 30*time.Second) }, "", []string{"info provider-slow pump-1"}},
		{"a call of a provider that works", func(f *Facts) { f.pump().waits(100, quick) }, "", nil},
		{"never a word on a shared socket", func(f *Facts) {
			f.pump().Transport, f.pump().Answered = msg.Multiplexed, false
			f.pump().waits(1, slow)
		}, "",
			[]string{"warning provider-not-responding pump-1"}},
		{"never a word on a shared socket, but not for long", func(f *Facts) {
			f.pump().Transport, f.pump().Answered = msg.Multiplexed, false
			f.pump().waits(1, quick)
		}, "", nil},
		{"a loopback provider that says nothing", func(f *Facts) {
			f.pump().Transport, f.pump().Answered = msg.Loopback, false
			f.pump().waits(1, time.Hour)
		}, "", nil},

		{"near the bound", func(f *Facts) { f.pump().MaxPending = 1024; f.pump().waits(820, time.Second) }, "", []string{"warning queue-near-bound pump-1"}},
		{"under the bound", func(f *Facts) { f.pump().MaxPending = 1024; f.pump().waits(819, time.Second) }, "", nil},
		{"at the bound", func(f *Facts) { f.pump().MaxPending = 8; f.pump().waits(8, time.Second) }, "pump-1", []string{"error queue-near-bound pump-1"}},
		{"no bound", func(f *Facts) { f.pump().MaxPending = 0; f.pump().waits(8, time.Second) }, "", nil},

		{"five attachments in a minute", func(f *Facts) { f.pump().Attached = attached(0, 10e9, 20e9, 30e9, 59e9) }, "", []string{"warning restart-loop pump-1"}},
		{"five attachments in more", func(f *Facts) { f.pump().Attached = attached(0, 10e9, 20e9, 30e9, 61e9) }, "", nil},
		{"four attachments", func(f *Facts) { f.pump().Attached = attached(0, 1e9, 2e9, 3e9) }, "", nil},
		{"a loop that is over", func(f *Facts) {
			f.pump().Attached = attached(time.Hour, time.Hour, time.Hour, time.Hour, time.Hour)
		}, "", nil},
		{"the broker's own failures", func(f *Facts) { f.pump().Restarts = 2 }, "pump-1", []string{"warning restart-loop pump-1"}},

		{"a provider that left", func(f *Facts) { f.pump().leaves() }, "pump-1", []string{"info slot-never-connected pump-1"}},
		{"a provider that the heartbeat has cut", func(f *Facts) { f.pump().leaves(); f.pump().LeftSilent = true }, "pump-1", []string{"info slot-never-connected pump-1"}},
		{"a provider that left its client", func(f *Facts) { f.pump().leaves(); f.pump().ClientCount = 1 }, "pump-1", []string{"error slot-never-connected pump-1"}},
		{"a provider that left a stdio host", func(f *Facts) { f.pump().leaves(); f.pump().OtherCount = 1 }, "pump-1", []string{"error slot-never-connected pump-1"}},
		{"a misspelt name", func(f *Facts) { s := f.add("pmup-1", msg.Dedicated); s.Attached = attached(); s.leaves() }, "", []string{"info slot-never-connected pmup-1"}},
		{"a reserved slot not served", func(f *Facts) { f.Slots[0].Connected, f.Slots[0].Transport = false, msg.NoProvider }, "", nil},

		{"no provider", func(f *Facts) { f.Slots, f.Aggregate.Members = f.Slots[:2], f.Aggregate.Members[:1] }, "",
			[]string{"warning no-providers", "info aggregate-empty _all"}},
		{"no provider, asked about a slot", func(f *Facts) { f.Slots, f.Aggregate.Members = f.Slots[:2], f.Aggregate.Members[:1] }, "_all", nil},

		{"_all off", func(f *Facts) { f.Aggregate.Enabled, f.Aggregate.Members = false, nil }, "", []string{"info aggregate-disabled _all"}},
		{"_all off, asked about it", func(f *Facts) { f.Aggregate.Enabled = false }, "_all", []string{"info aggregate-disabled _all"}},
		{"_all off, asked about another slot (10.2 item 15)", func(f *Facts) { f.Aggregate.Enabled = false }, "pump-1", nil},
		{"nobody asked to join", func(f *Facts) { f.pump().Aggregate, f.Aggregate.Members = false, f.Aggregate.Members[:1] }, "", []string{"warning aggregate-empty _all"}},
		{"nobody asked to join, asked about a slot", func(f *Facts) { f.pump().Aggregate, f.Aggregate.Members = false, f.Aggregate.Members[:1] }, "pump-1", nil},
		{"the only one that asked is still on its way", func(f *Facts) {
			f.pump().waits(1, quick)
			f.Aggregate.Members[1] = Member{Slot: "pump-1", Joining: true, Reason: "handshake in progress"}
		}, "", nil},
		{"one did not ask", func(f *Facts) { f.add("pump-2", msg.Multiplexed) }, "", []string{"info aggregate-missing-live-slots _all"}},
		{"one did not ask, asked about it", func(f *Facts) { f.add("pump-2", msg.Multiplexed) }, "pump-2", nil},
		{"one that joined came back without asking", func(f *Facts) {
			f.add("pump-2", msg.Dedicated)
			f.Aggregate.Members = append(f.Aggregate.Members, Member{Slot: "pump-2", Reason: "provider disconnected"})
		}, "", []string{"info aggregate-missing-live-slots _all"}},
		{"asked to join and refused initialize", func(f *Facts) {
			f.Aggregate.Members[1] = Member{Slot: "pump-1", Reason: "initialize refused: no"}
		}, "", []string{"warning aggregate-member-missing pump-1"}},
		{"the same, asked about _all", func(f *Facts) {
			f.Aggregate.Members[1] = Member{Slot: "pump-1", Reason: "initialize refused: no"}
		}, "_all", []string{"warning aggregate-member-missing pump-1"}},
		{"the same, asked about another slot", func(f *Facts) {
			f.Aggregate.Members[1] = Member{Slot: "pump-1", Reason: "initialize refused: no"}
		}, "_broker", nil},
		{"asked to join a moment ago", func(f *Facts) {
			f.Aggregate.Members[1] = Member{Slot: "pump-1", Joining: true, Reason: "handshake in progress", Since: ago(quick)}
			f.pump().waits(1, quick)
		}, "", nil},
		{"asked to join and does not answer", func(f *Facts) {
			f.Aggregate.Members[1] = Member{Slot: "pump-1", Joining: true, Reason: "handshake in progress", Since: ago(slow)}
		}, "", []string{"warning aggregate-member-missing pump-1"}},
		{"the same, while calls of clients are answered", func(f *Facts) {
			f.Aggregate.Members[1] = Member{Slot: "pump-1", Joining: true, Reason: "handshake in progress", Since: ago(slow)}
			f.pump().waits(1, time.Second)
		}, "", []string{"warning aggregate-member-missing pump-1"}},
		{"asked to join while a call of a client is slow", func(f *Facts) {
			f.Aggregate.Members[1] = Member{Slot: "pump-1", Joining: true, Reason: "handshake in progress", Since: ago(time.Second)}
			f.pump().waits(2, 30*time.Second)
		}, "", []string{"info provider-slow pump-1"}},
		{"the same, and the handshake waits for it", func(f *Facts) {
			f.Aggregate.Members[1] = Member{Slot: "pump-1", Joining: true, Reason: "handshake in progress", Since: ago(20 * time.Second)}
			f.pump().waits(2, 30*time.Second)
		}, "", []string{"info provider-slow pump-1"}},
		{"asked to join, and no call is older than the handshake", func(f *Facts) {
			f.Aggregate.Members[1] = Member{Slot: "pump-1", Joining: true, Reason: "handshake in progress", Since: ago(slow)}
			f.pump().waits(2, slow)
		}, "", []string{"warning aggregate-member-missing pump-1", "info provider-slow pump-1"}},
		{"connected a moment ago and unknown to _all", func(f *Facts) {
			f.Aggregate.Members = f.Aggregate.Members[:1]
			f.pump().ConnectedSince = ago(quick)
		}, "", nil},
		{"asked to join and unknown to _all", func(f *Facts) { f.Aggregate.Members = f.Aggregate.Members[:1] }, "pump-1",
			[]string{"warning aggregate-member-missing pump-1"}},
		{"a member that left", func(f *Facts) {
			f.pump().leaves()
			f.Aggregate.Members[1] = Member{Slot: "pump-1", Reason: "provider disconnected"}
		}, "pump-1", []string{"info slot-never-connected pump-1"}},
		{"an _all that contains this one", func(f *Facts) {
			f.Aggregate.Members[1] = Member{Slot: "pump-1", Loop: true, Reason: "it is an _all that contains this broker: a loop"}
		}, "", []string{"warning aggregate-loop pump-1"}},
		{"the same, asked about _all", func(f *Facts) {
			f.Aggregate.Members[1] = Member{Slot: "pump-1", Loop: true, Reason: "it is an _all that contains this broker: a loop"}
		}, "_all", []string{"warning aggregate-loop pump-1"}},
		{"the same, asked about another slot", func(f *Facts) {
			f.Aggregate.Members[1] = Member{Slot: "pump-1", Loop: true, Reason: "it is an _all that contains this broker: a loop"}
		}, "_broker", nil},
		{"half a catalog", func(f *Facts) { f.Aggregate.Members[1].Reason = "tools/list repeated its cursor" }, "", []string{"warning aggregate-member-incomplete pump-1"}},
		{"half a catalog, asked about another slot", func(f *Facts) { f.Aggregate.Members[1].Reason = "tools/list repeated its cursor" }, "_broker", nil},

		{"the bridge's target is away", func(f *Facts) { f.Bridge.Target = "pump-9" }, "", []string{"error stdio-bridge-target-unreachable pump-9"}},
		{"the bridge's target is there", func(f *Facts) { f.Bridge.Target = "pump-1" }, "pump-1", []string{"warning stdio-bridge-target-unreachable pump-1"}},
		{"the bridge's target, asked about another slot (10.2 item 15)", func(f *Facts) { f.Bridge.Target = "pump-9" }, "pump-1", nil},
		{"the bridge to _all", func(f *Facts) { f.Bridge.Target = "_all" }, "", nil},

		{"own pages", func(f *Facts) { f.Pages.Mounts = []string{"/", "/docs"} }, "", []string{"warning self-served-page-blocked"}},
		{"own pages, origins allowed", func(f *Facts) { f.Pages = &Pages{Mounts: []string{"/"}, OriginsConfigured: true} }, "", nil},
		{"own pages, asked about a slot", func(f *Facts) { f.Pages.Mounts = []string{"/"} }, "pump-1", nil},

		{"three sessions", func(f *Facts) { f.pump().SessionCount = 3 }, "", []string{"info sessions-without-clients pump-1"}},
		{"two sessions", func(f *Facts) { f.pump().SessionCount = 2 }, "", nil},
		{"three sessions that end by themselves", func(f *Facts) { f.pump().SessionCount, f.SessionIdleTimeoutMs = 3, 1000 }, "", nil},

		{"slow readers", func(f *Facts) {
			f.SlowReaders = map[string]SlowReaders{"sse": {Closed: 2}, "http": {Closed: 1}, "ws": {}}
		}, "", []string{"info slow-readers-closed"}},
		{"no slow readers", func(f *Facts) { f.SlowReaders = map[string]SlowReaders{"sse": {Closed: 0}} }, "", nil},
		{"slow readers, asked about a slot", func(f *Facts) { f.SlowReaders = map[string]SlowReaders{"sse": {Closed: 2}} }, "pump-1", nil},

		{"a throttled reader", func(f *Facts) { f.SlowReaders = dropped("pump-1", ago(time.Minute)) }, "", []string{"warning slow-reader-throttled pump-1"}},
		{"a throttled reader, asked about its slot", func(f *Facts) { f.SlowReaders = dropped("pump-1", now) }, "pump-1", []string{"warning slow-reader-throttled pump-1"}},
		{"a throttled reader, asked about another slot", func(f *Facts) { f.add("pump-2", msg.Dedicated); f.SlowReaders = dropped("pump-2", now) }, "pump-1", nil},
		{"a reader that was throttled a while ago", func(f *Facts) { f.SlowReaders = dropped("pump-1", ago(time.Minute+time.Millisecond)) }, "", nil},

		{"gravest first, else in the order of the rules", func(f *Facts) {
			f.SlowReaders, f.Bridge.Target = map[string]SlowReaders{"sse": {Closed: 1}}, "pump-9"
			f.pump().Restarts = 1
			f.pump().waits(1, slow)
			f.Broker.BoundWide = true
		}, "", []string{
			"error stdio-bridge-target-unreachable pump-9",
			"warning port-bound-wide", "warning restart-loop pump-1",
			"info provider-slow pump-1", "info slow-readers-closed",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := healthy()
			tt.edit(f)
			r := Diagnose(*f, tt.slot)
			var got []string
			for _, p := range r.Problems {
				line := fmt.Sprintf("%s %s", p.Severity, p.ID)
				if p.Slot != "" {
					line += " " + p.Slot
				}
				got = append(got, line)
				if p.Symptom == "" || p.Fix == "" || len(p.Evidence) == 0 || strings.Contains(p.Fix, "%3C") {
					t.Errorf("%s: symptom %q, evidence %v, fix %q", p.ID, p.Symptom, p.Evidence, p.Fix)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if len(r.ChecksSkipped) > 0 || len(r.Notes) > 0 && !f.Broker.ProviderAuth {
				t.Errorf("skipped %v, notes %v", r.ChecksSkipped, r.Notes)
			}
		})
	}
}

// dropped is a WebSocket client of a slot that lost its last message then.
func dropped(slot string, at time.Time) map[string]SlowReaders {
	return map[string]SlowReaders{"WebSocket": {Dropped: 3, Slot: slot, DroppedAt: at}}
}
