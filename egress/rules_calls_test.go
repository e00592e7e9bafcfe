package egress_test

import (
	"fmt"
	"strings"

	"mcpbroker/actors/msg"
	"mcpbroker/brokertest"
)

func transcript(w *world) {
	c := w.client()
	c.Send(`{"jsonrpc":"2.0","id":5,"method":"tools/list"}`)
	w.is("B>P", stable(w.p.Receive()), `{"jsonrpc":"2.0","id":"brk-2","method":"tools/list","params":{"_meta":{"traceparent":"$TRACE"}}}`)
	w.p.Send(`{"jsonrpc":"2.0","id":"brk-2","result":{"tools":[]}}`)
	w.is("B>C", c.Receive(), `{"jsonrpc":"2.0","id":5,"result":{"tools":[]}}`)
	w.quiet(c)
}

func providerLoss(w *world) {
	c := w.client()
	w.ask(c, `5`)
	w.ask(c, `"z"`)
	w.p.Close(1000, "")
	got := pairOf(c)
	w.is("number", got[1], failed(`5`, -32000, `Provider \"s\" disconnected`))
	w.is("string", got[0], failed(`"z"`, -32000, `Provider \"s\" disconnected`))
	w.b.WaitSlot(w, "s", func(i msg.SlotInfo) bool { return !i.Connected && i.PendingCount == 0 })
	c.Send(`{"jsonrpc":"2.0","id":6,"method":"m"}`)
	w.is("afterwards", c.Receive(), failed(`6`, -32000, `Provider \"s\" not connected`+w.via.advice))
}

