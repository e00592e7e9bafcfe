package egress_test

import (
	"os"
	"runtime"
	"testing"
	"time"

	"mcpbroker"
	"mcpbroker/brokertest"
	"mcpbroker/config"
)

// loadPatience is how long a test waits for what it expects, on a machine that is
// busy with the test.
const loadPatience = 30 * time.Second

// quietBroker pings nobody and sends no comments.
func quietBroker(t testing.TB, options ...mcpbroker.Option) *brokertest.Broker {
	t.Helper()
	c := config.Default()
	c.Host, c.Port, c.KeepAliveIntervalMs = "127.0.0.1", 0, 0
	return brokertest.Start(t, brokertest.Options{Configure: append([]mcpbroker.Option{mcpbroker.WithConfig(c)}, options...)})
}

// heapInUse is the memory that is reachable.
func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// usage is what sessions might leave behind.
type usage struct{ goroutines, files int }

// settle waits until no more is in use than before.
func settle(t *testing.T, what string, before usage) usage {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(loadPatience)
	// What has just been closed takes a moment: the figure counts once it rests.
	for last := (usage{}); ; {
		now := usage{runtime.NumGoroutine(), openFiles()}
		if now == last && now.goroutines <= before.goroutines && now.files <= before.files {
			return now
		}
		last = now
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s: %+v in use, want %+v at most", what, now, before)
		}
	}
}

// openFiles counts the file handles of this process, 0 where the system does not
// tell.
func openFiles() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	return len(entries)
}
