package rt

import "time"

// Backoff is an exponential schedule. The zero value never waits.
type Backoff struct {
	Base, Cap time.Duration
}

// Wait is the delay before attempt n, n from 0, scaled by jitter in [0, 1] down
// to half of it.
func (b Backoff) Wait(n int, jitter float64) time.Duration {
	full := b.Cap
	if b.Base <= b.Cap>>n { // else the shift below would pass Cap, or overflow
		full = b.Base << n
	}
	return time.Duration(float64(full) * (0.5 + 0.5*jitter))
}
