package rt

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// SlowReaders counts what it costs a transport that clients do not read what is sent
// to them: first they lose the messages a client can do without, then their
// connection. The zero value is ready for use.
type SlowReaders struct {
	closed, dropped atomic.Uint64
	last            atomic.Pointer[Drop]
}

// Drop is a moment when messages were dropped for a client.
type Drop struct {
	Slot string
	At   time.Time
}

// SlowReport is what SlowReaders has counted since the start.
type SlowReport struct {
	Closed  uint64 // connections or streams
	Dropped uint64 // messages
	Last    Drop   // zero if none was dropped
}

// Closed counts a client whose connection ended for it.
func (r *SlowReaders) Closed() { r.closed.Add(1) }

// Dropping returns what the outbox of one client calls when it drops messages. The
// first time it is logged, for this client: who is what it is, like "an SSE stream".
func (r *SlowReaders) Dropping(log *slog.Logger, who, slot string) func(n int) {
	var told atomic.Bool
	return func(n int) {
		r.dropped.Add(uint64(n))
		r.last.Store(&Drop{Slot: slot, At: time.Now()})
		if !told.Swap(true) {
			log.Warn(fmt.Sprintf(`[broker] %s of slot "%s" falls behind: progress and log messages that it does not read are dropped`, who, slot))
		}
	}
}

// Report tells the counts.
func (r *SlowReaders) Report() SlowReport {
	report := SlowReport{Closed: r.closed.Load(), Dropped: r.dropped.Load()}
	if last := r.last.Load(); last != nil {
		report.Last = *last
	}
	return report
}
