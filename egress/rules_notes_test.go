package egress_test

import (
	"fmt"
	"strings"

	"mcpbroker/brokertest"
)

func broadcasts(w *world) {
	clients := []caller{w.client(), w.client(), w.client()}
	bystander := w.via.dial(w, w.b, "other")
	for _, note := range []string{
		`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`,
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"x":1,"method":"custom","jsonrpc":"2.0"}`,
	} {
		w.p.Send(note)
		for _, c := range clients {
			w.is("broadcast", c.Receive(), note)
		}
	}
	bystander.Send(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`)
	w.is("the other slot's first message", bystander.Receive(), failed(`1`, -32000, `Provider \"other\" not connected`+w.via.advice))
	clients[0].Leave()
	w.b.Sessions(w, "s", 2)
	w.quiet(clients[1:]...)
}

func clientNotifications(w *world) {
	c := w.client()
	for _, note := range []string{
		`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`,
		`{"x":1,"method":"custom","params":[1, 2],"jsonrpc":"2.0"}`,
	} {
		c.Send(note)
		w.is("to the provider", w.p.Receive(), note)
	}
	w.quiet(c)
}

func clientResponses(w *world) {
	c := w.client()
	pending := w.ask(c, `1`)
	for _, response := range []string{
		`{"jsonrpc":"2.0","id":` + brokertest.ID(pending) + `,"result":"forged"}`,
		`{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"m"}}`,
	} {
		c.Send(response)
	}
	c.Send(`{"method":"marker"}`)
	w.is("the next frame to the provider", w.p.Receive(), `{"method":"marker"}`)
	w.answer(pending, `{}`)
	w.is("the call", c.Receive(), `{"jsonrpc":"2.0","id":1,"result":{}}`)
	w.quiet(c)
}

// Spec 01 4.7: what a provider sends and no client sees.
func notForClients(w *world) {
	c := w.client()
	for _, frame := range []string{
		`junk`, `null`, `7`, `[{"method":"n"}]`, `{"id":null,"error":{"code":1,"message":"m"}}`, `{"id":null,"method":"n"}`,
		`{"jsonrpc":"2.0","id":"brk-999","result":{}}`, `{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","method":"broker/telemetry","params":{}}`, `{"jsonrpc":"2.0","method":"broker/other"}`,
		`{"jsonrpc":"2.0","method":"notifications/register","params":{"aggregate":true}}`, `{"type":"register","aggregate":true}`,
		`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///a"}}`,
		`{"jsonrpc":"2.0","method":"notifications/resources/updated"}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`,
	} {
		w.p.Send(frame)
	}
	w.quiet(c)
}

const progress = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":%d,"progressToken":%s,"x":1.0}}`

func tokenOf(request string) string {
	_, rest, _ := strings.Cut(request, `"progressToken":`)
	return rest[:strings.IndexAny(rest, ",}")]
}

// Row 43: the owner sees its own token, type and all; nobody else sees anything.
func progressIsPrivate(w *world) {
	c, other := w.client(), w.client()
	for _, token := range []string{`"p"`, `0`, `7`, `12345678901234567890`} {
		call := `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"progressToken":` + token + `}}}`
		c.Send(call)
		mine := w.p.Receive()
		other.Send(call)
		theirs := w.p.Receive()
		if tokenOf(mine) == tokenOf(theirs) {
			w.Fatalf("one token for two calls: %s", tokenOf(mine))
		}
		for n := range 5 {
			w.p.Send(fmt.Sprintf(progress, n, tokenOf(mine)))
			w.is("progress", c.Receive(), fmt.Sprintf(progress, n, token))
		}
		w.answer(mine, `{}`)
		w.is("answer", c.Receive(), `{"jsonrpc":"2.0","id":1,"result":{}}`)
		w.p.Send(fmt.Sprintf(progress, 9, tokenOf(mine))) // of nobody any more
		w.answer(theirs, `{}`)
		w.is("the other's answer", other.Receive(), `{"jsonrpc":"2.0","id":1,"result":{}}`)
		w.quiet(c, other)
	}
}

