package session

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
	"mcpbroker/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

var epoch = time.Unix(1_000_000, 0)

// ref is an actor by name. Effects are never performed, so nothing is sent.
type ref struct{ name string }

func (*ref) Send(any) { panic("a core must not send") }

// sink is a request by name.
type sink struct{ name string }

func (*sink) Reply([]byte)            { panic("a core must not answer") }
func (*sink) Event([]byte, mcp.Class) { panic("a core must not answer") }
func (*sink) Accepted()               { panic("a core must not answer") }
func (*sink) Refuse(*wire.Error)      { panic("a core must not answer") }
func (*sink) Closed()                 { panic("a core must not answer") }

// stream is an event stream by name.
type stream struct{ name string }

func (*stream) Event(uint64, []byte, mcp.Class, string) bool { panic("a core must not send") }
func (*stream) End()                                         { panic("a core must not end") }

// machine is a session with the shell's part played by hand.
type machine struct {
	t   *testing.T
	s   *State
	now time.Time
}

func newMachine(t *testing.T, cfg Config) *machine {
	cfg.Slot, cfg.Number, cfg.Trace = "s", 7, func() string { return "$TRACE" }
	s := New(cfg, &ref{"registry"})
	s.self = &ref{"session"}
	return &machine{t, s, epoch}
}

// joined returns a session that is a member of its slot.
func joined(t *testing.T, cfg Config) *machine {
	m := newMachine(t, cfg)
	m.step(started{})
	m.step(&msg.SlotJoined{Ref: &ref{"slot"}})
	return m
}

func (m *machine) step(message any) []string {
	var lines []string
	for _, e := range m.s.Step(m.now, message) {
		lines = append(lines, text(&e))
	}
	return lines
}

// expect plays one message and compares its effects.
func (m *machine) expect(what string, message any, want ...string) {
	m.t.Helper()
	if diff := cmp.Diff(want, m.step(message)); diff != "" {
		m.t.Errorf("%s: effects (-want +got)\n%s", what, diff)
	}
}

func (m *machine) frame(s *sink, body string) *msg.ClientFrame {
	f, err := wire.Scan([]byte(body))
	if err != nil {
		m.t.Fatalf("scan %s: %v", body, err)
	}
	return &msg.ClientFrame{Frame: f, Sink: s, Streams: strings.HasPrefix(s.name, "streaming")}
}

func text(e *Effect) string {
	switch {
	case e.To != nil:
		return e.To.(*ref).name + " <- " + messageText(e.Message)
	case e.Sink != nil:
		name := e.Sink.(*sink).name
		switch e.Tell {
		case Reply:
			return name + ": reply " + string(e.Frame)
		case Event:
			return name + ": event " + string(e.Frame)
		case Accepted:
			return name + ": accepted"
		case Refuse:
			return fmt.Sprintf("%s: refused %d %s", name, e.Err.Code, e.Err.Message)
		default:
			return name + ": closed"
		}
	case e.Stream != nil && e.Event != nil:
		return fmt.Sprintf("%s: %d %s", e.Stream.(*stream).name, e.Event.id, e.Event.frame)
	case e.Stream != nil:
		return e.Stream.(*stream).name + ": end"
	case e.Credit != nil:
		return "credit"
	case e.Idle > 0:
		return fmt.Sprintf("idle in %v", e.Idle)
	case e.Done != nil:
		return "done"
	}
	if e.Gone {
		return "gone"
	}
	return "stop"
}

func messageText(message any) string {
	switch m := message.(type) {
	case *msg.JoinSlot:
		return fmt.Sprintf("join %s #%d", m.Slot, m.Session)
	case *msg.LeaveSlot:
		return fmt.Sprintf("leave %s #%d", m.Slot, m.Session)
	case *msg.ClientCall:
		return fmt.Sprintf("call %d %s trace=%s", m.Call, m.Frame.Bytes, m.Trace)
	case *msg.ClientNote:
		return fmt.Sprintf("note %s", m.Frame.Bytes)
	case *msg.CallerLeft:
		return fmt.Sprintf("caller left %d", m.Call)
	case *msg.StreamChanged:
		return fmt.Sprintf("stream open=%v", m.Open)
	case *msg.ClientAnswer:
		return fmt.Sprintf("answer of #%d %s", m.Session, m.Frame.Bytes)
	case *msg.AskUndeliverable:
		return fmt.Sprintf("undeliverable to #%d: brk-%d", m.Session, m.ID)
	}
	return fmt.Sprintf("%T", message)
}