// F-20, F-23: only a request is answered.
func notConnected(w *world) {
	c := w.client()
	c.Send(`{"jsonrpc":"2.0","method":"notifications/x"}`)
	c.Send(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	for _, id := range []string{`5`, `"z"`, `12345678901234567890`} {
		c.Send(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call"}`)
		w.is("call", c.Receive(), failed(id, -32000, `Provider \"s\" not connected`+w.via.advice))
	}
	c.Send(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"file:///a"}}`)
	w.is("subscribe", c.Receive(), failed(`1`, -32000, `Provider \"s\" not connected`+w.via.advice))
	w.b.Pending(w, "s", 0)
}

// The provider comes last, so that only the call can miss the deadline.
func deadline(w *world) {
	c := w.client()
	w.p = w.b.Dedicated(w, "s")
	c.Send(`{"jsonrpc":"2.0","id":"slow","method":"m"}`)
	request := w.p.Receive()
	for ; !strings.Contains(request, `"method":"m"`); request = w.p.Receive() { // F-25
		if strings.Contains(request, `"method":"initialize"`) {
			w.answer(request, `{}`)
		}
	}
	w.is("answer", c.Receive(), failed(`"slow"`, -32000,
		`Provider \"s\" did not respond within 500ms. Raise providerRequestTimeoutMs for slow tools, or call broker_diagnose on the _broker slot to see what the provider is doing.`))
	got := w.p.Receive()
	if want := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + brokertest.ID(request) + `,`; !strings.HasPrefix(got, want) {
		w.Errorf("the provider got %s", got)
	}
	w.b.Pending(w, "s", 0)
	w.answer(request, `"too late"`)
	w.quiet(c)
}

func callerLeaves(w *world) {
	c, bystander := w.client(), w.client()
	request := w.ask(c, `1`)
	other := w.ask(bystander, `1`)
	c.Leave()
	w.is("F-45", w.p.Receive(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+brokertest.ID(request)+`,"reason":"The caller no longer waits for the answer"}}`)
	w.b.Sessions(w, "s", 1)
	w.b.Pending(w, "s", 1)
	w.answer(request, `"too late"`)
	w.answer(other, `"mine"`)
	w.is("another client", bystander.Receive(), `{"jsonrpc":"2.0","id":1,"result":"mine"}`)
	w.quiet(bystander)
	if lines := w.b.Log.Lines("matches no request"); len(lines) != 0 {
		w.Errorf("F-24: %q", lines)
	}
}

func batches(w *world) {
	c := w.client()
	for _, batch := range []string{
		`[]`, `[1]`, `[{"jsonrpc":"2.0","method":"n"}]`, `[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":2,"method":"b"}]`,
	} {
		c.Send(batch)
		w.is(batch, c.Receive(), failed(`null`, -32600, `JSON-RPC batching is not supported`))
	}
	c.Send(`{"method":"marker"}`)
	w.is("the first frame to the provider", w.p.Receive(), `{"method":"marker"}`)
	w.quiet(c)
}

// Design decision 7: in this revision a batch is split, tracked, and answered as
// one array.
func batchesOf20250326(w *world) {
	c := w.clientWith(`{}`, `{"protocolVersion":"2025-03-26","capabilities":{}}`)
	c.Send(`[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","method":"n"},{"jsonrpc":"2.0","id":"2","method":"b"},7]`)
	a, n, b := w.p.Receive(), w.p.Receive(), w.p.Receive()
	w.is("notification", n, `{"jsonrpc":"2.0","method":"n"}`)
	w.answer(b, `"b"`)
	w.answer(a, `"a"`)
	w.is("the array", c.Receive(), `[`+failed(`null`, -32600, `Body is not a JSON-RPC message`)+
		`,{"jsonrpc":"2.0","id":"2","result":"b"},{"jsonrpc":"2.0","id":1,"result":"a"}]`)
	c.Send(`[]`)
	w.is("empty", c.Receive(), failed(`null`, -32600, `Body is not a JSON-RPC message`))
	w.quiet(c)
}

// junk also goes to a multiplexed provider, where wrapping needs valid JSON.
func junk(w *world) {
	c := w.client()
	for _, test := range []struct{ frame, detail string }{
		{`{`, "expected a string at byte 1"},
		{`junk`, "unexpected character at byte 0"},
		{`{"jsonrpc":"2.0","id":1,"method":"m"`, "unexpected end at byte 36"},
		{`{"a":1}}`, "text after the message at byte 7"},
	} {
		text := w.via.junk
		if text == "" {
			text = "Parse error: the message is not valid JSON: " + test.detail
		}
		c.Send(test.frame)
		w.is(test.frame, c.Receive(), failed(`null`, -32700, text))
	}
	for _, scalar := range []string{`7`, `"x"`, `null`, `true`, `{}`, `{"jsonrpc":"2.0"}`} {
		c.Send(scalar)
		w.is(scalar, c.Receive(), failed(`null`, -32600, `Body is not a JSON-RPC message`))
	}
	c.Send(`{"jsonrpc":"2.0","id":1,"method":"m","method":"n"}`)
	w.is("duplicate member", c.Receive(), failed(`null`, -32600, `Body is not a JSON-RPC message: duplicate member \"method\"`))
	deep := `{"method":"m","params":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`
	c.Send(deep)
	w.is("depth", c.Receive(), failed(`null`, -32600, `Body is not a JSON-RPC message: nested deeper than 128 levels`))

	c.Send(`{"method":"marker"}`)
	w.is("the first frame to the provider", w.p.Receive(), `{"method":"marker"}`)
	w.quiet(c)
}

func nullID(w *world) {
	c := w.client()
	for _, id := range []string{`null`, `true`, `{}`, `[1]`} {
		c.Send(`{"jsonrpc":"2.0","id":` + id + `,"method":"m"}`)
		w.is(id, c.Receive(), failed(`null`, -32600, `The id of a request must be a string or a number; leave it out to send a notification`))
	}
	c.Send(`{"method":"marker"}`)
	w.is("the first frame to the provider", w.p.Receive(), `{"method":"marker"}`)
	w.quiet(c)
}

// Section 9 item 5.
func sameIDTwice(w *world) {
	a, b := w.client(), w.client()
	first, second := w.ask(a, `1`), w.ask(b, `1`)
	if brokertest.ID(first) == brokertest.ID(second) {
		w.Errorf("the provider saw one id: %s, %s", first, second)
	}
	w.answer(second, `"b"`)
	w.answer(first, `"a"`)
	w.is("a", a.Receive(), `{"jsonrpc":"2.0","id":1,"result":"a"}`)
	w.is("b", b.Receive(), `{"jsonrpc":"2.0","id":1,"result":"b"}`)
	w.quiet(a, b)
}

// F-34: the second is refused, the first not disturbed; 1 and "1" are two ids.
func duplicateID(w *world) {
	c := w.client()
	first := w.ask(c, `1`)
	c.Send(`{"jsonrpc":"2.0","id":1,"method":"again"}`)
	w.is("second", c.Receive(), failed(`1`, -32600, `A request with id 1 is already in flight in this session; use another id`))
	text := w.ask(c, `"1"`)
	w.answer(text, `"text"`)
	w.is("the string", c.Receive(), `{"jsonrpc":"2.0","id":"1","result":"text"}`)
	w.answer(first, `"first"`)
	w.is("first", c.Receive(), `{"jsonrpc":"2.0","id":1,"result":"first"}`)
	w.answer(w.ask(c, `1`), `"free"`)
	w.is("the id is free again", c.Receive(), `{"jsonrpc":"2.0","id":1,"result":"free"}`)
}

func outOfOrder(w *world) {
	c := w.client()
	var requests []string
	for i := range 10 {
		requests = append(requests, w.ask(c, fmt.Sprint(i)))
	}
	for i := 9; i >= 0; i-- {
		w.answer(requests[i], fmt.Sprint(i*i))
		w.is("answer", c.Receive(), fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%d}`, i, i*i))
	}
}

func pendingBounds(w *world) {
	c, d := w.client(), w.client()
	one := w.ask(c, `1`)
	w.ask(c, `2`)
	c.Send(`{"jsonrpc":"2.0","id":3,"method":"m"}`)
	w.is("a third of one session", c.Receive(), failed(`3`, -32000, `This session has 2 requests in flight, the most it may have (maxPendingPerSession); wait for an answer before sending more`))
	w.ask(d, `1`)
	d.Send(`{"jsonrpc":"2.0","id":2,"method":"m"}`)
	w.is("a fourth of the slot", d.Receive(), failed(`2`, -32000, `Slot \"s\" has 3 requests waiting, the most it may have (maxPendingPerSlot); send the request again later`))
	w.answer(one, `{}`)
	w.is("one", c.Receive(), `{"jsonrpc":"2.0","id":1,"result":{}}`)
	w.answer(w.ask(d, `3`), `{}`)
	w.is("with room again", d.Receive(), `{"jsonrpc":"2.0","id":3,"result":{}}`)
}

// A client that streams is never pushed out by a newcomer.
func sessionBound(w *world) {
	a, b := w.client(), w.client()
	w.quiet(a, b) // the slot knows that both stream
	c := w.via.dial(w, w.b, "s")
	c.Send(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`)
	const full = `Slot \"s\" has 2 sessions, the most it may have (maxSessionsPerSlot), and all have a stream open`
	w.is("the third", c.Receive(), failed(`1`, -32000, full))
	w.quiet(a, b)
	b.Leave()
	w.b.Sessions(w, "s", 1)
	c.Send(`{"jsonrpc":"2.0","id":2,"method":"m"}`)
	w.answer(w.p.Receive(), `{}`)
	w.is("with room again", c.Receive(), `{"jsonrpc":"2.0","id":2,"result":{}}`)
}

func providerErrors(w *world) {
	c := w.client()
	for _, outcome := range []string{
		`"result":{"isError":true,"content":[]}`,
		`"error":{"code":-32602,"message":"bad","data":{"x":1}}`,
		`"error":{"code":1,"message":""}`,
		`"result":null`,
	} {
		w.p.Send(`{"jsonrpc":"2.0","id":` + brokertest.ID(w.ask(c, `1`)) + `,` + outcome + `}`)
		w.is(outcome, c.Receive(), `{"jsonrpc":"2.0","id":1,`+outcome+`}`)
	}
}

// Design decision 4: the provider sees one initialize, however many clients come.
func cachedInitialize(w *world) {
	for range 5 {
		w.client()
	}
	c := w.client()
	w.is("the provider's next frame", stable(w.ask(c, `1`)), `{"jsonrpc":"2.0","id":"brk-2","method":"m","params":{"_meta":{"traceparent":"$TRACE"}}}`)
}
