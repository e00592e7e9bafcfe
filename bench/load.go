package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// callTimeout is how long the slowest call may take.
const callTimeout = 20 * time.Second

// loadSpec is one measurement, the argument of `bench load`. Each session makes
// one call at a time.
type loadSpec struct {
	URL      string        `json:"url"` // an MCP endpoint
	Sessions int           `json:"sessions"`
	Size     int           `json:"size"`   // bytes of payload in a call and in its answer, at least 32
	Warmup   time.Duration `json:"warmup"` // before the window
	Window   time.Duration `json:"window"` // what is measured
	PID      int           `json:"pid"`    // the process whose CPU time is taken
}

// loadResult is what was seen in the window. Wrong and Errors count the warm-up too.
type loadResult struct {
	Calls   int           `json:"calls"`
	Wrong   int           `json:"wrong"`  // answers that do not hold the payload of their call
	Errors  int           `json:"errors"` // calls without an answer; the session ended there
	Problem string        `json:"problem,omitempty"`
	Elapsed time.Duration `json:"elapsed"`
	CPU     time.Duration `json:"cpu"`
	P50     time.Duration `json:"p50"`
	P99     time.Duration `json:"p99"`
}

func (r *loadResult) rate() float64 { return float64(r.Calls) / r.Elapsed.Seconds() }

// cpuPerCall is in milliseconds.
func (r *loadResult) cpuPerCall() float64 {
	return float64(r.CPU) / float64(time.Millisecond) / float64(r.Calls)
}

var errNoCall = errors.New("no call was answered in the window")

// run opens the sessions, lets them call, and closes them.
func (s loadSpec) run(ctx context.Context) (*loadResult, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Warmup+s.Window+callTimeout)
	defer cancel()
	sessions, err := openSessions(ctx, newClient(s.Sessions), s.URL, s.Sessions)
	if err != nil {
		return nil, err
	}
	var measuring, done atomic.Bool
	workers := make([]worker, s.Sessions)
	var wg sync.WaitGroup
	for i := range workers {
		w := &workers[i]
		w.session, w.name, w.filler = sessions[i], i, strings.Repeat("x", s.Size)
		wg.Go(func() { w.run(ctx, &measuring, &done) })
	}
	r, err := s.watch(ctx, &measuring)
	done.Store(true)
	wg.Wait()
	if err != nil {
		return nil, err
	}
	r.collect(workers)
	if r.Errors == 0 {
		err = closeSessions(ctx, sessions)
	}
	if r.Calls == 0 && r.Problem == "" {
		return nil, fmt.Errorf("%w of %s: the machine is too busy, or -seconds is too short", errNoCall, s.Window)
	}
	return r, err
}

// watch takes time and CPU time over the window.
func (s loadSpec) watch(ctx context.Context, measuring *atomic.Bool) (*loadResult, error) {
	if err := pause(ctx, s.Warmup); err != nil {
		return nil, err
	}
	before, err := cpuTime(s.PID)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	measuring.Store(true)
	err = pause(ctx, s.Window)
	measuring.Store(false)
	elapsed := time.Since(began)
	if err != nil {
		return nil, err
	}
	after, err := cpuTime(s.PID)
	return &loadResult{Elapsed: elapsed, CPU: after - before}, err
}

func (r *loadResult) collect(workers []worker) {
	var latencies []time.Duration
	for i := range workers {
		w := &workers[i]
		latencies = append(latencies, w.latencies...)
		r.Wrong += w.wrong
		if w.err != nil {
			r.Errors++
		}
		if r.Problem == "" {
			r.Problem = w.problem()
		}
	}
	slices.Sort(latencies)
	r.Calls = len(latencies)
	r.P50, r.P99 = percentile(latencies, 0.50), percentile(latencies, 0.99)
}

// percentile is the smallest value that a share p of the sorted values does not
// exceed, zero without values.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(p * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

// worker makes the calls of one session.
type worker struct {
	session   *session
	name      int
	filler    string          // as long as the payload, which begins with what makes it unique
	latencies []time.Duration // of the calls answered in the window
	wrong     int
	example   []byte // the first wrong answer, cut
	err       error
}

func (w *worker) run(ctx context.Context, measuring, done *atomic.Bool) {
	for id := 2; !done.Load(); id++ {
		payload := fmt.Appendf(nil, "s%d-%d-%s", w.name, id, w.filler)[:len(w.filler)]
		began := time.Now()
		answer, err := w.session.post(ctx, echoCall(id, payload))
		latency := time.Since(began)
		if err != nil {
			w.err = err
			return
		}
		if !answers(answer, id, payload) {
			if w.wrong++; w.example == nil {
				w.example = answer[:min(len(answer), 200)]
			}
			continue
		}
		if measuring.Load() {
			w.latencies = append(w.latencies, latency)
		}
	}
}

func (w *worker) problem() string {
	switch {
	case w.err != nil:
		return w.err.Error()
	case w.wrong > 0:
		return fmt.Sprintf("wrong answer: %s", w.example)
	}
	return ""
}

func echoCall(id int, payload []byte) []byte {
	body := make([]byte, 0, len(payload)+128)
	body = fmt.Appendf(body, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"message":"`, id)
	body = append(body, payload...)
	return append(body, `"}}}`...)
}

// answers reports whether a body holds the answer to that very call.
func answers(body []byte, id int, payload []byte) bool {
	head, text, found := bytes.Cut(body, []byte(`"text":"`))
	return found && bytes.Contains(head, fmt.Appendf(nil, `"id":%d,`, id)) &&
		bytes.HasPrefix(text, payload) && bytes.HasPrefix(text[len(payload):], []byte(`"`))
}

func newClient(connections int) *http.Client {
	return &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections, DisableCompression: true,
		ReadBufferSize: 64 << 10, WriteBufferSize: 64 << 10,
	}}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// parallel calls f for 0 to n-1, a bounded number at a time.
func parallel(n int, f func(i int) error) error {
	const width = 16
	errs := make([]error, n)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, width) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				errs[i] = f(i)
			}
		})
	}
	wg.Wait()
	if failed := slices.DeleteFunc(errs, func(err error) bool { return err == nil }); len(failed) > 0 {
		return fmt.Errorf("%d of %d failed, the first: %w", len(failed), n, failed[0])
	}
	return nil
}
