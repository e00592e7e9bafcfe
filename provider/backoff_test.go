package provider

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// spec 01 section 6: min(1000 x 2^n, 30000) ms times a random factor 0.5 to 1.0.
func TestBackoff(t *testing.T) {
	series := func(random float64) (delays []time.Duration) {
		b := backoff{random: func() float64 { return random }}
		for range 8 {
			delays = append(delays, b.next())
		}
		b.reset()
		return append(delays, b.next())
	}
	seconds := func(s ...float64) (d []time.Duration) {
		for _, v := range s {
			d = append(d, time.Duration(v*float64(time.Second)))
		}
		return d
	}
	if diff := cmp.Diff(seconds(0.5, 1, 2, 4, 8, 15, 15, 15, 0.5), series(0)); diff != "" {
		t.Errorf("factor 0.5 (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(seconds(0.75, 1.5, 3, 6, 12, 22.5, 22.5, 22.5, 0.75), series(0.5)); diff != "" {
		t.Errorf("factor 0.75 (-want +got):\n%s", diff)
	}

	b := backoff{attempt: 1 << 20}
	for range 1000 {
		if d := b.next(); d < 15*time.Second || d > 30*time.Second {
			t.Fatalf("delay %v is out of bounds", d)
		}
	}
}
