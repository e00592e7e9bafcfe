package diagnosis

import (
	"strings"
	"testing"
	"time"

	"mcpbroker/actors/msg"
)

func TestSpan(t *testing.T) {
	for ms, want := range map[int64]string{
		0: "0ms", 999: "999ms", 1000: "1s", 18017: "18s", 60000: "60s", 119999: "119s", 120000: "2m00s", 3599999: "59m59s",
		3600000: "1h00m", 86399999: "23h59m", 90000000: "1d01h",
	} {
		if got := span(ms); got != want {
			t.Errorf("%d ms are %q, want %q", ms, got, want)
		}
	}
}

// The summary tells names that clients made up from slots that have, had or are
// to get a provider, and leaves out the calls of _broker, which are about itself.
func TestSummaryCounts(t *testing.T) {
	f := healthy()
	f.pump().PendingCount = 2
	for _, name := range []string{"typo", "typpo"} {
		s := f.add(name, msg.Dedicated)
		s.Attached = [msg.FlapCount]time.Time{}
		s.leaves()
	}
	f.add("left", msg.Dedicated).leaves()
	f.Slots[1].PendingCount = 7
	f.Slots[0].PendingCount = 0
	got := Diagnose(*f, "").Summary
	want := Summary{
		Slots: 6, Connected: 3, ProviderSlots: 2, ConnectedProviderSlots: 1, NeverServed: 2,
		PendingRequests: 2, Sessions: 1, Problems: Tally{Info: 3},
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Problems that are left out are counted.
func TestSummaryCountsAllProblems(t *testing.T) {
	f := healthy()
	for n := range maxPerRule + 5 {
		s := f.add(string(rune('a'+n/26))+string(rune('a'+n%26)), msg.Dedicated)
		s.leaves()
		s.ClientCount = 1
	}
	r := Diagnose(*f, "")
	if r.Summary.Problems.Error != maxPerRule+5 || len(r.Problems) != maxPerRule {
		t.Errorf("%d problems, counted as %+v", len(r.Problems), r.Summary.Problems)
	}
}

// The words of a slot without a provider are those of how it came to that.
func TestEmptySlotWords(t *testing.T) {
	for _, tt := range []struct {
		edit         func(*Slot)
		symptom, fix string
	}{
		{func(s *Slot) { s.Attached = [msg.FlapCount]time.Time{}; s.leaves() },
			`Slot "pump-1" exists because somebody named it; no provider has ever served it. Nobody is waiting for it.`, "If the name is misspelt"},
		{func(s *Slot) { s.leaves() },
			`Slot "pump-1" has no provider at present; the last one attached 30m00s ago. Nobody is waiting for it.`, "Start its provider again."},
		{func(s *Slot) { s.leaves(); s.LeftSilent, s.SessionCount = true, 1 },
			`Slot "pump-1" has no provider at present; the last one attached 30m00s ago and was cut by the broker, since it did not answer a ping of the heartbeat (providerHeartbeatIntervalMs). 1 client has connected and cannot be served.`,
			"set providerHeartbeatIntervalMs = 60000 in broker.toml"},
	} {
		f := healthy()
		tt.edit(f.pump())
		p := Diagnose(*f, "pump-1").Problems[0]
		if p.ID != "slot-never-connected" || p.Symptom != tt.symptom || !strings.Contains(p.Fix, tt.fix) {
			t.Errorf("%s: %s\nfix: %s", p.ID, p.Symptom, p.Fix)
		}
	}
}
