package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// A burst, such as a thousand peers that connect at once, leaves a heap of twice
// its live size behind, which the runtime keeps while the process is idle. The
// trimmer gives it back once the burst is over.
const (
	trimEvery  = time.Second
	quietBytes = 1 << 20  // allocated within trimEvery: the broker is idle
	burstBytes = 2 << 20  // allocated since the last trim: it is worth one
	busyBytes  = 32 << 20 // allocated within trimEvery: calls keep coming
)

// Under steady load the collector runs less often, for speed: what is live is a
// few megabytes. Otherwise it runs at its usual pace, so that peers who come in a
// burst do not end up spread over a large heap.
const (
	usualPercent = 100
	busyPercent  = 400
)

const allocatedMetric = "/gc/heap/allocs:bytes"

// trimmer decides; its only input is how much has been allocated.
type trimmer struct {
	last, trimmed uint64
	busy          bool
}

// look takes the total allocated so far. It reports whether to trim now, and
// whether the broker has become, or ceased to be, busy.
func (t *trimmer) look(allocated uint64) (trim, turned bool) {
	recent := allocated - t.last
	t.last = allocated
	if busy := recent >= busyBytes; busy != t.busy {
		t.busy, turned = busy, true
	}
	if recent >= quietBytes || allocated-t.trimmed < burstBytes {
		return false, turned
	}
	t.trimmed = allocated
	return true, turned
}

func setPace(busy bool) {
	if busy {
		debug.SetGCPercent(busyPercent)
		return
	}
	debug.SetGCPercent(usualPercent)
}

// trimMemory runs until ctx ends. pace lets it set the collector's, which an
// operator may have done with GOGC.
func trimMemory(ctx context.Context, pace bool) {
	ticker := time.NewTicker(trimEvery)
	defer ticker.Stop()
	sample := []metrics.Sample{{Name: allocatedMetric}}
	var t trimmer
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			metrics.Read(sample)
			trim, turned := t.look(sample[0].Value.Uint64())
			if turned && pace {
				setPace(t.busy)
			}
			if trim {
				giveBack()
			}
		}
	}
}

// giveBack collects and returns memory. Each collection halves the stacks that a
// burst has grown, so there is more than one.
func giveBack() {
	for range 3 {
		runtime.GC()
	}
	debug.FreeOSMemory()
}
