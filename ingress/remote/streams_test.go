package remote

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// 07 row 65: an event flushed in pieces arrives whole, and as soon as it is whole,
// though the stream goes on.
func TestLongEvent(t *testing.T) {
	s := newServer(t)
	long := `{"jsonrpc":"2.0","method":"notifications/x","params":{"text":"` + strings.Repeat("é🎉x\u2028", 10_000) + `"}}`
	goOn := make(chan struct{})
	s.call = func(w http.ResponseWriter, r *http.Request, f *wire.Frame) {
		text := event(long)
		for len(text) > 0 {
			n := min(4<<10, len(text))
			events(w, text[:n])
			text = text[n:]
		}
		select {
		case <-goOn:
		case <-r.Context().Done():
		}
		events(w, event(echo(f)))
	}
	b := connect(t, Config{URL: s.URL})
	b.handshake()
	b.send(request(2, "a"))
	b.expect(long)
	close(goOn)
	b.expect(response(2, "a"))
}

// 07 row 64: events by the rules, whatever their shape.
func TestEventShapes(t *testing.T) {
	for name, text := range map[string]string{
		"no name":             "data: %s\n\n",
		"comments and retry":  ": hello\nretry: 5\n: x\nevent: message\nid: 1\ndata: %s\n\n",
		"CRLF":                "event: message\r\ndata: %s\r\n\r\n",
		"CR":                  "event: message\rdata: %s\r\r",
		"no blank line":       "data: %s\n",
		"no line end":         "data: %s",
		"an event of another": "event: endpoint\ndata: /x\n\nevent: message\ndata:%s\n\n",
		"byte order mark":     "\uFEFFdata: %s\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.call = func(w http.ResponseWriter, _ *http.Request, f *wire.Frame) { events(w, fmt.Sprintf(text, echo(f))) }
			b := connect(t, Config{URL: s.URL})
			b.handshake()
			b.send(request(2, "a"))
			b.expect(response(2, "a"))
		})
	}
	s := newServer(t)
	s.call = func(w http.ResponseWriter, _ *http.Request, _ *wire.Frame) {
		events(w, "data: {\"jsonrpc\":\"2.0\",\ndata:  \"id\":\"brk-2\",\ndata:\ndata: \"result\":1}\n\n")
	}
	b := connect(t, Config{URL: s.URL})
	b.handshake()
	b.send(request(2, "a"))
	b.expect("{\"jsonrpc\":\"2.0\",\n \"id\":\"brk-2\",\n\n\"result\":1}")
}

// What is no message is junk, and no answer.
func TestJunkEvent(t *testing.T) {
	s := newServer(t)
	s.call = func(w http.ResponseWriter, _ *http.Request, f *wire.Frame) {
		events(w, event("starting up"), "data:\n\n", event(echo(f)))
	}
	b := connect(t, Config{URL: s.URL})
	b.handshake()
	b.send(request(2, "a"))
	b.expect("junk starting up", response(2, "a"))
}

// Messages behind the answer still pass, and a stream that does not end is left.
func TestBehindTheAnswer(t *testing.T) {
	s := newServer(t)
	const note = `{"jsonrpc":"2.0","method":"notifications/x"}`
	left := make(chan struct{})
	s.call = func(w http.ResponseWriter, r *http.Request, f *wire.Frame) {
		events(w, event(echo(f))+event(note)) // in one piece: it is not read on for long
		<-r.Context().Done()
		close(left)
	}
	b := connect(t, Config{URL: s.URL})
	b.handshake()
	b.send(request(2, "a"))
	b.expect(response(2, "a"), note)
	receive(t, left, "end of the stream")
}

