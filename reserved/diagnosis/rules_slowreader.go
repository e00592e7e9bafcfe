package diagnosis

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Rules about clients that do not read what is sent to them.

// throttledFor is how long after the last message that was dropped for a client it
// counts as one that is being throttled.
const throttledFor = time.Minute

// throttledReaders: clients that lose messages at present.
func throttledReaders(d *diagnosis) (found []Problem) {
	for _, transport := range slices.Sorted(maps.Keys(d.SlowReaders)) {
		r := d.SlowReaders[transport]
		if r.Dropped == 0 || d.ageMs(r.DroppedAt) > throttledFor.Milliseconds() || !d.about(r.Slot) {
			continue
		}
		found = append(found, Problem{
			ID: "slow-reader-throttled", Severity: Warning, Slot: r.Slot,
			Symptom: fmt.Sprintf("A %s client of slot %s reads more slowly than it is sent to: %s ago progress or log messages were dropped for it.",
				transport, quote(r.Slot), d.age(r.DroppedAt)),
			Evidence: Evidence{{"transport", transport}, {"lastDroppedMsAgo", d.ageMs(r.DroppedAt)}, {"droppedSinceStart", r.Dropped}, {"closedSinceStart", r.Closed}},
			Fix: "Answers are not lost, and of updates of one resource it gets the last one; but once those alone exceed its queue, the client is closed. Look for \"falls behind\" in the broker's log. " +
				"Let that client read its stream or socket without pause and do its work elsewhere. This entry is gone a minute after the last message was dropped.",
		})
	}
	return found
}

// slowReaders: clients that were closed because they did not read.
func slowReaders(d *diagnosis) []Problem {
	if !d.whole() {
		return nil
	}
	var closed Evidence
	var total uint64
	for _, transport := range slices.Sorted(maps.Keys(d.SlowReaders)) {
		if n := d.SlowReaders[transport].Closed; n > 0 {
			closed, total = append(closed, Field{transport, n}), total+n
		}
	}
	if total == 0 {
		return nil
	}
	return []Problem{{
		ID: "slow-readers-closed", Severity: Info,
		Symptom:  fmt.Sprintf("%d client connections were closed in the %s since the start because their clients read too slowly.", total, d.age(d.Broker.StartedAt)),
		Evidence: Evidence{{"closed", closed}, {"total", total}, {"uptimeSeconds", d.ageMs(d.Broker.StartedAt) / 1000}},
		Fix: "Look for \"reads too slowly\" in the broker's log: each line names the slot. Let that client read its stream or socket without pause and do its work elsewhere. " +
			"A Streamable HTTP stream can be resumed with Last-Event-ID; a raw WebSocket was closed with 1013 and may connect again. If the number stands still, the matter is past.",
	}}
}
