package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"
)

// Bounds of the lines that wait for standard error.
const (
	maxLogLines = 1024
	maxLogBytes = 1 << 20  // one longer line is taken while no other waits
	maxLogWrite = 64 << 10 // of waiting lines that are written at once; the last one may go beyond
)

// flushPatience is how long the end of the process waits for standard error.
const flushPatience = 2 * time.Second

// logQueue stands before standard error, which may be a terminal that is paused or a
// pipe nobody reads: whoever logs never waits for it. Lines are written in the order
// they came by one goroutine, which lives as long as there are any. At its bound the
// oldest line below WARN is dropped, and where there is none the newest line; a line of
// its own says how many were, as soon as something can be written again.
type logQueue struct {
	w      io.Writer
	format string // of config

	mu      sync.Mutex
	plain   []queuedLine  // below WARN, oldest first
	grave   []queuedLine  // the others, likewise
	bytes   int           // of both
	came    uint64        // lines so far
	dropped int           // and not reported yet
	writing chan struct{} // closed once the goroutine has nothing left to write; nil without one
}

// queuedLine is numbered in the order of all lines.
type queuedLine struct {
	number uint64
	text   []byte
}

func newLogQueue(w io.Writer, format string) *logQueue { return &logQueue{w: w, format: format} }

// logSink is the way into a queue for lines of one gravity; each Write is one line, or
// several that belong together.
type logSink struct {
	q     *logQueue
	grave bool
}

// Write implements io.Writer. It never blocks or fails.
func (s logSink) Write(p []byte) (int, error) {
	s.q.add(bytes.Clone(p), s.grave)
	return len(p), nil
}

// below takes lines below WARN.
func (q *logQueue) below() io.Writer { return logSink{q, false} }

// above takes the others.
func (q *logQueue) above() io.Writer { return logSink{q, true} }

func (q *logQueue) add(text []byte, grave bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.makeRoom(len(text)) {
		q.dropped++
		return
	}
	q.came++
	q.bytes += len(text)
	to := &q.plain
	if grave {
		to = &q.grave
	}
	*to = append(*to, queuedLine{q.came, text})
	if q.writing == nil {
		q.writing = make(chan struct{})
		go q.write()
	}
}

// makeRoom drops lines below WARN until another one of size bytes fits; false when it
// does not.
func (q *logQueue) makeRoom(size int) bool {
	for {
		waiting := len(q.plain) + len(q.grave)
		if waiting == 0 || waiting < maxLogLines && q.bytes+size <= maxLogBytes {
			return true
		}
		if len(q.plain) == 0 {
			return false
		}
		q.pop(&q.plain)
		q.dropped++
	}
}

// pop takes out the oldest line of a list.
func (q *logQueue) pop(from *[]queuedLine) []byte {
	text := (*from)[0].text
	(*from)[0].text = nil
	*from = (*from)[1:]
	q.bytes -= len(text)
	return text
}

// write is the goroutine.
func (q *logQueue) write() {
	for {
		text := q.take()
		if text == nil {
			return
		}
		_, _ = q.w.Write(text) // there is nowhere to say that it failed
	}
}

// take returns what is to be written next; nil ends the goroutine.
func (q *logQueue) take() []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	var text []byte
	if q.dropped > 0 {
		text = q.notice()
		q.dropped = 0
	}
	for len(text) < maxLogWrite && len(q.plain)+len(q.grave) > 0 {
		oldest := &q.plain
		if len(q.plain) == 0 || len(q.grave) > 0 && q.grave[0].number < q.plain[0].number {
			oldest = &q.grave
		}
		text = append(text, q.pop(oldest)...)
	}
	if text == nil {
		close(q.writing)
		q.writing = nil
	}
	return text
}

// notice is the line about dropped ones.
func (q *logQueue) notice() []byte {
	var b bytes.Buffer
	slog.New(newLogHandler(&b, q.format)).Warn(
		fmt.Sprintf("[mcp-broker] %d log lines were dropped: standard error did not take them in time", q.dropped))
	return b.Bytes()
}

// flush waits until all lines are written, and no longer than within.
func (q *logQueue) flush(within time.Duration) {
	late := time.NewTimer(within)
	defer late.Stop()
	for {
		q.mu.Lock()
		writing := q.writing
		q.mu.Unlock()
		if writing == nil {
			return
		}
		select {
		case <-writing:
		case <-late.C:
			return
		}
	}
}