const ask = `{"id":1,"method":"m"}`

// A session joins its slot first; what the client sends meanwhile waits, in order.
func TestJoin(t *testing.T) {
	m := newMachine(t, Config{})
	m.expect("start", started{}, "registry <- join s #7")
	m.expect("a call", m.frame(&sink{"a"}, ask))
	m.expect("a note", m.frame(&sink{"n"}, `{"method":"n"}`), "n: accepted")
	m.expect("a stream", &msg.StreamOpened{Stream: &stream{"get"}})
	m.expect("joined", &msg.SlotJoined{Ref: &ref{"slot"}},
		"slot <- stream open=true", `slot <- call 1 {"id":1,"method":"m"} trace=$TRACE`, `slot <- note {"method":"n"}`)
	m.expect("the next call", m.frame(&sink{"b"}, `{"id":2,"method":"m","params":[]}`), `slot <- call 2 {"id":2,"method":"m","params":[]} trace=`)
	m.expect("the slot is given up", &msg.SlotLost{}, "registry <- join s #7")
	m.expect("a call meanwhile", m.frame(&sink{"c"}, `{"id":3,"method":"m","params":[]}`))
	m.expect("joined again", &msg.SlotJoined{Ref: &ref{"slot2"}}, "slot2 <- stream open=true", `slot2 <- call 3 {"id":3,"method":"m","params":[]} trace=`)
}

// A refused join fails what waits, and is asked again by the next message.
func TestJoinRefused(t *testing.T) {
	m := newMachine(t, Config{})
	m.step(started{})
	m.step(m.frame(&sink{"a"}, ask))
	m.step(m.frame(&sink{"n"}, `{"method":"n"}`))
	m.expect("refused", &msg.JoinRefused{Err: wire.NotConnected("s")}, `a: reply {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Provider \"s\" not connected"}}`)
	m.expect("a call", m.frame(&sink{"b"}, ask), "registry <- join s #7")
	m.expect("joined", &msg.SlotJoined{Ref: &ref{"slot"}}, `slot <- call 2 {"id":1,"method":"m"} trace=$TRACE`)
}

// Spec 01 5.3, F-20, row 40: what each shape of message comes to.
func TestShapes(t *testing.T) {
	const invalid = "x: refused -32600 Body is not a JSON-RPC message"
	const badID = "x: refused -32600 The id of a request must be a string or a number; leave it out to send a notification"
	for _, c := range []struct{ frame, want string }{
		{`{"method":"n"}`, `slot <- note {"method":"n"}|x: accepted`},
		{`{"id":1,"result":{}}`, "x: accepted"},
		{`{"id":"brk-1","error":{}}`, "x: accepted"},
		{`{"id":null,"method":"n"}`, badID},
		{`{"id":true,"method":"n"}`, badID},
		{`{"id":{},"method":"n"}`, badID},
		{`{"id":[1],"method":"n"}`, badID},
		{`{"id":null,"result":{}}`, invalid},
		{`{}`, invalid},
		{`{"id":1.5,"method":"m","params":[]}`, `slot <- call 1 {"id":1.5,"method":"m","params":[]} trace=`},
		{`{"id":"","method":"m","params":[]}`, `slot <- call 1 {"id":"","method":"m","params":[]} trace=`},
	} {
		m := joined(t, Config{})
		m.expect(c.frame, m.frame(&sink{"x"}, c.frame), strings.Split(c.want, "|")...)
	}
}