// A stream that breaks behind an event with an id is asked for again, once where that
// brings nothing new.
func TestResumedAnswer(t *testing.T) {
	s := newServer(t)
	s.call = func(w http.ResponseWriter, _ *http.Request, _ *wire.Frame) {
		events(w, "id: e1\ndata:\n\n", "id: e2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n", "data: {\"cut")
		panic(http.ErrAbortHandler)
	}
	var silent atomic.Bool
	s.stream = func(w http.ResponseWriter, r *http.Request) {
		switch last := r.Header.Get(eventHeader); {
		case last == "":
			<-r.Context().Done()
		case !silent.Load():
			events(w, "id: e3\ndata: "+response(2, "late")+"\n\n")
		default:
			events(w)
		}
	}
	b := connect(t, Config{URL: s.URL})
	b.handshake()
	b.send(request(2, "a"))
	b.expect(`{"jsonrpc":"2.0","method":"notifications/x"}`, response(2, "late"))
	silent.Store(true)
	b.send(request(3, "a"))
	b.expect(`{"jsonrpc":"2.0","method":"notifications/x"}`,
		refusal(3, wire.RemoteLost("far", "the event stream ended: the server's answer held no response to the request")))
	var resumed []string
	for len(resumed) < 3 {
		resumed = append(resumed, receive(t, s.gets, "GET").event)
	}
	slices.Sort(resumed) // the stream of the session itself may be opened behind the first answer
	if diff := cmp.Diff([]string{"", "e2", "e2"}, resumed); diff != "" {
		t.Errorf("Last-Event-ID (-want +got):\n%s", diff)
	}
}

// A stream that breaks without an event id is an error at once.
func TestBrokenAnswer(t *testing.T) {
	s := newServer(t)
	s.call = func(w http.ResponseWriter, _ *http.Request, _ *wire.Frame) {
		events(w, "data: {\"cut")
		panic(http.ErrAbortHandler)
	}
	b := connect(t, Config{URL: s.URL})
	b.handshake()
	b.send(request(2, "a"))
	b.expect(refusal(2, wire.RemoteLost("far", "the server closed the connection")))
}

// Spec 03 4.2 and 10.2 item 19: the event stream is opened behind the handshake, and
// again after a clean end, a reset and an error, behind the last event.
func TestEventStream(t *testing.T) {
	s := newServer(t)
	var count atomic.Int32
	s.stream = func(w http.ResponseWriter, r *http.Request) {
		n := count.Add(1)
		note := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/%d"}`, n)
		switch n {
		case 1:
			events(w, "id: a\n"+event(note))
		case 2:
			events(w, event(note))
			panic(http.ErrAbortHandler)
		case 3:
			http.Error(w, "wait", http.StatusServiceUnavailable)
		default:
			events(w, event(note))
			<-r.Context().Done()
		}
	}
	b := connect(t, Config{URL: s.URL})
	b.handshake()
	for _, i := range []int{1, 2, 4} {
		b.expect(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/%d"}`, i))
	}
	for _, want := range []string{"", "a", "", ""} { // each stream has ids of its own
		got := receive(t, s.gets, "GET")
		equal(t, "stream", got.session+" "+got.version+" "+got.event+" "+got.header.Get("Accept"), "session-1 2025-06-18 "+want+" text/event-stream")
	}
	contains(t, "log", b.log.String(), `[broker] upstream \"far\": its event stream ended, and is opened again: the server answered HTTP 503 Service Unavailable: wait`)
	contains(t, "log", b.log.String(), `[broker] upstream \"far\": its event stream is open again`)
}

// A server without an event stream is not asked twice.
func TestNoEventStream(t *testing.T) {
	for _, status := range []int{405, 501, 404} {
		s := newServer(t)
		s.before = func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
			if r.Method == http.MethodGet {
				w.WriteHeader(status)
			}
			return r.Method == http.MethodGet
		}
		b := connect(t, Config{URL: s.URL})
		b.handshake()
		receive(t, s.gets, "GET")
		for i := range 20 {
			b.send(request(10+i, "a"))
			b.expect(response(10+i, "a"))
		}
		b.driver.Stop(patience)
		b.ended()
		if len(s.gets) != 0 || s.n != 1 {
			t.Errorf("%d: asked %d times more, %d handshakes", status, len(s.gets), s.n)
		}
	}
}

// A refusal for the credentials names what to look at.
func TestEventStreamDenied(t *testing.T) {
	s := newServer(t)
	s.stream = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }
	b := connect(t, Config{URL: s.URL})
	b.handshake()
	receive(t, s.gets, "GET")
	receive(t, s.gets, "second GET")
	contains(t, "log", b.log.String(), "the server answered HTTP 403 Forbidden; POST works, so headers and auth must be honoured on GET as well")
	if n := strings.Count(b.log.String(), "POST works"); n != 1 {
		t.Errorf("logged %d times (07 row 14)", n)
	}
}

