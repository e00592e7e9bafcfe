//go:build unix

package egress_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mcpbroker/brokertest"
)

const (
	listChanged = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"n":%d}}`
	changed     = `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"u://x","n":%d}}`
	logged      = `{"jsonrpc":"2.0","method":"notifications/message","params":{"n":%d,"data":"%s"}}`
)

// Spec 07, bar 2: while a client does not read, list_changed and updates of one
// resource are one message each, the newest; of the log messages the newest are
// kept, as many as there is room for; answers all arrive. The client stays, and the
// log and the diagnosis tell of it.
func TestSlowReaderKeepsAnswers(t *testing.T) {
	for name, open := range map[string]func(*testing.T, *brokertest.Broker) (stalled, client){
		"websocket": func(t *testing.T, b *brokertest.Broker) (stalled, client) {
			s := openStalledSocket(t, b, "s")
			return s, onSocket{s}
		},
		"sse": func(t *testing.T, b *brokertest.Broker) (stalled, client) {
			s := openStalledStream(t, b, "/s/sse", "")
			endpoint := eventData(s.lead)
			return s, &onStream{t, s, brokertest.NewClient(t, b.URL()+endpoint), 202}
		},
		"streamable": func(t *testing.T, b *brokertest.Broker) (stalled, client) {
			h := &httpClient{Client: brokertest.NewClient(t, b.MCPURL("s")), t: t}
			h.Initialize()
			return openStalledStream(t, b, "/s/mcp", h.Session), h
		},
	} {
		t.Run(name, func(t *testing.T) { keepsAnswers(t, open) })
	}
}

func keepsAnswers(t *testing.T, open func(*testing.T, *brokertest.Broker) (stalled, client)) {
	b := quietBroker(t)
	p := prepared(t, b)
	slow, c := open(t, b)
	other := brokertest.Dial(t, b.ClientURL("s"), nil)
	b.Sessions(t, "s", 2)
	watch(t, p, c, 1, "u://x")

	stuck := `{"jsonrpc":"2.0","method":"notifications/x","params":"` + strings.Repeat("x", 512<<10) + `"}`
	p.Send(stuck)
	equal(t, "another client", other.Receive(), stuck)
	slow.arrived() // and fills the buffers between
	since := time.Now()
	inTime := func() {
		t.Helper()
		if timedOut(since) {
			t.Skip("a machine so busy that a write to the slow client timed out")
		}
	}

	const rounds, answers = 30, 10 // few, for a busy machine
	data := strings.Repeat("y", 80_000)
	for i := range rounds {
		p.Send(fmt.Sprintf(listChanged, i))
		p.Send(fmt.Sprintf(changed, i))
		p.Send(fmt.Sprintf(logged, i, data))
		other.Receive() // keeps the queues between provider and sessions short
		other.Receive()
	}
	result := `"` + strings.Repeat("z", 8<<10) + `"`
	for i := range answers {
		inTime()
		c.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"m"}`, i+2))
		brokertest.Respond(p, p.Receive(), result)
	}
	p.Send(marker)

	inTime()
	next := func() string {
		message, end := slow.next()
		if end != nil {
			t.Fatalf("the slow client was closed: %+v", *end)
		}
		return message
	}
	equal(t, "what was being written", next(), stuck)
	equal(t, "list_changed", next(), fmt.Sprintf(listChanged, rounds-1))
	equal(t, "updated", next(), fmt.Sprintf(changed, rounds-1))
	message, kept := next(), 0
	for i := oldestKept(t, message); i < rounds; i++ {
		equal(t, "log message", message, fmt.Sprintf(logged, i, data))
		message = next()
		kept++
	}
	if kept < 10 || kept > 13 { // 1 MiB of them is 13
		t.Errorf("%d log messages were kept", kept)
	}
	_, posts := c.(*httpClient) // has its answers elsewhere
	for i := range answers {
		want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, i+2, result)
		if posts {
			equal(t, "answer", c.Answer(), want)
			continue
		}
		equal(t, "answer", message, want)
		message = next()
	}
	equal(t, "the last", message, marker)
	if lines := b.Log.Lines("too slowly"); lines != nil {
		t.Errorf("logged %q", lines)
	}
	if lines := b.Log.Lines(`of slot "s" falls behind: progress and log messages`); len(lines) != 1 {
		t.Errorf("logged %q about what was dropped", lines)
	}
	report := brokertest.NewClient(t, b.MCPURL("_broker"))
	report.Initialize()
	a := report.Post(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"broker_diagnose","arguments":{"slot":"s"}}}`)
	if !strings.Contains(a.Body, `"id":"slow-reader-throttled","severity":"warning","slot":"s"`) {
		t.Errorf("the diagnosis says %s", a.Body)
	}
}

// Spec 07, bar 1: clients that do not read cost memory up to the bound of their
// queue, whatever is sent: here 32 MiB.
func TestStalledClientsMemory(t *testing.T) {
	b := quietBroker(t)
	p := prepared(t, b)
	openStalledSocket(t, b, "s")
	openStalledStream(t, b, "/s/sse", "")
	h := brokertest.NewClient(t, b.MCPURL("s"))
	h.Initialize()
	openStalledStream(t, b, "/s/mcp", h.Session)
	other := brokertest.Dial(t, b.ClientURL("s"), nil)
	b.Sessions(t, "s", 4)

	const notes, size, each = 512, 64 << 10, 8
	pad := strings.Repeat("x", size)
	before, peak := heapInUse(), uint64(0)
	for i := range notes {
		note := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/x","params":{"n":%d,"pad":"%s"}}`, i, pad)
		p.Send(note)
		equal(t, "another client", other.Receive(), note)
		if i < 64 && i%each == 0 || i%128 == 127 { // the bound is met early
			peak = max(peak, heapInUse())
		}
	}
	const bound = 8 << 20 // 1 MiB and a write under way for each, a history, buffers
	if peak > before+bound {
		t.Errorf("the heap grew by %d KiB, want %d at most", (peak-before)>>10, bound>>10)
	}
	t.Logf("the heap grew by %d KiB", (int64(peak)-int64(before))>>10)
	b.Log.WaitN(t, 3, tooSlowly)
}