// Row 41.
func cancellationIsPrivate(w *world) {
	c, other := w.client(), w.client()
	const cancel = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"r","requestId":%s,"x":1.0}}`
	for _, id := range []string{`1`, `"1"`, `"brk-1"`} {
		request := w.ask(c, id)
		for _, foreign := range []string{id, brokertest.ID(request), `"unknown"`} {
			other.Send(fmt.Sprintf(cancel, foreign))
		}
		c.Send(fmt.Sprintf(cancel, brokertest.ID(request)))
		c.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled"}`)
		other.Send(`{"method":"fence"}`)
		w.is("the fence", w.p.Receive(), `{"method":"fence"}`)
		c.Send(fmt.Sprintf(cancel, id))
		w.is("to the provider", w.p.Receive(), fmt.Sprintf(cancel, brokertest.ID(request)))
		w.answer(request, `"too late"`)
		w.is("an answer that was on its way", c.Receive(), `{"jsonrpc":"2.0","id":`+id+`,"result":"too late"}`)
	}
	w.quiet(c, other)
}

func subscription(method, id, uri string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"resources/` + method + `","params":{"uri":"` + uri + `"}}`
}

// Section 9 items 35 to 37 and 39, F-47: one subscription upstream for all
// clients, updates for subscribers only, released with the last of them.
func subscriptions(w *world) {
	a, b, bystander := w.client(), w.client(), w.client()
	const done = `{"jsonrpc":"2.0","id":1,"result":{}}`
	update := `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///a","x":1}}`

	a.Send(strings.Replace(subscription("subscribe", "1", "file:///a"), "resources/", `resources\/`, 1))
	request := w.p.Receive()
	w.is("upstream", request, `{"jsonrpc":"2.0","id":`+brokertest.ID(request)+`,"method":"resources/subscribe","params":{"uri":"file:///a"}}`)
	w.answer(request, `{}`)
	w.is("first", a.Receive(), done)
	b.Send(subscription("subscribe", "1", "file:///a"))
	w.is("second", b.Receive(), done)
	w.p.Send(update)
	w.is("first", a.Receive(), update)
	w.is("second", b.Receive(), update)
	w.quiet(a, b, bystander)

	a.Send(subscription("unsubscribe", "1", "file:///a"))
	w.is("one leaves", a.Receive(), done)
	w.p.Send(update)
	w.is("who stays", b.Receive(), update)
	w.quiet(a, b, bystander)
	b.Leave()
	request = w.p.Receive()
	w.is("the last has left", request, `{"jsonrpc":"2.0","id":`+brokertest.ID(request)+`,"method":"resources/unsubscribe","params":{"uri":"file:///a"}}`)
	w.answer(request, `{}`)
	w.p.Send(update)
	w.quiet(a, bystander)
}

