package session

import (
	"testing"

	"mcpbroker/actors/msg"
)

// clientAsk is a request of the provider about a call, under id brk-9.
func clientAsk(call uint64) *msg.ClientAsk {
	return &msg.ClientAsk{Call: call, ID: 9, Frame: []byte("ASK")}
}

// Design decision 5, spec 07 row 46: a request of the provider travels on the
// stream of the call it belongs to, whatever other stream is open; without one on
// the session's own; without any the slot is told at once.
func TestAskRoutes(t *testing.T) {
	m := joined(t, Config{Resumable: true, Answers: true})
	m.step(m.frame(&sink{"streaming"}, ask))
	m.step(m.frame(&sink{"plain"}, `{"id":2,"method":"m"}`))
	m.expect("on the call's stream", clientAsk(1), "streaming: event ASK")
	m.expect("no stream at all", clientAsk(2), "slot <- undeliverable to #7: brk-9")
	m.expect("a stream of its own", &msg.StreamOpened{Stream: &stream{"get"}}, "slot <- stream open=true")
	m.expect("not on the idle stream", clientAsk(1), "streaming: event ASK")
	m.expect("on the session's stream", clientAsk(2), "get: 1 ASK")
	m.expect("withdrawn", &msg.AskCancelled{Call: 1, Frame: []byte("CANCEL")}, "streaming: event CANCEL")
	m.expect("withdrawn", &msg.AskCancelled{Call: 2, Frame: []byte("CANCEL")}, "get: 2 CANCEL")
}

// A question crosses the end of its call on its way: it is not put to the client.
// The end of one that was put does reach it, if there is a stream.
func TestAskAboutEndedCall(t *testing.T) {
	m := joined(t, Config{Answers: true})
	m.expect("open", &msg.StreamOpened{Stream: &stream{"ws"}}, "slot <- stream open=true")
	a := &sink{"a"}
	m.step(m.frame(a, ask))
	m.expect("asked", clientAsk(1), "ws: 0 ASK")
	m.expect("its caller leaves", &msg.SinkGone{Sink: a}, "slot <- caller left 1")
	m.expect("asked again", clientAsk(1), "slot <- undeliverable to #7: brk-9")
	m.expect("withdrawn", &msg.AskCancelled{Call: 1, Frame: []byte("CANCEL")}, "ws: 0 CANCEL")
	m.step(&msg.SlotLost{})
	m.expect("of a slot that is gone", clientAsk(1))
}

// F-20: a response goes to the slot only where the broker may have asked, and
// under an id it may have given; it is accepted in any case.
func TestAnswers(t *testing.T) {
	const answer = `{"id":"brk-9","result":{"x":1.0}}`
	m := joined(t, Config{Answers: true})
	m.expect("an answer", m.frame(&sink{"x"}, answer), "slot <- answer of #7 "+answer, "x: accepted")
	m.expect("an error", m.frame(&sink{"x"}, `{"id":"brk-9","error":{}}`), `slot <- answer of #7 {"id":"brk-9","error":{}}`, "x: accepted")
	for _, other := range []string{`{"id":9,"result":{}}`, `{"id":"brk-09","result":{}}`, `{"id":"9","result":{}}`} {
		m.expect("to nobody's question", m.frame(&sink{"x"}, other), "x: accepted")
	}
	m.step(&msg.SlotLost{})
	m.expect("to a slot that is gone", m.frame(&sink{"x"}, answer), "x: accepted")

	m = joined(t, Config{})
	m.expect("nothing is ever asked", m.frame(&sink{"x"}, answer), "x: accepted")
}

// Answers may come in a batch, where the revision has batches.
func TestAnswersInBatch(t *testing.T) {
	m := joined(t, Config{Answers: true})
	m.s.revision = "2025-03-26"
	b := &msg.ClientBatch{Array: m.frame(&sink{"x"}, `[{"id":"brk-9","result":{}},{"id":3,"result":{}},{"id":"brk-10","error":{}}]`).Frame, Sink: &sink{"b"}}
	m.expect("three responses", b, "b: accepted", `slot <- answer of #7 {"id":"brk-9","result":{}}`, `slot <- answer of #7 {"id":"brk-10","error":{}}`)
}