// 07 row 5: where only the stream breaks and the session is gone, the handshake comes
// before the next stream and the next call.
func TestEventStreamForgotten(t *testing.T) {
	s := newServer(t)
	hang := make(chan struct{})
	s.stream = func(w http.ResponseWriter, r *http.Request) {
		events(w, event(`{"jsonrpc":"2.0","method":"notifications/open"}`))
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}
	b := connect(t, Config{URL: s.URL})
	b.handshake()
	const open = `{"jsonrpc":"2.0","method":"notifications/open"}`
	b.expect(open)
	s.forget()
	hang <- struct{}{}
	b.expect(open)
	s.took("POST  " + initialize)
	s.took("POST session-1 " + initialized)
	s.took("POST  " + initialize)
	s.took("POST session-2 " + initialized)
	b.send(request(2, "a"))
	b.expect(response(2, "a"))
	s.took("POST session-2 " + request(2, "a"))
}

// An answer may come on the event stream: the exchange it was asked in has then no need
// of one.
func TestAnswerOnTheEventStream(t *testing.T) {
	s := newServer(t)
	answers, sent := make(chan string), make(chan struct{})
	s.stream = func(w http.ResponseWriter, r *http.Request) {
		events(w)
		for {
			select {
			case frame := <-answers:
				events(w, event(frame))
			case <-r.Context().Done():
				return
			}
		}
	}
	s.call = func(w http.ResponseWriter, r *http.Request, f *wire.Frame) {
		if string(f.Method) == "late" {
			answers <- echo(f)
			<-sent
			events(w)
			return
		}
		respond(w, echo(f))
	}
	b := connect(t, Config{URL: s.URL})
	b.handshake()
	b.send(request(2, "late"))
	b.expect(response(2, "late"))
	close(sent)
	b.send(request(3, "a"))
	b.expect(response(3, "a"))
}

// An event over the limit is left out of the event stream, which goes on (07 row 56).
func TestEventStreamTooLarge(t *testing.T) {
	const limit = 1 << 12
	s := newServer(t)
	const open = `{"jsonrpc":"2.0","method":"notifications/open"}`
	s.stream = func(w http.ResponseWriter, r *http.Request) {
		events(w, event(`{"method":"`+strings.Repeat("x", 5*limit)+`"}`),
			event(`{"jsonrpc":"2.0","id":"brk-9","result":"`+strings.Repeat("x", limit)+`"}`),
			event(`{"result":"`+strings.Repeat("x", 40<<10)+`","jsonrpc":"2.0","id":"brk-8"}`), event(open))
		<-r.Context().Done()
	}
	b := connect(t, Config{URL: s.URL, Limit: limit})
	b.handshake()
	b.expect(refusal(9, wire.TooLarge(limit)), refusal(8, wire.TooLarge(limit)), open)
	contains(t, "log", b.log.String(), "it sent a message larger than 4096 bytes (maxMessageBytes), which was dropped")
}

// Spec 03 4.2: 500 ms doubling to 30 s, anew after a stream of 10 s.
func TestReopenDelay(t *testing.T) {
	var row series
	var got []time.Duration
	for range 9 {
		got = append(got, reopenDelay(row.failed(10*time.Second-1)))
	}
	got = append(got, reopenDelay(row.failed(10*time.Second)))
	const ms = time.Millisecond
	want := []time.Duration{500 * ms, 1000 * ms, 2000 * ms, 4000 * ms, 8000 * ms, 16000 * ms, 30000 * ms, 30000 * ms, 30000 * ms, 500 * ms}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A cancellation follows its request, and ends the exchange of one that is not answered.
func TestCancel(t *testing.T) {
	s := newServer(t)
	left := make(chan struct{})
	s.call = func(_ http.ResponseWriter, r *http.Request, _ *wire.Frame) {
		<-r.Context().Done()
		close(left)
	}
	b := connect(t, Config{URL: s.URL})
	b.handshake()
	cancelled := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"brk-2"}}`
	b.send(request(2, "a"))
	for _, want := range []string{"POST  " + initialize, "POST session-1 " + initialized, "POST session-1 " + request(2, "a")} {
		s.took(want)
	}
	b.send(cancelled)
	s.took("POST session-1 " + cancelled)
	receive(t, left, "end of the exchange")
	b.expect(refusal(2, wire.RemoteLost("far", errWithdrawn.Error())))
}

// Requests over the bound wait, and one that waits can be taken back without the server.
func TestManyCalls(t *testing.T) {
	s := newServer(t)
	goOn := make(chan struct{})
	s.call = func(w http.ResponseWriter, r *http.Request, f *wire.Frame) {
		select {
		case <-goOn:
		case <-r.Context().Done():
		}
		respond(w, echo(f))
	}
	b := connect(t, Config{URL: s.URL})
	b.handshake()
	const all = maxRunning + maxWaiting + 1
	for i := range all {
		b.send(request(100+i, "m"))
	}
	b.expect(refusal(100+all-1, wire.RemoteBusy("far", maxRunning)))
	b.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"brk-%d"}}`, 100+all-2))
	b.expect(refusal(100+all-2, wire.Withdrawn()))
	close(goOn)
	got := map[string]bool{}
	for range all - 2 {
		got[b.next()] = true
	}
	for i := range all - 2 {
		if !got[response(100+i, "m")] {
			t.Errorf("call %d was not answered", i)
		}
	}
}

