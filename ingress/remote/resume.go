package remote

import (
	"strings"
	"time"

	"mcpbroker/actors/wire"
)

// Bounds of the wait a server asks for with the retry field (spec 05 section 6).
const (
	minRetry = 50 * time.Millisecond // between two requests that bring nothing
	maxRetry = 5 * time.Minute
)

// position is how far the event streams of one answer have been read. The zero value is the
// beginning.
type position struct {
	last  string        // event id; empty cannot be resumed
	retry time.Duration // the wait the server asked for last, if it asked
	asked bool
}

// retryOf is the wait a stream has asked for, if it has.
func retryOf(r *wire.EventReader) (time.Duration, bool) {
	d, ok := r.Retry()
	return min(d, maxRetry), ok
}

// maxEventID keeps an event id inside what servers take as a header.
const maxEventID = 4 << 10

// resumable returns an event id if it can stand in a header as it is, else nothing: a
// request that cannot be made is worse than a stream without its past.
func resumable(id string) string {
	if len(id) > maxEventID || strings.TrimSpace(id) != id || strings.ContainsFunc(id, control) {
		return ""
	}
	return id
}

func control(r rune) bool { return r < ' ' || r == 0x7f }