// F-34: an id in flight is refused, whatever else it names; it is free again with
// its answer, its failure, or its caller's leaving.
func TestDuplicateID(t *testing.T) {
	m := joined(t, Config{MaxPending: 2})
	again := m.frame(&sink{"again"}, ask)
	const refused = `again: reply {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"A request with id 1 is already in flight in this session; use another id"}}`
	first := &sink{"a"}
	m.step(m.frame(first, ask))
	m.expect("in flight", again, refused)
	m.expect("answered", &msg.CallReply{Call: 1, Frame: []byte("R")}, "a: reply R")
	m.expect("answered twice", &msg.CallReply{Call: 1, Frame: []byte("R")})
	m.expect("free", m.frame(first, ask), `slot <- call 2 {"id":1,"method":"m"} trace=$TRACE`)
	m.expect("failed", &msg.CallFailed{Call: 2, Err: wire.Disconnected("s")}, `a: reply {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Provider \"s\" disconnected"}}`)
	m.expect("failed twice", &msg.CallFailed{Call: 2, Err: wire.Disconnected("s")})
	m.expect("free", m.frame(first, ask), `slot <- call 3 {"id":1,"method":"m"} trace=$TRACE`)
	m.expect("F-45", &msg.SinkGone{Sink: first}, "slot <- caller left 3")
	m.expect("free", m.frame(first, ask), `slot <- call 4 {"id":1,"method":"m"} trace=$TRACE`)
	m.expect("a text of the same digits", m.frame(first, `{"id":"1","method":"m"}`), `slot <- call 5 {"id":"1","method":"m"} trace=$TRACE`)
	m.expect("the bound", m.frame(&sink{"b"}, `{"id":2,"method":"m"}`),
		`b: reply {"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"This session has 2 requests in flight, the most it may have (maxPendingPerSession); wait for an answer before sending more"}}`)
}

// Spec 01 5.4: streams take over, resume and fall back to the history.
func TestStreams(t *testing.T) {
	m := joined(t, Config{Resumable: true})
	first, second := &stream{"first"}, &stream{"second"}
	notify := func(frame string) *msg.Notify { return &msg.Notify{Frame: []byte(frame)} }
	m.expect("no stream", notify("e1"))
	m.expect("no stream", notify("e2"))
	m.expect("open", &msg.StreamOpened{Stream: first}, "slot <- stream open=true", "first: 1 e1", "first: 2 e2")
	m.expect("live", notify("e3"), "first: 3 e3")
	m.expect("take over", &msg.StreamOpened{Stream: second}, "first: end", "slot <- stream open=true")
	m.expect("the older has gone", &msg.StreamGone{Stream: first})
	m.expect("live", notify("e4"), "second: 4 e4")
	m.expect("the newer has gone", &msg.StreamGone{Stream: second}, "slot <- stream open=false")
	m.expect("kept", notify("e5"))
	m.expect("resume", &msg.StreamOpened{Stream: first, Resume: true, LastEvent: 2}, "slot <- stream open=true", "first: 3 e3", "first: 4 e4", "first: 5 e5")
	m.expect("resume from the future", &msg.StreamOpened{Stream: second, Resume: true, LastEvent: 99}, "first: end", "slot <- stream open=true")
	m.expect("close", &msg.CloseSession{}, "second: end", "gone", "slot <- leave s #7", "stop")
}

// A transport that cannot resume keeps nothing, and its events have no ids.
func TestNotResumable(t *testing.T) {
	m := joined(t, Config{})
	m.expect("no stream", &msg.Notify{Frame: []byte("e1")})
	m.expect("open", &msg.StreamOpened{Stream: &stream{"ws"}}, "slot <- stream open=true")
	m.expect("live", &msg.Notify{Frame: []byte("e2")}, "ws: 0 e2")
}

// credit is of one frame of a client.
type credit struct{}

func (credit) Give() { panic("a core must not give credits back") }