// Stop does not wait for what the server owes.
func TestStop(t *testing.T) {
	s := newServer(t)
	s.call = func(_ http.ResponseWriter, r *http.Request, _ *wire.Frame) { <-r.Context().Done() }
	s.stream = func(w http.ResponseWriter, r *http.Request) { events(w); <-r.Context().Done() }
	b := connect(t, Config{URL: s.URL})
	b.handshake()
	for i := range 10 {
		b.send(request(2+i, "a"))
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := b.dialer.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	b.expectEnd("<nil>", false)
	if s.known("session-1") {
		t.Error("the session was not deleted")
	}
	b.start(Config{URL: s.URL})
	b.expectEnd("the broker is stopping", false)
}

// A server that takes nothing in ends the connection once too much waits for it.
func TestSlowServer(t *testing.T) {
	s := newServer(t)
	s.before = func(_ http.ResponseWriter, r *http.Request, _ []byte) bool { <-r.Context().Done(); return true }
	b := connect(t, Config{URL: s.URL})
	b.send(initialize)
	s.took("POST  " + initialize)
	frame := []byte(`{"jsonrpc":"2.0","method":"notifications/x","params":{"text":"` + strings.Repeat("x", 4<<20) + `"}}`)
	sent := 0
	for ; b.driver.Send(frame, mcp.Required); sent++ {
		if sent > 2*OutboxBytes/len(frame) {
			t.Fatal("there is no bound")
		}
	}
	b.expectEnd("the server takes messages too slowly: more than 16777216 bytes wait for it", false)
}

// A server that does not take leave has two seconds.
func TestStopBounded(t *testing.T) {
	s := newServer(t)
	s.before = func(_ http.ResponseWriter, r *http.Request, _ []byte) bool {
		if r.Method == http.MethodDelete {
			<-r.Context().Done()
		}
		return r.Method == http.MethodDelete
	}
	b := connect(t, Config{URL: s.URL})
	b.handshake()
	b.driver.Stop(50 * time.Millisecond)
	b.expectEnd("<nil>", false)
}

// Before Attach what the server says waits; the end does not. To give up a connection
// that has opened is too late.
func TestBeforeAttach(t *testing.T) {
	s := newServer(t)
	b := newBroker(t)
	b.start(Config{URL: s.URL})
	d := receive(t, b.owner, "UpstreamOpened").(*msg.UpstreamOpened).Driver
	b.cancel()
	if !d.Send([]byte(initialize), mcp.Required) {
		t.Fatal("a message was not taken")
	}
	s.took("POST  " + initialize)
	d.Attach(b.slot, slotGen)
	b.expect(welcome)
	d.Send([]byte(initialized), mcp.Required)
	s.took("POST session-1 " + initialized)

	b.start(Config{URL: s.URL})
	d = receive(t, b.owner, "UpstreamOpened").(*msg.UpstreamOpened).Driver
	d.Send([]byte(initialize), mcp.Required)
	s.took("POST  " + initialize)
	d.Stop(patience)
	b.expectEnd("<nil>", false)
}
