package streamable_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"mcpbroker"
	"mcpbroker/actors/msg"
	"mcpbroker/brokertest"
	"mcpbroker/config"
)

const (
	sessionClosed = `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Session closed"}}`
	notConnected  = `"error":{"code":-32000,"message":"Provider \"s\" not connected"}`
)

// T7 of spec 01 section 11, 5.2 to 5.4.
func TestSessionLife(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	p := b.Dedicated(t, "s")
	c := brokertest.NewClient(t, b.MCPURL("s"))
	reply := c.Start(brokertest.InitializeFrame)
	brokertest.Respond(p, p.Receive(), "{}")
	a := c.Await(reply)
	brokertest.Is(t, "initialize", a, 200, `{"jsonrpc":"2.0","id":0,"result":{}}`)
	brokertest.Equal(t, "content type", a.Header.Get("Content-Type"), "application/json; charset=utf-8")
	c.Session = a.Header.Get("Mcp-Session-Id")
	if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(c.Session) {
		t.Errorf("session id %q is no random UUID", c.Session)
	}
	a = c.Post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	brokertest.Is(t, "initialized", a, 202, "")
	brokertest.Equal(t, "session header of other answers", a.Header.Get("Mcp-Session-Id"), "")
	p.Receive()

	stream := c.Listen()
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-cache, no-transform",
		"Mcp-Session-Id": c.Session, "X-Accel-Buffering": "no", "Content-Encoding": "", // row 73; the client accepts gzip
	} {
		brokertest.Equal(t, name, stream.Header.Get(name), want)
	}
	brokertest.Equal(t, "first bytes", stream.Next(), ": open")

	pending := c.Start(`{"jsonrpc":"2.0","id":1,"method":"slow"}`)
	request := p.Receive()
	brokertest.Is(t, "DELETE", c.Do("DELETE", ""), 204, "")
	brokertest.Is(t, "the POST in flight", c.Await(pending), 503, sessionClosed)
	brokertest.Equal(t, "the stream", stream.Next(), "")
	brokertest.Equal(t, "F-45", p.Receive(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+brokertest.ID(request)+`,"reason":"The caller no longer waits for the answer"}}`)
	b.WaitSlot(t, "s", func(i msg.SlotInfo) bool { return i.SessionCount == 0 && i.PendingCount == 0 })
	for _, method := range []string{"DELETE", "POST", "GET"} {
		brokertest.Is(t, method+" afterwards", c.Do(method, `{"jsonrpc":"2.0","method":"m"}`), 404, unknownSession)
	}
}

