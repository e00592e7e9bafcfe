package diagnosis

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"mcpbroker/actors/msg"
)

// Whatever the facts are, there is a report: valid JSON, sorted, with at most
// one problem of an id for a slot but restart-loop, and never an accusation of a
// loopback provider.
func TestAnyFacts(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 1))
		f := randomFacts(r)
		slot := pick(r, "", "", "a", "_all", "no such")
		report := Diagnose(f, slot)
		text := report.JSON()
		var back struct {
			Problems []struct{ ID, Severity string }
		}
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatalf("seed %d: %v in %s", seed, err, text)
		}
		if len(back.Problems) != len(report.Problems) {
			t.Fatalf("seed %d: %d problems in the text, %d in the report", seed, len(back.Problems), len(report.Problems))
		}
		if !slices.IsSortedFunc(report.Problems, func(a, b Problem) int { return a.Severity.rank() - b.Severity.rank() }) {
			t.Fatalf("seed %d: not sorted: %v", seed, back.Problems)
		}
		for _, p := range report.Problems {
			judge(t, seed, &f, slot, p)
		}
	}
}

func judge(t *testing.T, seed uint64, f *Facts, slot string, p Problem) {
	t.Helper()
	if slot != "" && slot != "_all" && p.Slot != "" && p.Slot != slot {
		t.Fatalf("seed %d: asked about %q and told about %q: %+v", seed, slot, p.Slot, p)
	}
	accuses := p.ID == "transport-path-mismatch" || p.ID == "provider-not-responding" || p.ID == "upstream-not-responding" || p.ID == "provider-slow"
	if !accuses {
		return
	}
	proven := slices.ContainsFunc(f.Slots, func(s Slot) bool {
		return s.Name == p.Slot && s.Connected && s.Transport != msg.Loopback && s.PendingCount > 0 &&
			f.Now.Sub(s.OldestPending) > f.SlowAfter && s.Answered == (p.ID == "provider-slow")
	})
	if !proven {
		t.Fatalf("seed %d: without proof: %+v", seed, p)
	}
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func randomFacts(r *rand.Rand) Facts {
	moment := func() time.Time {
		return pick(r, time.Time{}, now, ago(time.Second), ago(10*time.Second), ago(time.Hour), now.Add(time.Hour), time.Unix(math.MaxInt32, 0))
	}
	number := func() int { return pick(r, 0, 0, 1, 2, 3, 900, 1024, -1, math.MaxInt32) }
	name := func() string {
		return pick(r, "", "a", "b", "_all", "_broker", "providers/x", "x/y z", "\xff", "<slot>", "a\n\"b")
	}
	f := Facts{
		Now: pick(r, now, time.Time{}), Takeover: pick(r, "", "reject", "always"),
		HeartbeatMs: int64(number()), RequestTimeoutMs: int64(number()), SessionIdleTimeoutMs: int64(number()),
		SlowAfter: pick(r, 0, -time.Second, time.Second, time.Hour),
		Broker: Broker{
			Name: name(), StartedAt: moment(), Host: name(), Port: number(), Authority: name(), TLS: r.IntN(2) == 0,
			BoundWide: r.IntN(2) == 0, ClientAuth: r.IntN(2) == 0, ProviderAuth: r.IntN(2) == 0,
			Paths: Paths{Provider: pick(r, "", "/provider"), Providers: pick(r, "", "/providers")},
		},
	}
	for range r.IntN(6) {
		s := Slot{Reserved: r.IntN(4) == 0, SlotInfo: msg.SlotInfo{
			Name: name(), Transport: pick(r, msg.Dedicated, msg.Multiplexed, msg.Loopback, msg.Upstream, msg.NoProvider, ""),
			Connected: r.IntN(3) > 0, Aggregate: r.IntN(2) == 0, ConnectedSince: moment(), Answered: r.IntN(2) == 0,
			ClientCount: number(), SessionCount: number(), OtherCount: number(), PendingCount: number(), MaxPending: number(),
			OldestPending: moment(), Restarts: number(),
		}}
		for i := range s.Attached {
			s.Attached[i] = moment()
		}
		f.Slots = append(f.Slots, s)
	}
	for range r.IntN(4) {
		f.Instances = append(f.Instances, msg.Instance{
			Slot: name(), Kind: pick(r, "stdio", "sse", ""), Target: name(), Check: pick(r, "", "tools/list", "ping", "a b"), Error: name(),
			Verdict: pick(r, msg.Starting, msg.Live, msg.Healthy, msg.Degraded, msg.Unhealthy, msg.Failed, msg.Halted, msg.Unknown, ""),
			Since:   moment(), LastAttempt: moment(), NextRetry: moment(), Restarts: number(), Attempt: number(),
			Isolated: r.IntN(4) == 0, Unresolved: r.IntN(2) == 0, Denied: r.IntN(2) == 0, GaveUp: r.IntN(2) == 0, CrashLoop: r.IntN(2) == 0,
			Cause: pick(r, "", msg.CauseStart, msg.CauseEnded, msg.CauseChecks, msg.CauseSlot), Unremedied: r.IntN(2) == 0, ToolMissing: r.IntN(4) == 0,
			Tail: pick(r, nil, []string{"", name()}),
		})
	}
	if r.IntN(3) > 0 {
		f.Aggregate = &Aggregate{Enabled: r.IntN(3) > 0}
		for range r.IntN(4) {
			f.Aggregate.Members = append(f.Aggregate.Members, Member{Slot: name(), Joined: r.IntN(2) == 0, Joining: r.IntN(2) == 0, Restarting: r.IntN(2) == 0, Loop: r.IntN(3) == 0, Reason: pick(r, "", "why"), Since: moment()})
		}
	}
	if r.IntN(2) == 0 {
		f.Bridge = &Bridge{Target: name()}
	}
	if r.IntN(2) == 0 {
		f.Pages = &Pages{Mounts: pick(r, nil, []string{"/"}), OriginsConfigured: r.IntN(2) == 0}
	}
	if r.IntN(2) == 0 {
		f.SlowReaders = map[string]SlowReaders{
			"ws":  {Closed: pick[uint64](r, 0, 1, math.MaxUint64), Dropped: pick[uint64](r, 0, 1, math.MaxUint64), Slot: name(), DroppedAt: moment()},
			"sse": {Closed: 3},
		}
	}
	return f
}
