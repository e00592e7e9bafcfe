package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/config"
)

// stuck is a standard error that takes nothing until it is let go.
type stuck struct {
	free chan struct{}

	mu  sync.Mutex
	buf bytes.Buffer
}

func newStuck() *stuck { return &stuck{free: make(chan struct{})} }

func (s *stuck) Write(p []byte) (int, error) {
	<-s.free
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *stuck) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// waiting returns once the goroutine of the queue is in its write.
func waiting(q *logQueue, log func(string)) {
	log("first")
	synctest.Wait()
}

func lines(format string, from, to int) string {
	var b strings.Builder
	for n := from; n < to; n++ {
		fmt.Fprintf(&b, format+"\n", n)
	}
	return b.String()
}

// A standard error that blocks holds up nobody; lines keep their order, and what is
// dropped are the oldest lines below WARN, counted.
func TestLogQueueDropsOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStuck()
		q := newLogQueue(w, config.LogText)
		log := newLogger(q)
		waiting(q, func(line string) { log.Info(line) })
		log.Warn("early warning")
		for n := range maxLogLines + 99 {
			log.Info(fmt.Sprintf("line %d", n))
		}
		log.Error("late error")
		begun := time.Now()
		q.flush(flushPatience) // in vain
		if took := time.Since(begun); took != flushPatience {
			t.Errorf("flush waited %s", took)
		}
		close(w.free)
		q.flush(flushPatience)
		want := "first\n[mcp-broker] 101 log lines were dropped: standard error did not take them in time\nearly warning\n" +
			lines("line %d", 101, maxLogLines+99) + "late error\n"
		if diff := cmp.Diff(want, w.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		log.Info("it flows again")
		q.flush(flushPatience)
		if !strings.HasSuffix(w.String(), "late error\nit flows again\n") {
			t.Errorf("ends in %q", w.String()[len(want)-20:])
		}
	})
}

// Where nothing below WARN is left to drop, the newest line is.
func TestLogQueueDropsNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStuck()
		q := newLogQueue(w, config.LogText)
		log := newLogger(q)
		waiting(q, func(line string) { log.Info(line) })
		for n := range maxLogLines - 1 {
			log.Warn(fmt.Sprintf("warning %d", n))
		}
		log.Info("gives way")
		log.Error("one more")
		log.Error("too much")
		log.Info("too much as well")
		close(w.free)
		q.flush(flushPatience)
		want := "first\n[mcp-broker] 3 log lines were dropped: standard error did not take them in time\n" +
			lines("warning %d", 0, maxLogLines-1) + "one more\n"
		if diff := cmp.Diff(want, w.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// Few lines that are long are bounded as well; one that is longer than all may be is
// taken where no other waits.
func TestLogQueueBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStuck()
		q := newLogQueue(w, config.LogText)
		log := newLogger(q)
		waiting(q, func(line string) { log.Info(line) })
		long := strings.Repeat("x", maxLogBytes/4-1) // with its line break a quarter
		for n := range 5 {
			log.Info(fmt.Sprint(n) + long[1:])
		}
		if q.bytes != maxLogBytes {
			t.Errorf("%d bytes wait", q.bytes)
		}
		close(w.free)
		q.flush(flushPatience)
		want := "first\n[mcp-broker] 1 log lines were dropped: standard error did not take them in time\n"
		for n := 1; n < 5; n++ {
			want += fmt.Sprint(n) + long[1:] + "\n"
		}
		if got := w.String(); got != want {
			t.Errorf("%d bytes written, want %d", len(got), len(want))
		}
		huge := strings.Repeat("y", 2*maxLogBytes)
		log.Info(huge)
		q.flush(flushPatience)
		if !strings.HasSuffix(w.String(), "x\n"+huge+"\n") || q.bytes != 0 {
			t.Error("a long line was not taken by an empty queue")
		}
	})
}

// In the format for machines the line about the dropped ones is a record, too.
func TestLogQueueJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStuck()
		q := newLogQueue(w, config.LogJSON)
		log := newLogger(q).With("a", 1)
		waiting(q, func(line string) { log.Info(line) })
		for n := range maxLogLines + 1 {
			log.WithGroup("g").Info("line", "n", n)
		}
		log.Warn("last")
		close(w.free)
		q.flush(flushPatience)
		want := `{"level":"INFO","msg":"first","a":1}` + "\n" +
			`{"level":"WARN","msg":"[mcp-broker] 2 log lines were dropped: standard error did not take them in time"}` + "\n" +
			lines(`{"level":"INFO","msg":"line","a":1,"g":{"n":%d}}`, 2, maxLogLines+1) + `{"level":"WARN","msg":"last","a":1}` + "\n"
		if diff := cmp.Diff(want, withoutTime(w.String())); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// Lines of many keep their own order and are whole.
func TestLogQueueConcurrent(t *testing.T) {
	var b bytes.Buffer
	q := newLogQueue(&b, config.LogText)
	log := newLogger(q)
	var group sync.WaitGroup
	const writers, each = 8, 100 // fewer together than may wait
	for who := range writers {
		group.Go(func() {
			for n := range each {
				log.Info("line", "who", who, "n", n)
			}
		})
	}
	group.Wait()
	q.flush(time.Minute)
	var next [writers]int
	for line := range strings.Lines(b.String()) {
		var who, n int
		if _, err := fmt.Sscanf(line, "line who=%d n=%d\n", &who, &n); err != nil || n != next[who] {
			t.Fatalf("line %q: %v", line, err)
		}
		next[who]++
	}
	for who, n := range next {
		if n != each {
			t.Errorf("%d lines of %d", n, who)
		}
	}
}

// The last words of a run reach a standard error that is slow before it ends, in their
// order, and one that takes nothing holds up the end for 2 s.
func TestRunFlushes(t *testing.T) {
	_, release := hangUps() // the goroutine behind all signals is none of the bubble's
	release()
	const last = "  Ctrl+C stops the broker\n[mcp-broker] Stop failed: half of it\n[mcp-broker] Stopped: accept: too many open files\n"
	for _, patient := range []bool{true, false} {
		b := newBench(t)
		synctest.Test(t, func(t *testing.T) {
			w := newStuck()
			b.stderr = w
			b.server.stop = func(context.Context) error { return errors.New("half of it") }
			b.server.done = make(chan error, 1)
			b.server.done <- errors.New("accept: too many open files")
			code := make(chan int, 1)
			begun := time.Now()
			go func() { code <- b.do("run") }()
			synctest.Wait()
			if len(code) != 0 {
				t.Error("ended before its last words were written")
			}
			if patient {
				close(w.free)
			}
			if got := <-code; got != 1 {
				t.Errorf("exit code %d", got)
			}
			took, want := time.Since(begun), time.Duration(0)
			if !patient {
				close(w.free)
				synctest.Wait()
				want = flushPatience
			}
			if took != want {
				t.Errorf("took %s, want %s", took, want)
			}
			if !strings.HasSuffix(w.String(), last) {
				t.Errorf("standard error ends in %q", w)
			}
		})
	}
}
