package mcpbroker_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/brokertest"
)

var flapping = flag.Duration("flapping", 3*time.Second, "how long TestFlapping lets upstreams come and go")

// Of 30 upstreams a third dies again and again, each in its own way. The others do
// not notice; neither a process nor a goroutine is left over.
func TestFlapping(t *testing.T) {
	const healthy, flaps = 20, 10
	l := newLifeline(t)
	var text strings.Builder
	for i := range healthy {
		text.WriteString(child(fmt.Sprint("healthy", i), "-lifeline", l.addr()) + "healthCheck.intervalSeconds = 1\n")
	}
	ways := [][]string{{"-die", "1", "nothing works"}, {"-exit-after", "2"}, {"-exit-in", "300ms"}, {"-exit-in", "1100ms"}, {"-exit-after", "1"}}
	for i := range flaps {
		args := append([]string{"-lifeline", l.addr()}, ways[i%len(ways)]...)
		text.WriteString(child(fmt.Sprint("flaps", i), args...) + "retry = { intervalSeconds = 1, attempts = 1000 }\n")
	}
	begun := time.Now()
	h := newHouse(t, text.String())
	clients := make([]*brokertest.Client, healthy)
	for i := range healthy {
		h.verdict(fmt.Sprint("healthy", i), msg.Live)
		clients[i] = h.client(fmt.Sprint("healthy", i))
	}
	goroutines := runtime.NumGoroutine()

	ctx, cancel := context.WithTimeout(t.Context(), *flapping)
	defer cancel()
	var callers sync.WaitGroup
	took := make([][]time.Duration, healthy)
	for i, c := range clients {
		callers.Go(func() { took[i] = callSteadily(ctx, t, c) })
	}
	callers.Wait()
	for i := range healthy {
		if u := h.instance(fmt.Sprint("healthy", i)); u.Restarts != 0 || u.Verdict != msg.Live {
			t.Errorf("healthy%d is %s after %d restarts", i, u.Verdict, u.Restarts)
		}
	}
	starts := 0
	for i := range flaps {
		u := h.instance(fmt.Sprint("flaps", i))
		starts += u.Restarts + 1
		age := time.Since(begun)
		if most := int(age/time.Second) + 4; u.Restarts+1 > most {
			t.Errorf("flaps%d was started %d times in %s", i, u.Restarts+1, age)
		}
	}
	all := slices.Concat(took...)
	slices.Sort(all)
	t.Logf("%d starts of flapping upstreams; %d calls to the others, p50 %s, p99 %s", starts, len(all), all[len(all)/2], all[len(all)*99/100])

	// A flapping upstream that is up has more goroutines than one that is down.
	const ofOneChild = 8
	if n := runtime.NumGoroutine(); n > goroutines+flaps*ofOneChild {
		t.Errorf("%d goroutines became %d", goroutines, n)
	}
	if n := l.living(); n < healthy || n > healthy+flaps {
		t.Errorf("%d processes live", n)
	}
	h.Stop(t)
	if !eventually(func() bool { return l.living() == 0 }) {
		t.Errorf("%d processes are left", l.living())
	}
	if !eventually(func() bool { return len(childrenOf(t, os.Getpid())) == 0 }) {
		t.Errorf("processes left: %q", childrenOf(t, os.Getpid()))
	}
}

// callSteadily calls one tool over and over, which must answer each time.
func callSteadily(ctx context.Context, t *testing.T, c *brokertest.Client) (took []time.Duration) {
	const pace = 20 * time.Millisecond
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for n := 1; ; n++ {
		begun := time.Now()
		a, err := c.Try(context.WithoutCancel(ctx), http.MethodPost, toolCall(fmt.Sprint(n), "bump", "{}"))
		if want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"%d"}]}}`, n, n); err != nil || a.Body != want {
			t.Errorf("%s: %d %s, %v; want %s", c.URL, a.Status, a.Body, err, want)
			return took
		}
		took = append(took, time.Since(begun))
		select {
		case <-tick.C:
		case <-ctx.Done():
			return took
		}
	}
}

// childrenOf lists the processes, ended ones that nobody waited for too, whose
// parent is pid.
func childrenOf(t testing.TB, pid int) []string {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var children []string
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has just ended
		}
		var state string
		var parent int
		_, rest, _ := strings.Cut(string(text), ") ")
		if _, err := fmt.Sscan(rest, &state, &parent); err == nil && parent == pid {
			children = append(children, string(text))
		}
	}
	return children
}