// Section 9 items 38 and 41.
func subscriptionErrors(w *world) {
	a, b, c := w.client(), w.client(), w.client()
	for _, params := range []string{``, `,"params":{}`, `,"params":{"uri":1}`, `,"params":{"uri":""}`, `,"params":["x"]`} {
		a.Send(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe"` + params + `}`)
		w.is(params, a.Receive(), failed(`1`, -32602, `Missing required parameter: uri`))
	}
	a.Send(subscription("subscribe", "1", "file:////a"))
	w.is("too long", a.Receive(), failed(`1`, -32602, `The uri is 10 characters long, more than the 8 it may have (maxResourceUriLength)`))
	a.Send(subscription("subscribe", "1", "x:no"))
	w.p.Send(`{"jsonrpc":"2.0","id":` + brokertest.ID(w.p.Receive()) + `,"error":{"code":-32002,"message":"no such","data":1}}`)
	w.is("refused by the provider", a.Receive(), `{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"no such","data":1}}`)
	for i, subscriber := range []caller{a, b} {
		subscriber.Send(subscription("subscribe", "1", fmt.Sprintf("x:%d", i)))
		w.answer(w.p.Receive(), `{}`)
		w.is("subscribed", subscriber.Receive(), `{"jsonrpc":"2.0","id":1,"result":{}}`)
	}
	a.Send(subscription("subscribe", "1", "x:2"))
	w.is("per client", a.Receive(), failed(`1`, -32000, `Subscription limit reached: maxSubscriptionsPerClient is 1; unsubscribe from something first`))
	c.Send(subscription("subscribe", "1", "x:2"))
	w.is("per slot", c.Receive(), failed(`1`, -32000, `Subscription limit reached: maxSubscriptionsPerSlot is 2; unsubscribe from something first`))
	c.Send(subscription("unsubscribe", "1", "x:never"))
	w.is("of what was never held", c.Receive(), `{"jsonrpc":"2.0","id":1,"result":{}}`)
	w.quiet(a, b, c)
}

// Section 9 item 47: answered to the provider at once, never shown to clients.
func providerRequests(w *world) {
	c := w.client()
	call := w.ask(c, `1`)
	for _, id := range []string{`7`, `"r-1"`} {
		w.p.Send(`{"jsonrpc":"2.0","id":` + id + `,"method":"sampling/createMessage","params":{}}`)
		w.is("refused", w.p.Receive(), failed(id, -32601, `Method not found: the broker does not relay requests opened by a provider (sampling/createMessage)`))
		w.p.Send(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`)
		w.is("ping", w.p.Receive(), `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`)
	}
	w.answer(call, `{}`)
	w.is("the call", c.Receive(), `{"jsonrpc":"2.0","id":1,"result":{}}`)
	w.quiet(c)
}

// Design decision 5, rows 46 and 47: the client whose call is in flight is asked
// under the broker's id, and only its own answer counts.
func relayedRequests(w *world) {
	c := w.clientWith(`{"sampling":{},"elicitation":{},"roots":{}}`, brokertest.ServerResult)
	other := w.clientWith(`{"sampling":{}}`, brokertest.ServerResult)
	for _, method := range []string{"sampling/createMessage", "elicitation/create", "roots/list"} {
		call := w.ask(c, `1`)
		w.p.Send(`{"jsonrpc":"2.0","id":"r-1","method":"` + method + `","params":{"x":1.0}}`)
		question := c.Receive()
		id := brokertest.ID(question)
		w.is("question", question, `{"jsonrpc":"2.0","id":`+id+`,"method":"`+method+`","params":{"x":1.0}}`)
		other.Send(`{"jsonrpc":"2.0","id":` + id + `,"result":"forged"}`)
		c.Send(`{"jsonrpc":"2.0","id":` + id + `,"result":{"x":2.0}}`)
		w.is("answer", w.p.Receive(), `{"jsonrpc":"2.0","id":"r-1","result":{"x":2.0}}`)
		w.answer(call, `{}`)
		w.is("the call", c.Receive(), `{"jsonrpc":"2.0","id":1,"result":{}}`)
	}
	w.quiet(c, other)
}

func relayedToNobody(w *world) {
	able, unable := w.clientWith(`{"sampling":{}}`, brokertest.ServerResult), w.client()
	question := func(method, want string) {
		w.Helper()
		w.p.Send(`{"jsonrpc":"2.0","id":7,"method":"` + method + `"}`)
		w.is("the provider", w.p.Receive(), failed(`7`, -32601, want))
	}
	question("sampling/createMessage", `No client can be asked (sampling/createMessage): a request is relayed only to the client whose call is in flight, on a stream it has open`)
	second := w.ask(unable, `1`)
	question("sampling/createMessage", `Method not found: the client did not declare the capability for sampling/createMessage`)
	first := w.ask(able, `1`)
	question("sampling/createMessage", `No client can be asked (sampling/createMessage): calls of several clients are in flight, and the request does not say which it belongs to`)
	question("tools/list", `Method not found: the broker does not relay requests opened by a provider (tools/list)`)
	w.answer(first, `{}`)
	w.answer(second, `{}`)
	for _, c := range []caller{able, unable} {
		w.is("the call", c.Receive(), `{"jsonrpc":"2.0","id":1,"result":{}}`)
	}
	w.quiet(able, unable)
}
