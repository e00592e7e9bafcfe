package brokertest

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

// Log is the broker's log, line by line. It implements slog.Handler.
type Log struct {
	t  testing.TB
	mu sync.Mutex

	lines   []string
	changed chan struct{} // closed and replaced with every line
	done    bool          // the test has ended: t must not be used
}

// NewLog returns an empty log that also goes to the test's output.
func NewLog(t testing.TB) *Log {
	l := &Log{t: t, changed: make(chan struct{})}
	t.Cleanup(func() {
		l.mu.Lock()
		l.done = true
		l.mu.Unlock()
	})
	return l
}

// Enabled implements slog.Handler.
func (l *Log) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// Handle implements slog.Handler.
func (l *Log) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, r.Message)
	if !l.done {
		l.t.Logf("%-5s %s", r.Level, r.Message)
	}
	close(l.changed)
	l.changed = make(chan struct{})
	return nil
}

// WithAttrs implements slog.Handler.
func (l *Log) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup implements slog.Handler.
func (l *Log) WithGroup(string) slog.Handler { return l }

// Lines returns the lines that contain every one of parts.
func (l *Log) Lines(parts ...string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for _, line := range l.lines {
		if containsAll(line, parts) {
			found = append(found, line)
		}
	}
	return found
}

// Wait returns the first line that contains every one of parts, waiting for it up
// to 30 s.
func (l *Log) Wait(t testing.TB, parts ...string) string {
	t.Helper()
	return l.WaitN(t, 1, parts...)[0]
}

// WaitN waits for n lines that contain every one of parts, and returns them.
func (l *Log) WaitN(t testing.TB, n int, parts ...string) []string {
	t.Helper()
	deadline := time.After(patience)
	for {
		l.mu.Lock()
		changed := l.changed
		l.mu.Unlock()
		if found := l.Lines(parts...); len(found) >= n {
			return found
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("fewer than %d log lines with %q within %s", n, parts, patience)
		}
	}
}

func containsAll(line string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(line, part) {
			return false
		}
	}
	return true
}
