package main

import "testing"

func TestTrimmerWaitsForQuietAfterABurst(t *testing.T) {
	const mib = 1 << 20
	var trim trimmer
	for i, step := range []struct {
		allocated uint64
		want      bool
	}{
		{10 * mib, false},         // the burst itself
		{20 * mib, false},         // still going on
		{20*mib + 512<<10, true},  // quiet
		{20*mib + 600<<10, false}, // nothing new since
		{21*mib + 500<<10, false}, // quiet, but a small sum
		{22*mib + 490<<10, false}, // just below a burst in total
		{23*mib + 480<<10, true},  // small sums add up
		{40 * mib, false},         // the next burst
		{40*mib + 100<<10, true},
	} {
		if got, _ := trim.look(step.allocated); got != step.want {
			t.Errorf("step %d: look(%d) = %v, want %v", i, step.allocated, got, step.want)
		}
	}
}

func TestTrimmerKnowsSteadyLoad(t *testing.T) {
	const mib = 1 << 20
	var trim trimmer
	for i, step := range []struct {
		allocated    uint64
		turned, busy bool
	}{
		{10 * mib, false, false},
		{42 * mib, true, true},
		{90 * mib, false, true},
		{121 * mib, true, false},
		{121 * mib, false, false},
	} {
		if _, turned := trim.look(step.allocated); turned != step.turned || trim.busy != step.busy {
			t.Errorf("step %d: turned %v busy %v, want %v %v", i, turned, trim.busy, step.turned, step.busy)
		}
	}
}