// A frame's credit is given back, first of all, whatever comes of the frame.
func TestCredits(t *testing.T) {
	m := joined(t, Config{})
	f := m.frame(&sink{"x"}, `{"id":null,"method":"n"}`)
	f.Credit = credit{}
	m.expect("a refused frame", f, "credit", "x: refused -32600 The id of a request must be a string or a number; leave it out to send a notification")
	b := &msg.ClientBatch{Array: m.frame(&sink{"x"}, "[]").Frame, Sink: &sink{"b"}, Credit: credit{}}
	m.expect("a refused batch", b, "credit", "b: refused -32600 JSON-RPC batching is not supported")
}

// Bar 2 of the bounds: list_changed and updated are coalesced while nobody has
// taken them; what a stream has taken stays in the history.
func TestCoalescing(t *testing.T) {
	m := joined(t, Config{Resumable: true})
	notify := func(frame, key string) *msg.Notify {
		return &msg.Notify{Frame: []byte(frame), Class: mcp.Coalesced, Key: key}
	}
	m.step(notify("tools 1", "tools"))
	m.step(notify("prompts 1", "prompts"))
	m.step(notify("tools 2", "tools"))
	m.expect("open", &msg.StreamOpened{Stream: &stream{"get"}}, "slot <- stream open=true", "get: 2 prompts 1", "get: 3 tools 2")
	m.expect("live", notify("tools 3", "tools"), "get: 4 tools 3")
	m.expect("resume", &msg.StreamOpened{Stream: &stream{"again"}, Resume: true, LastEvent: 1}, "get: end", "slot <- stream open=true",
		"again: 2 prompts 1", "again: 3 tools 2", "again: 4 tools 3")
}

// F-35: the history is bounded in events and in bytes, and always holds the
// newest event.
func TestHistoryBounds(t *testing.T) {
	for _, c := range []struct {
		name       string
		size, sent int
		first      uint64
		kept       int
	}{
		{"few", 10, 5, 1, 5},
		{"events", 1, HistoryEvents + 7, 8, HistoryEvents},
		{"bytes", HistoryBytes / 4, 6, 3, 4},
		{"one too large", HistoryBytes + 1, 3, 3, 1},
	} {
		var h history
		for range c.sent {
			h.add(make([]byte, c.size), mcp.Required, "")
		}
		kept := h.after(0)
		if len(kept) != c.kept || kept[0].id != c.first || h.bytes != c.kept*c.size {
			t.Errorf("%s: %d events from %d, %d bytes; want %d from %d", c.name, len(kept), kept[0].id, h.bytes, c.kept, c.first)
		}
	}
}

// Progress goes with its call where the transport can carry it, whatever else is
// open, so that it cannot come behind the answer; else to the stream, else into
// the history; of an ended call nowhere.
func TestProgressRoutes(t *testing.T) {
	m := joined(t, Config{Resumable: true})
	m.step(m.frame(&sink{"streaming"}, ask))
	m.step(m.frame(&sink{"plain"}, `{"id":2,"method":"m"}`))
	progress := func(call uint64, frame string) *msg.CallProgress {
		return &msg.CallProgress{Call: call, Frame: []byte(frame)}
	}
	m.expect("a transport that streams", progress(1, "p1"), "streaming: event p1")
	m.expect("one that does not", progress(2, "p2"))
	m.expect("open", &msg.StreamOpened{Stream: &stream{"get"}}, "slot <- stream open=true", "get: 1 p2")
	m.expect("the call keeps its own", progress(1, "p3"), "streaming: event p3")
	m.expect("the stream has the rest", progress(2, "p5"), "get: 2 p5")
	m.step(&msg.CallReply{Call: 1, Frame: []byte("R")})
	m.expect("behind the answer", progress(1, "p4"))
}

