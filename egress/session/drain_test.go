package session

import (
	"testing"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// Spec 01 5.12: a draining session takes no new request, whatever its form, and
// ends behind the last answer it owes; a failure is one.
func TestDrain(t *testing.T) {
	m := joined(t, Config{})
	m.expect("nothing owed", &Drain{}, "gone", "slot <- leave s #7", "stop")

	m = joined(t, Config{Answers: true})
	m.expect("open", &msg.StreamOpened{Stream: &stream{"ws"}}, "slot <- stream open=true")
	m.step(m.frame(&sink{"a"}, ask))
	m.step(m.frame(&sink{"b"}, `{"id":2,"method":"m"}`))
	m.expect("two owed", &Drain{})
	const refused = `{"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"Session closed"}}`
	m.expect("a new request", m.frame(&sink{"c"}, `{"id":3,"method":"m"}`), "c: reply "+refused)
	m.s.revision = "2025-03-26"
	m.expect("in a batch", &msg.ClientBatch{Array: m.frame(&sink{"x"}, `[{"id":3,"method":"m"}]`).Frame, Sink: &sink{"d"}}, "d: reply ["+refused+"]")
	m.expect("a note", m.frame(&sink{"n"}, `{"method":"n"}`), `slot <- note {"method":"n"}`, "n: accepted")
	m.expect("a question", clientAsk(1), "ws: 0 ASK")
	m.expect("its answer", m.frame(&sink{"x"}, `{"id":"brk-9","result":{}}`), `slot <- answer of #7 {"id":"brk-9","result":{}}`, "x: accepted")
	m.expect("a broadcast", &msg.Notify{Frame: []byte("e"), Class: mcp.Required}, "ws: 0 e")
	m.expect("an answer", &msg.CallReply{Call: 2, Frame: []byte("2")}, "b: reply 2")
	m.expect("asked again", &Drain{})
	m.expect("the last one", &msg.CallFailed{Call: 1, Err: wire.Disconnected("s")},
		`a: reply {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Provider \"s\" disconnected"}}`, "ws: end", "gone", "slot <- leave s #7", "stop")
}

// A call that its client has cancelled, or broken off, is not waited for: the
// provider need not answer it.
func TestDrainCancelled(t *testing.T) {
	m := joined(t, Config{})
	first := &sink{"a"}
	m.step(m.frame(first, ask))
	m.step(m.frame(&sink{"b"}, `{"id":2,"method":"m"}`))
	m.step(m.frame(&sink{"c"}, `{"id":"2","method":"m"}`))
	const cancel = `{"method":"notifications/cancelled","params":{"requestId":2}}`
	m.expect("cancelled before", m.frame(&sink{"n"}, cancel), "slot <- note "+cancel, "n: accepted")
	const nothing = `{"method":"notifications/cancelled"}`
	m.expect("of nothing", m.frame(&sink{"n"}, nothing), "slot <- note "+nothing, "n: accepted")
	m.expect("two owed", &Drain{})
	m.expect("broken off", &msg.SinkGone{Sink: first}, "slot <- caller left 1")
	const other = `{"method":"notifications/cancelled","params":{"requestId":"2"}}`
	m.expect("cancelled meanwhile", m.frame(&sink{"n"}, other), "slot <- note "+other, "n: accepted",
		"b: closed", "c: closed", "gone", "slot <- leave s #7", "stop")
}

// F-37: what waits for the slot is handed over first.
func TestDrainBeforeJoin(t *testing.T) {
	m := newMachine(t, Config{})
	m.step(started{})
	m.step(m.frame(&sink{"n"}, `{"method":"n"}`))
	m.expect("drain", &Drain{})
	m.expect("joined", &msg.SlotJoined{Ref: &ref{"slot"}}, `slot <- note {"method":"n"}`, "gone", "slot <- leave s #7", "stop")

	m = newMachine(t, Config{})
	m.step(started{})
	m.step(m.frame(&sink{"a"}, ask))
	m.step(&Drain{})
	m.expect("refused", &msg.JoinRefused{Err: wire.NotConnected("s")},
		`a: reply {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Provider \"s\" not connected"}}`, "gone", "stop")
}
