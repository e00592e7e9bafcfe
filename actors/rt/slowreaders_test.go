package rt

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Each client's first loss is logged, every one is counted, the last one is known.
func TestSlowReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		var r SlowReaders
		expect(t, "at the start", r.Report(), SlowReport{})
		log := slog.New(slog.NewTextHandler(&lines, nil))
		one, two := r.Dropping(log, "client one", "a"), r.Dropping(log, "client two", "b")
		one(2)
		two(1)
		time.Sleep(time.Second)
		one(1)
		r.Closed()
		expect(t, "report", r.Report(), SlowReport{Closed: 1, Dropped: 4, Last: Drop{Slot: "a", At: time.Now()}})
		expect(t, "lines", strings.Count(lines.String(), "\n"), 2)
		expect(t, "lines about client one", strings.Count(lines.String(), `[broker] client one of slot \"a\" falls behind`), 1)
	})
}
