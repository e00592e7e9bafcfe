package provider

import (
	"math/rand/v2"
	"time"
)

const (
	backoffBase = time.Second
	backoffCap  = 30 * time.Second
)

// backoff yields the delays between attempts to open a tunnel: 1 s doubling to
// 30 s, each times a random factor from 0.5 to 1.0 (spec 01 section 6). The
// zero value is ready.
type backoff struct {
	attempt int
	random  func() float64 // in [0, 1); nil means math/rand
}

func (b *backoff) next() time.Duration {
	delay := backoffCap
	// 1 s doubled five times already exceeds the cap; a larger shift could overflow.
	if b.attempt < 5 {
		delay = backoffBase << b.attempt
		b.attempt++
	}
	random := b.random
	if random == nil {
		random = rand.Float64
	}
	return time.Duration(float64(delay) * (0.5 + 0.5*random()))
}

func (b *backoff) reset() { b.attempt = 0 }
