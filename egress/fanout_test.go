//go:build unix

package egress_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbroker/brokertest"
	"mcpbroker/egress/eventstream"
	"mcpbroker/egress/session"
)

// The flood: numbered notifications of 200 B, the first ones much larger, so that
// who does not read is over the bound before its write times out, also on a busy
// machine. The very first keeps the writer of such a client busy, so that all
// others wait. The flood goes in windows that everybody else has to have received:
// what a fast client has unread stays below the bound.
const (
	floodNotes  = 1000
	floodWindow = 10
	floodLarge  = 64 << 10
)

func floodNote(i int) string {
	pad := 140
	switch {
	case i == 0:
		pad = 4 * floodLarge
	case i < 2*floodWindow:
		pad = floodLarge
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/flood","params":{"n":%d,"pad":"%s"}}`, i, strings.Repeat("x", pad))
}

// crowd is how many raw WebSocket clients listen to the flood: 1,000 in a plain
// run, 60 under the race detector and with -short, unless EGRESS_CROWD=1000.
func crowd() int {
	if os.Getenv("EGRESS_CROWD") == "1000" || !raceDetector && !testing.Short() {
		return 1000
	}
	return 60
}

// flood is one run of the notifications, and what its listeners have to say.
type flood struct {
	notes   []string
	windows chan struct{} // one for each window of each listener
	faults  chan string
	readers sync.WaitGroup
}

func newFlood() *flood {
	f := &flood{windows: make(chan struct{}, 1024), faults: make(chan string, 2048)}
	for i := range floodNotes {
		f.notes = append(f.notes, floodNote(i))
	}
	return f
}

// listen takes every notification from next, in order and unchanged.
func (f *flood) listen(name string, next func() string) {
	f.readers.Go(func() {
		for i, want := range f.notes {
			if got := next(); got != want {
				f.faults <- fmt.Sprintf("%s received %.80q in place of notification %d", name, got, i)
				return
			}
			if (i+1)%floodWindow == 0 {
				f.windows <- struct{}{}
			}
		}
	})
}

// window sends the rest of a window and waits until n listeners have it.
func (f *flood) window(t *testing.T, p brokertest.Provider, rest []string, n int) {
	t.Helper()
	for _, note := range rest {
		p.Send(note)
	}
	late := time.NewTimer(loadPatience)
	defer late.Stop()
	for i := range n {
		select {
		case <-f.windows:
		case fault := <-f.faults:
			t.Fatal(fault)
		case <-late.C:
			t.Fatalf("%d of %d clients have the notifications up to %.80q after %s", i, n, rest[len(rest)-1], loadPatience)
		}
	}
}

// listeners connects the clients that read.
func (f *flood) listeners(t *testing.T, b *brokertest.Broker) int {
	t.Helper()
	sockets, streams := crowd(), 5
	for i := range sockets {
		c := brokertest.DialRaw(t, b.ClientURL("s"))
		t.Cleanup(c.Drop)
		f.listen(fmt.Sprint("WebSocket ", i), func() string { _, text, _ := c.Read(); return string(text) })
	}
	for i := range streams {
		c := b.DialSSE(t, "s")
		f.listen(fmt.Sprint("SSE ", i), func() string { return eventData(c.Next()) })
		h := brokertest.NewClient(t, b.MCPURL("s"))
		h.Initialize()
		g := h.Listen()
		equal(t, "lead", g.Next(), ": open")
		f.listen(fmt.Sprint("GET stream ", i), func() string { return eventData(g.Next()) })
	}
	return sockets + 2*streams
}

func eventData(block string) string { _, data, _ := strings.Cut(block, "data: "); return data }

// Spec 07, bars 2 and 3: of 1,000 clients three never read, one on each kind of
// stream. The others miss nothing; the three are closed, each in the words of its
// transport; the stream that can be resumed has the tail of its history.
func TestFloodWithStalledClients(t *testing.T) {
	b := quietBroker(t)
	p := prepared(t, b)
	f := newFlood()
	socket := openStalledSocket(t, b, "s")
	sse := openStalledStream(t, b, "/s/sse", "")
	h := brokertest.NewClient(t, b.MCPURL("s"))
	h.Initialize()
	get := openStalledStream(t, b, "/s/mcp", h.Session)
	listeners := f.listeners(t, b)
	b.Sessions(t, "s", listeners+3)

	p.Send(f.notes[0])
	for _, c := range []stalled{socket, sse, get} {
		c.arrived()
	}
	stuck := time.Now()
	judged := false
	for rest := f.notes[1:]; len(rest) > 0; {
		window := (len(rest)-1)%floodWindow + 1
		f.window(t, p, rest[:window], listeners)
		rest = rest[window:]
		if !judged && len(b.Log.Lines(tooSlowly)) == 3 && !timedOut(stuck) {
			judged = true
			var reading sync.WaitGroup
			reading.Go(func() {
				f.expectEnd(t, "the WebSocket client", socket, ending{1013, "The client reads too slowly"})
			})
			reading.Go(func() { f.expectEnd(t, "the SSE client", sse, ending{}) })
			reading.Go(func() { f.expectEnd(t, "the GET stream", get, ending{}) })
			reading.Wait()
		}
	}
	f.readers.Wait()
	switch {
	case !judged && timedOut(stuck):
		t.Skipf("a machine so busy that a write to the stalled clients timed out (%s) before they were over the bound", eventstream.WriteTimeout)
	case !judged:
		t.Fatalf("not every stalled client was closed: %q", b.Log.Lines(tooSlowly))
	}
	for _, line := range []string{
		`[broker] a WebSocket client of slot "s" was closed: it reads too slowly`,
		`[broker] an SSE stream of slot "s" was closed: its client reads too slowly`,
		`[broker] a Streamable HTTP stream of slot "s" was closed: its client reads too slowly; it may resume with Last-Event-ID`,
	} {
		if lines := b.Log.Lines(line); len(lines) != 1 || lines[0] != line {
			t.Errorf("logged %q, want %q", lines, line)
		}
	}
	b.Sessions(t, "s", listeners+1) // the session of the GET stream lives on
	f.expectTail(t, h, get.lastID)
}

const tooSlowly = "reads too slowly"

// timedOut tells that a write that has been stuck since then may be given up before
// the test has read it: its connection is cut, which says nothing about how slow
// readers are treated.
func timedOut(stuck time.Time) bool {
	return time.Since(stuck) > eventstream.WriteTimeout-4*time.Second
}

// expectEnd reads what a stalled client has been sent: the first notifications,
// unchanged, and then the end.
func (f *flood) expectEnd(t *testing.T, who string, c stalled, want ending) {
	t.Helper()
	for i := 0; ; i++ {
		message, end := c.next()
		switch {
		case end != nil && *end != want:
			t.Errorf("%s: ended with %+v, want %+v", who, *end, want)
			return
		case end != nil:
			if i == 0 {
				t.Errorf("%s was sent nothing", who)
			}
			return
		case message != f.notes[i]:
			t.Errorf("%s received %.80q in place of notification %d", who, message, i)
			return
		}
	}
}

// expectTail resumes a stream: it goes on with the oldest event of the history,
// up to the last.
func (f *flood) expectTail(t *testing.T, h *brokertest.Client, last string) {
	t.Helper()
	first, size := len(f.notes), 0
	for first > 0 && len(f.notes)-first < session.HistoryEvents && size+len(f.notes[first-1]) <= session.HistoryBytes {
		first--
		size += len(f.notes[first])
	}
	h.Header.Set("Last-Event-ID", last)
	stream := h.Listen()
	equal(t, "lead", stream.Next(), ": open")
	for i := first; i < len(f.notes); i++ {
		want := fmt.Sprintf("event: message\nid: %d\ndata: %s", i+1, f.notes[i])
		if got := stream.Next(); got != want {
			t.Fatalf("resumed behind event %q: got %.120q, want %.120q", last, got, want)
		}
	}
}
