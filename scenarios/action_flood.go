package scenarios

import (
	"context"
	"fmt"
	"strings"
)

// Bounds of a flood.
const (
	maxFlood      = 100_000   // notifications
	minFloodBytes = 128       // of one
	maxFloodBytes = 1 << 20   // of one
	floodWindow   = 256 << 10 // bytes that may be under way to those who hear them
)

type floodAction struct {
	ID      string `step:"flood,required"`
	Count   int    `step:"count,required"`
	Size    int    `step:"size"`
	HeardBy words  `step:"heard_by"`
	Within  span   `step:"within"`
}

func (a *floodAction) check(c *checker) {
	c.use(namePeer, "flood", a.ID)
	if a.Count < 1 || a.Count > maxFlood {
		c.fail("count", `"count" must be from 1 to %d`, maxFlood)
	}
	if a.Size == 0 {
		a.Size = minFloodBytes
	}
	if a.Size < minFloodBytes || a.Size > maxFloodBytes {
		c.fail("size", `"size" must be from %d to %d`, minFloodBytes, maxFloodBytes)
	}
	for _, id := range a.HeardBy {
		c.use(nameClient, "heard_by", id)
	}
}

func (a *floodAction) run(r *runner) error {
	ctx, cancel := r.within(a.Within)
	defer cancel()
	window := max(floodWindow/a.Size, 1)
	for first := 0; first < a.Count; first += window {
		end := min(first+window, a.Count)
		for n := first; n < end; n++ {
			if err := r.peers[a.ID].link.send(ctx, a.note(n)); err != nil {
				return err
			}
		}
		if err := a.heard(ctx, r, first, end); err != nil {
			return err
		}
	}
	return nil
}

// heard waits until everybody who listens has a window, in order.
func (a *floodAction) heard(ctx context.Context, r *runner, first, end int) error {
	for _, id := range a.HeardBy {
		for n := first; n < end; n++ {
			f, err := r.hear(ctx, id)
			if err != nil {
				return fmt.Errorf("notification %d of the flood: %w", n, err)
			}
			if want := string(a.note(n)); f.text != want {
				return unmet(fmt.Sprintf("%s: notification %d of the flood", id, n), f.text)
			}
		}
	}
	return nil
}

func (a *floodAction) note(n int) []byte {
	text := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/flood","params":{"n":%d,"pad":""}}`, n)
	pad := strings.Repeat("x", a.Size-len(text))
	return []byte(text[:len(text)-3] + pad + text[len(text)-3:])
}