// Spec 01 4.3, 5.2, F-23, section 9 item 7: a session exists without a provider;
// requests are answered as JSON-RPC, notifications vanish without a trace.
func TestNoProvider(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	c := brokertest.NewClient(t, b.MCPURL("s"))
	brokertest.Is(t, "initialize", c.Initialize(), 200, `{"jsonrpc":"2.0","id":0,`+notConnected+`}`)
	stream := listen(t, c)
	brokertest.Is(t, "request", c.Post(`{"jsonrpc":"2.0","id":"x","method":"tools/list"}`), 200, `{"jsonrpc":"2.0","id":"x",`+notConnected+`}`)
	brokertest.Is(t, "notification", c.Post(`{"jsonrpc":"2.0","method":"notifications/x"}`), 202, "")
	b.Pending(t, "s", 0)
	p := b.Dedicated(t, "s")
	brokertest.Respond(p, p.Receive(), "{}") // F-25: the remembered initialize
	p.Receive()
	p.Send(`{"jsonrpc":"2.0","method":"notifications/first"}`)
	brokertest.Equal(t, "the first event", stream.Next(), event("1", `{"jsonrpc":"2.0","method":"notifications/first"}`))
	reply := c.Start(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	brokertest.Respond(p, p.Receive(), "{}")
	brokertest.Is(t, "the same session", c.Await(reply), 200, `{"jsonrpc":"2.0","id":1,"result":{}}`)
}

// Spec 01 5.2: initialize without an id opens a session with 202; with a session
// it is an ordinary message; one slot's session is unknown on another.
func TestInitializeForms(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	c := brokertest.NewClient(t, b.MCPURL("s"))
	a := c.Post(`{"jsonrpc":"2.0","method":"initialize"}`)
	brokertest.Is(t, "without id", a, 202, "")
	if c.Session = a.Header.Get("Mcp-Session-Id"); c.Session == "" {
		t.Fatal("no session")
	}
	a = c.Post(brokertest.InitializeFrame)
	brokertest.Is(t, "again", a, 200, `{"jsonrpc":"2.0","id":0,`+notConnected+`}`)
	brokertest.Equal(t, "session of the second", a.Header.Get("Mcp-Session-Id"), "")
	other := brokertest.NewClient(t, b.MCPURL("other"))
	other.Session = c.Session
	for _, method := range []string{"POST", "GET", "DELETE"} {
		brokertest.Is(t, method+" on another slot", other.Do(method, brokertest.InitializeFrame), 404, unknownSession)
	}
	b.Sessions(t, "s", 1)
	escaped := brokertest.NewClient(t, b.MCPURL("s"))
	if a := escaped.Post(`{"jsonrpc":"2.0","id":1,"method":"initial\u0069ze"}`); a.Header.Get("Mcp-Session-Id") == "" {
		t.Errorf("F-47: the method is compared as text: %d %s", a.Status, a.Body)
	}
}

// Design decision 4: the first client's initialize is relayed, the answer serves
// the later ones under their own ids, and the provider sees one handshake.
func TestInitializeCached(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	p := b.Dedicated(t, "s")
	c := brokertest.NewClient(t, b.MCPURL("s"))
	c.Handshake(p)
	d := brokertest.NewClient(t, b.MCPURL("s"))
	a := d.Post(`{"jsonrpc":"2.0","id":"second","method":"initialize","params":{"clientInfo":{"name":"d"}}}`)
	brokertest.Is(t, "the second client", a, 200, `{"jsonrpc":"2.0","id":"second","result":`+brokertest.ServerResult+`}`)
	d.Session = a.Header.Get("Mcp-Session-Id")
	brokertest.Is(t, "its initialized", d.Post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), 202, "")
	reply := d.Start(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
	request := p.Receive()
	brokertest.Equal(t, "the next frame", stable(request), `{"jsonrpc":"2.0","id":"brk-2","method":"m","params":{"_meta":{"traceparent":"$TRACE"}}}`)
	brokertest.Respond(p, request, "{}")
	d.Await(reply)
	p.Drop()
	b.Empty(t, "s")
	p = b.Dedicated(t, "s")
	brokertest.Equal(t, "replay of the last client's (F-25)", p.Receive(), `{"jsonrpc":"2.0","id":"brk-3","method":"initialize","params":{"clientInfo":{"name":"d"}}}`)
}

// Design decision 4: initialize = "relay" relays each.
func TestInitializeRelayed(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{mcpbroker.WithSlot("s", config.Slot{Initialize: "relay"})}})
	p := b.Dedicated(t, "s")
	for range 2 {
		brokertest.NewClient(t, b.MCPURL("s")).Handshake(p)
	}
}

// F-32: an idle session ends and is unknown afterwards; a stream and a call in
// flight are use; by default nothing expires. All three have a stream at first, so
// that a busy machine does not find them idle.
func TestSessionIdleTimeout(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{mcpbroker.WithSessionIdleTimeout(100 * time.Millisecond)}})
	streaming := func() (c *brokertest.Client, stream *brokertest.Stream) {
		eventually(t, "a stream is opened in time", func() bool {
			c = brokertest.NewClient(t, b.MCPURL("s"))
			c.Initialize()
			stream = c.Listen()
			return stream.Status == 200
		})
		return c, stream
	}
	busy, ofBusy := streaming()
	idle, ofIdle := streaming()
	open, _ := streaming()
	p := b.Dedicated(t, "s")
	brokertest.Respond(p, p.Receive(), "{}") // F-25: the remembered initialize
	p.Receive()
	reply := busy.Start(`{"jsonrpc":"2.0","id":1,"method":"slow"}`)
	request := p.Receive()

	ofBusy.Close()
	ofIdle.Close()
	b.Sessions(t, "s", 2)
	brokertest.Is(t, "the idle session", idle.Post(`{"jsonrpc":"2.0","method":"m"}`), 404, unknownSession)
	brokertest.Is(t, "the streaming session", open.Post(`{"jsonrpc":"2.0","method":"m"}`), 202, "")
	brokertest.Respond(p, request, "{}")
	brokertest.Is(t, "the busy session", busy.Await(reply), 200, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	b.Sessions(t, "s", 1)
}

