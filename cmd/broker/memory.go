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
	quietBytes = 1 << 20 // allocated within trimEvery: the broker is idle
	burstBytes = 2 << 20 // allocated since the last trim: it is worth one
)

const allocatedMetric = "/gc/heap/allocs:bytes"

// trimmer decides when to trim; its only input is how much has been allocated.
type trimmer struct{ last, trimmed uint64 }

// due takes the total allocated so far and reports whether to trim now.
func (t *trimmer) due(allocated uint64) bool {
	quiet := allocated-t.last < quietBytes
	t.last = allocated
	if !quiet || allocated-t.trimmed < burstBytes {
		return false
	}
	t.trimmed = allocated
	return true
}

// trimMemory runs until ctx ends.
func trimMemory(ctx context.Context) {
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
			if t.due(sample[0].Value.Uint64()) {
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