func oldestKept(t *testing.T, message string) (n int) {
	t.Helper()
	const format = `{"jsonrpc":"2.0","method":"notifications/message","params":{"n":%d,`
	if _, err := fmt.Sscanf(message, format, &n); err != nil {
		t.Fatalf("got %.120q, want a log message", message)
	}
	return n
}

// onSocket sends on the socket that is not read.
type onSocket struct{ stalledSocket }

func (c onSocket) Send(frame string) { c.Text(frame) }
func (c onSocket) Answer() string    { message, _ := c.next(); return message }
func (c onSocket) Event() string     { return c.Answer() }
func (c onSocket) Leave()            { c.Drop() }

// onStream posts beside the stream that is not read.
type onStream struct {
	t      *testing.T
	stream *stalledStream
	post   *brokertest.Client
	status int
}

func (c *onStream) Send(frame string) {
	c.t.Helper()
	if a := c.post.Post(frame); a.Status != c.status {
		c.t.Fatalf("post: %d %s", a.Status, a.Body)
	}
}
func (c *onStream) Answer() string { message, _ := c.stream.next(); return message }
func (c *onStream) Event() string  { return c.Answer() }
func (c *onStream) Leave()         { _ = c.stream.Close() }

// A client that takes nothing for 10 s is closed as a slow reader, though little
// waits for it.
func TestStuckReader(t *testing.T) {
	t.Parallel()
	b := quietBroker(t)
	p := prepared(t, b)
	socket, stream := openStalledSocket(t, b, "s"), openStalledStream(t, b, "/s/sse", "")
	b.Sessions(t, "s", 2)
	p.Send(`{"jsonrpc":"2.0","method":"notifications/x","params":"` + strings.Repeat("x", 512<<10) + `"}`)
	socket.arrived()
	stream.arrived()
	b.Log.Wait(t, `[broker] a WebSocket client of slot "s" was closed: it reads too slowly`)
	b.Log.Wait(t, `[broker] an SSE stream of slot "s" was closed: its client reads too slowly`)
	b.Sessions(t, "s", 0)
	if lines := b.Log.Lines(tooSlowly); len(lines) != 2 {
		t.Errorf("logged %q", lines)
	}
}