// Design decision 8: over maxSessionsPerSlot the session that was idle longest
// and has no stream makes room.
func TestMaxSessionsPerSlot(t *testing.T) {
	b := configured(t, func(c *config.Config) { c.MaxSessionsPerSlot = 2 })
	first, second, third := brokertest.NewClient(t, b.MCPURL("s")), brokertest.NewClient(t, b.MCPURL("s")), brokertest.NewClient(t, b.MCPURL("s"))
	p := b.Dedicated(t, "s")
	first.Handshake(p)
	listening := func(c *brokertest.Client) { // and the slot knows
		stream := listen(t, c)
		p.Send(`{"method":"fence"}`)
		stream.Next()
	}
	second.Initialize()
	listening(first)
	third.Initialize()
	b.Sessions(t, "s", 2)
	eventually(t, "the session without a stream has ended", func() bool { return second.Post(`{"jsonrpc":"2.0","method":"m"}`).Status == 404 })
	brokertest.Is(t, "the session with a stream", first.Post(`{"jsonrpc":"2.0","method":"m"}`), 202, "")
	listening(third)
	fourth := brokertest.NewClient(t, b.MCPURL("s"))
	brokertest.Is(t, "all stream", fourth.Post(brokertest.InitializeFrame), 200, `{"jsonrpc":"2.0","id":0,"error":{"code":-32000,"message":"Slot \"s\" has 2 sessions, the most it may have (maxSessionsPerSlot), and all have a stream open"}}`)
}

// F-06: slots are bounded; one nobody uses any more makes room, one in use never.
func TestMaxSlots(t *testing.T) {
	c := config.Default()
	c.Host, c.Port, c.MaxSlots = "127.0.0.1", 0, 2
	b := brokertest.Start(t, brokertest.Options{Plain: true, Configure: []mcpbroker.Option{mcpbroker.WithConfig(c)}})
	clients := map[string]*brokertest.Client{}
	open := func(slot string) brokertest.Answer {
		clients[slot] = brokertest.NewClient(t, b.MCPURL(slot))
		return clients[slot].Initialize()
	}
	open("a")
	open("b")
	for _, slot := range []string{"a", "b"} {
		clients[slot].Listen()
		b.WaitSlot(t, slot, func(i msg.SlotInfo) bool { return i.IdleSince.IsZero() })
	}
	brokertest.Is(t, "a third slot", open("c"), 200, `{"jsonrpc":"2.0","id":0,"error":{"code":-32000,"message":"Slot \"c\" cannot be created: the broker holds 2 slots, the most it may have (maxSlots), and all are in use"}}`)
	clients["a"].Do("DELETE", "")
	eventually(t, "the unused slot makes room", func() bool {
		return clients["c"].Post(`{"jsonrpc":"2.0","id":1,"method":"m"}`).Body == `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Provider \"c\" not connected"}}`
	})
	list, err := b.Slots(t.Context())
	if err != nil || len(list) != 2 || list[0].Name != "b" || list[1].Name != "c" {
		t.Errorf("slots %+v, %v", list, err)
	}
}

