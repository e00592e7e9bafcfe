package diagnosis

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/actors/msg"
)

// A watched provider is spoken of when its check fails, and only then.
func TestWatchedRules(t *testing.T) {
	for _, test := range []struct {
		verdict msg.Verdict
		slot    string
		want    []string
	}{
		{msg.Healthy, "", nil},
		{msg.Away, "", nil},
		{msg.Starting, "", nil},
		{msg.Degraded, "", []string{"warning provider-unhealthy pump-1"}},
		{msg.Unhealthy, "", []string{"error provider-unhealthy pump-1"}},
		{msg.Unhealthy, "pump-1", []string{"error provider-unhealthy pump-1"}},
		{msg.Unhealthy, "other", nil},
	} {
		f := healthy()
		f.Watched = []msg.Instance{{
			Slot: "pump-1", Kind: msg.KindProvider, Verdict: test.verdict, Check: "read", Since: ago(time.Minute),
			Error: "Readiness check (read) failed: no answer within 10s",
		}}
		r := Diagnose(*f, test.slot)
		var got []string
		for _, p := range r.Problems {
			got = append(got, strings.TrimSpace(string(p.Severity)+" "+p.ID+" "+p.Slot))
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s, asked about %q (-want +got):\n%s", test.verdict, test.slot, diff)
		}
	}
}