// Spec 01 5.4: the end tells every request in flight once, the stream, and the
// slot; what comes later changes nothing.
func TestEnd(t *testing.T) {
	m := joined(t, Config{})
	m.step(m.frame(&sink{"a"}, ask))
	done := make(chan struct{})
	m.expect("close", &msg.CloseSession{Done: done}, "a: closed", "gone", "slot <- leave s #7", "done", "stop")

	m = newMachine(t, Config{}) // not joined yet: the leave follows the join
	m.step(started{})
	m.step(m.frame(&sink{"a"}, ask))
	m.expect("close", &msg.CloseSession{}, "a: closed", "gone", "registry <- leave s #7", "stop")

	m = joined(t, Config{})
	m.expect("made room", &msg.EndSession{Why: "maxSessionsPerSlot"}, "gone", "slot <- leave s #7", "stop")
}

// F-32: an unused session ends with its idle time; use, a stream and a call put
// it off; without an idle time there is no timer.
func TestIdle(t *testing.T) {
	const idle = time.Minute
	due := &msg.IdleDue{}
	m := newMachine(t, Config{IdleTimeout: idle})
	m.expect("start", started{}, "registry <- join s #7", "idle in 1m0s")
	m.step(&msg.SlotJoined{Ref: &ref{"slot"}})
	m.now = epoch.Add(20 * time.Second)
	m.step(m.frame(&sink{"n"}, `{"method":"n"}`))
	m.now = epoch.Add(idle)
	m.expect("used since", due, "idle in 20s")
	m.step(m.frame(&sink{"a"}, ask))
	m.now = epoch.Add(10 * idle)
	m.expect("a call in flight", due, "idle in 1m0s")
	m.step(&msg.CallReply{Call: 1, Frame: []byte("R")})
	get := &stream{"get"}
	m.step(&msg.StreamOpened{Stream: get})
	m.now = epoch.Add(20 * idle)
	m.expect("a stream", due, "idle in 1m0s")
	m.step(&msg.StreamGone{Stream: get})
	m.now = epoch.Add(21 * idle)
	m.expect("unused", due, "gone", "slot <- leave s #7", "stop")

	m = newMachine(t, Config{})
	m.expect("no idle time", started{}, "registry <- join s #7")
}

// Design decision 7, row 67: a batch belongs to revision 2025-03-26 alone.
func TestBatches(t *testing.T) {
	batch := func(m *machine, body string) *msg.ClientBatch {
		return &msg.ClientBatch{Array: m.frame(&sink{"x"}, body).Frame, Sink: &sink{"b"}}
	}
	initialize := func(m *machine, version string) {
		m.step(m.frame(&sink{"i"}, `{"id":0,"method":"initialize"}`))
		m.step(&msg.CallReply{Call: 1, Frame: []byte(`{"id":0,"result":{"protocolVersion":"` + version + `"}}`)})
	}
	for _, version := range []string{"2024-11-05", "2025-06-18", "2025-11-25", ""} {
		m := joined(t, Config{})
		initialize(m, version)
		m.expect(version, batch(m, "["+ask+"]"), "b: refused -32600 JSON-RPC batching is not supported")
	}
	m := joined(t, Config{})
	initialize(m, "2025-03-26")
	b := batch(m, `[{"id":1,"method":"m","params":[]},{"method":"n"},{"id":2,"method":"m","params":[]}]`)
	m.expect("split", b, `slot <- call 2 {"id":1,"method":"m","params":[]} trace=`, `slot <- note {"method":"n"}`, `slot <- call 3 {"id":2,"method":"m","params":[]} trace=`)
	m.expect("the first answer", &msg.CallReply{Call: 3, Frame: []byte("3")})
	m.expect("the last answer", &msg.CallReply{Call: 2, Frame: []byte("2")}, "b: reply [3,2]")
	b = batch(m, "["+ask+`,{"id":2,"method":"m"}]`)
	m.step(b)
	left := m.step(&msg.SinkGone{Sink: b.Sink})
	if len(left) != 2 || !strings.HasPrefix(left[0], "slot <- caller left") || !strings.HasPrefix(left[1], "slot <- caller left") {
		t.Errorf("the batch's client has gone: %q", left)
	}
	b = batch(m, "["+ask+`,{"id":2,"method":"m"}]`)
	m.step(b)
	m.expect("close", &msg.CloseSession{}, "b: closed", "gone", "slot <- leave s #7", "stop")
}