// F-06: slots that nobody ever served do not keep a newcomer out, whoever waits in
// them without listening.
func TestMaxSlotsUnserved(t *testing.T) {
	c := config.Default()
	c.Host, c.Port, c.MaxSlots = "127.0.0.1", 0, 2
	b := brokertest.Start(t, brokertest.Options{Plain: true, Configure: []mcpbroker.Option{mcpbroker.WithConfig(c)}})
	idle := brokertest.NewClient(t, b.MCPURL("a"))
	idle.Initialize()
	brokertest.NewClient(t, b.MCPURL("b")).Initialize()
	b.Sessions(t, "a", 1)
	b.Sessions(t, "b", 1)
	b.Dedicated(t, "newcomer")
	eventually(t, "the session of the slot that ended is gone", func() bool {
		return idle.Post(`{"jsonrpc":"2.0","method":"m"}`).Status == 404
	})
	list, err := b.Slots(t.Context())
	if err != nil || len(list) != 2 || list[0].Name != "b" || list[1].Name != "newcomer" {
		t.Errorf("slots %+v, %v", list, err)
	}
}

// eventually repeats what has no event of its own to wait for.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("%s: not within %s", what, patience)
		default:
		}
	}
}

// patience is how long a test waits for what it expects, on a machine that is busy.
const patience = 30 * time.Second

// F-34, row 38: an id in flight twice in one session is refused, and the first is
// still answered right. Section 9 item 5, row 37: equal ids of two sessions are
// two requests.
func TestEqualIDs(t *testing.T) {
	_, p, c := served(t)
	d := another(t, c)
	first := c.Start(`{"jsonrpc":"2.0","id":1,"method":"c"}`)
	fromC := p.Receive()
	brokertest.Is(t, "the same id", c.Post(`{"jsonrpc":"2.0","id":1,"method":"again"}`), 200,
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"A request with id 1 is already in flight in this session; use another id"}}`)
	text := c.Start(`{"jsonrpc":"2.0","id":"1","method":"c as text"}`)
	fromText := p.Receive()
	second := d.Start(`{"jsonrpc":"2.0","id":1,"method":"d"}`)
	fromD := p.Receive()
	if a, b, c := brokertest.ID(fromC), brokertest.ID(fromD), brokertest.ID(fromText); a == b || b == c || a == c {
		t.Errorf("the provider saw ids %s, %s, %s", a, b, c)
	}
	brokertest.Respond(p, fromD, `"for d"`)
	brokertest.Respond(p, fromText, `"for the text"`)
	brokertest.Respond(p, fromC, `"for c"`)
	brokertest.Is(t, "c", c.Await(first), 200, `{"jsonrpc":"2.0","id":1,"result":"for c"}`)
	brokertest.Is(t, "c, text", c.Await(text), 200, `{"jsonrpc":"2.0","id":"1","result":"for the text"}`)
	brokertest.Is(t, "d", d.Await(second), 200, `{"jsonrpc":"2.0","id":1,"result":"for d"}`)
	again := c.Start(`{"jsonrpc":"2.0","id":1,"method":"later"}`)
	brokertest.Respond(p, p.Receive(), "{}")
	brokertest.Is(t, "the id is free again", c.Await(again), 200, `{"jsonrpc":"2.0","id":1,"result":{}}`)
}

// The bounds on calls in flight, of a session and of a slot.
func TestPendingBounds(t *testing.T) {
	b := configured(t, func(c *config.Config) { c.MaxPendingPerSession, c.MaxPendingPerSlot = 2, 3 })
	p := b.Dedicated(t, "s")
	c := brokertest.NewClient(t, b.MCPURL("s"))
	c.Handshake(p)
	d := another(t, c)
	call := func(c *brokertest.Client, id int) <-chan brokertest.Answer {
		return c.Start(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"m"}`, id))
	}
	one := call(c, 1)
	request := p.Receive()
	call(c, 2)
	p.Receive()
	brokertest.Is(t, "a third of one session", c.Await(call(c, 3)), 200, `{"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"This session has 2 requests in flight, the most it may have (maxPendingPerSession); wait for an answer before sending more"}}`)
	call(d, 1)
	p.Receive()
	brokertest.Is(t, "a fourth of the slot", d.Await(call(d, 2)), 200, `{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"Slot \"s\" has 3 requests waiting, the most it may have (maxPendingPerSlot); send the request again later"}}`)
	brokertest.Respond(p, request, "{}")
	c.Await(one)
	reply := call(d, 3)
	brokertest.Respond(p, p.Receive(), "{}")
	brokertest.Is(t, "with room again", d.Await(reply), 200, `{"jsonrpc":"2.0","id":3,"result":{}}`)
}

// Row 67, design decision 7: in a session of revision 2025-03-26 a batch is split,
// tracked and answered as one array, in the order of the answers.
func TestBatchOf20250326(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	p := b.Dedicated(t, "s")
	c := brokertest.NewClient(t, b.MCPURL("s"))
	c.HandshakeWith(p, `{"protocolVersion":"2025-03-26"}`)
	reply := c.Start(`[ {"jsonrpc":"2.0","id":1,"method":"a"}, {"jsonrpc":"2.0","method":"note"},{"jsonrpc":"2.0","id":"2","method":"b"}
		,{"jsonrpc":"2.0","id":9,"result":{}} , 7,{"jsonrpc":"2.0","id":null,"method":"c"},{"jsonrpc":"2.0","id":1,"method":"d"}]`)
	a, note, second := p.Receive(), p.Receive(), p.Receive()
	brokertest.Equal(t, "a", stable(a), `{"jsonrpc":"2.0","id":"brk-2","method":"a","params":{"_meta":{"traceparent":"$TRACE"}}}`)
	brokertest.Equal(t, "note", note, `{"jsonrpc":"2.0","method":"note"}`)
	brokertest.Equal(t, "b", stable(second), `{"jsonrpc":"2.0","id":"brk-3","method":"b","params":{"_meta":{"traceparent":"$TRACE"}}}`)
	brokertest.Respond(p, second, `"b"`)
	brokertest.Respond(p, a, `"a"`)
	const invalid = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":`
	brokertest.Is(t, "the array", c.Await(reply), 200, `[`+invalid+`"Body is not a JSON-RPC message"}},`+
		invalid+`"The id of a request must be a string or a number; leave it out to send a notification"}},`+
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"A request with id 1 is already in flight in this session; use another id"}},`+
		`{"jsonrpc":"2.0","id":"2","result":"b"},{"jsonrpc":"2.0","id":1,"result":"a"}]`)

	brokertest.Is(t, "only notifications", c.Post(`[{"jsonrpc":"2.0","method":"n1"},{"jsonrpc":"2.0","method":"n2"}]`), 202, "")
	brokertest.Equal(t, "n1", p.Receive(), `{"jsonrpc":"2.0","method":"n1"}`)
	brokertest.Equal(t, "n2", p.Receive(), `{"jsonrpc":"2.0","method":"n2"}`)
	brokertest.Is(t, "empty", c.Post(`[]`), 400, failure("invalid_request", "Body is not a JSON-RPC message"))
	brokertest.Is(t, "too many", c.Post("["+strings.Repeat("1,", 50)+"1]"), 400, failure("invalid_request", "The batch holds 51 messages, more than the 50 it may hold"))
}

// A client that leaves before the answer to its initialize has never heard of the
// session, so nobody could use it or end it.
func TestLeavesDuringInitialize(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	p := b.Dedicated(t, "s")
	c := brokertest.NewClient(t, b.MCPURL("s"))
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := c.Try(ctx, "POST", brokertest.InitializeFrame)
		left <- err
	}()
	request := p.Receive()
	b.Sessions(t, "s", 1)
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the request came to %v", err)
	}
	b.Sessions(t, "s", 0)

	// One that has its session keeps it, whatever becomes of a later request.
	brokertest.Respond(p, request, "{}")
	c.Initialize()
	ctx, leave = context.WithCancel(t.Context())
	go func() {
		_, err := c.Try(ctx, "POST", `{"jsonrpc":"2.0","id":1,"method":"m"}`)
		left <- err
	}()
	p.Receive()
	leave()
	<-left
	b.Pending(t, "s", 0)
	b.Sessions(t, "s", 1)
}
