package aggregate_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"mcpbroker/actors/wire"
	"mcpbroker/brokertest"
	"mcpbroker/config"
)

var contextField = regexp.MustCompile(`00-[0-9a-f]{32}-[0-9a-f]{16}-01`)

func stable(frame string) string { return contextField.ReplaceAllString(frame, "$$TRACE") }

func is(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

// T9: _all answers initialize itself, and what it does not serve with -32601.
func TestEmpty(t *testing.T) {
	everywhere(t, nil, func(t *testing.T, b *brokertest.Broker, dial dialer) {
		c := dial(t, b, "_all")
		c.Send(initialize)
		is(t, "initialize", answer(t, c, `"init"`),
			`{"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"2025-06-18","serverInfo":{"name":"_all","version":"dev"},"capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":true}}}}`)
		for _, method := range []string{"resources/list", "resources/subscribe", "logging/setLevel", "x"} {
			c.Send(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"uri":"u"}}`)
			is(t, method, answer(t, c, `1`), `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found: `+method+`"}}`)
		}
		c.Send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
		is(t, "ping", answer(t, c, `2`), `{"jsonrpc":"2.0","id":2,"result":{}}`)
		c.Send(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"_broker-broker_info"}}`)
		if got := answer(t, c, `3`); !strings.Contains(got, `"isError":false`) {
			t.Errorf("broker_info through _all: %s", got)
		}
	})
}

// F-27, rows 41 and 43: metadata, progress and cancellation of a call pass
// through, and are its caller's alone.
func TestCallThroughAll(t *testing.T) {
	everywhere(t, nil, func(t *testing.T, b *brokertest.Broker, dial dialer) {
		p := member(t, b, "s")
		member(t, b, "other")
		c, bystander := open(t, b, dial, "_all"), open(t, b, dial, "_all")
		for _, token := range []string{`"p"`, `0`, `7`} {
			c.Send(`{"jsonrpc":"2.0","id":` + token + `,"method":"tools/call","params":{"arguments":{"n":1.0,"big":12345678901234567890},"name":"s-run","_meta":{"progressToken":` + token + `,"k":1}}}`)
			request := p.Receive()
			id := brokertest.ID(request)
			params := wire.Member([]byte(request), "params")
			rewritten := string(wire.Member(wire.Member(params, "_meta"), "progressToken"))
			is(t, "the call", stable(request), `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"arguments":{"n":1.0,"big":12345678901234567890},"name":"run","_meta":{"traceparent":"$TRACE","progressToken":`+rewritten+`,"k":1}}}`)
			for n := range 5 {
				p.Send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":%d,"progressToken":%s}}`, n, rewritten))
				is(t, "progress", event(c), fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":%d,"progressToken":%s}}`, n, token))
			}
			brokertest.Respond(p, request, `{"content":[],"x-unknown":1e400}`)
			is(t, "the answer", event(c), `{"jsonrpc":"2.0","id":`+token+`,"result":{"content":[],"x-unknown":1e400}}`)
		}

		c.Send(`{"jsonrpc":"2.0","id":"slow","method":"tools/call","params":{"name":"s-run"}}`)
		request := p.Receive()
		bystander.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"slow"}}`)
		c.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"slow","reason":"enough"}}`)
		is(t, "the cancellation", p.Receive(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+brokertest.ID(request)+`,"reason":"enough"}}`)
		brokertest.Respond(p, request, `{}`)
		is(t, "the cancelled call", event(c), `{"jsonrpc":"2.0","id":"slow","result":{}}`)

		bystander.Send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		is(t, "the bystander", event(bystander), `{"jsonrpc":"2.0","id":1,"result":{}}`)
	})
}

// Rows 46 and 47: what a provider asks during a call reaches its client, beside
// that very call, and the answer comes back.
func TestAskThroughAll(t *testing.T) {
	relay := func(c *config.Config) { c.ServerRequests = config.ServerRequestsRelay }
	everywhere(t, relay, func(t *testing.T, b *brokertest.Broker, dial dialer) {
		p := member(t, b, "s")
		c, bystander := open(t, b, dial, "_all"), open(t, b, dial, "_all")
		c.Send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s-run"}}`)
		request := p.Receive()
		p.Send(`{"jsonrpc":"2.0","id":77,"method":"elicitation/create","params":{"message":"sure?"}}`)
		ask := event(c)
		is(t, "the question", ask, `{"jsonrpc":"2.0","id":`+brokertest.ID(ask)+`,"method":"elicitation/create","params":{"message":"sure?"}}`)
		bystander.Send(`{"jsonrpc":"2.0","id":` + brokertest.ID(ask) + `,"result":{"action":"forged"}}`)
		c.Send(`{"jsonrpc":"2.0","id":` + brokertest.ID(ask) + `,"result":{"action":"accept"}}`)
		is(t, "the client's answer", p.Receive(), `{"jsonrpc":"2.0","id":77,"result":{"action":"accept"}}`)
		p.Send(`{"jsonrpc":"2.0","id":78,"method":"sampling/createMessage","params":{}}`)
		is(t, "what the client cannot", p.Receive(), `{"jsonrpc":"2.0","id":78,"error":{"code":-32601,"message":"Method not found: the client did not declare the capability for sampling/createMessage"}}`)
		brokertest.Respond(p, request, `{}`)
		is(t, "the call", event(c), `{"jsonrpc":"2.0","id":1,"result":{}}`)
	})
}

// F-09, F-12, spec 01 2.6: both shapes of the announcement, on each transport, at
// any time; the next provider of a slot has to ask again.
func TestMembership(t *testing.T) {
	b := start(t, nil)
	c := open(t, b, transports["ws"], "_all")
	direct := b.Dedicated(t, "direct")
	lane := b.Multiplexed(t, "lane")
	loop := b.Loopback(t, "loop")
	direct.Send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"first"}}`)
	wanted(t, c)
	direct.Send(`{"type":"register","aggregate":true}`)
	admit(t, b, direct, "direct", hasTools, oneTool)
	lane.Send(joinAll)
	admit(t, b, lane, "lane", hasTools, oneTool)
	loop.Send(joinAll)
	admit(t, b, loop, "loop", hasTools, oneTool)
	wanted(t, c, "direct-run", "lane-run", "loop-run")

	direct.Close(1000, "")
	members := wanted(t, c, "lane-run", "loop-run")
	is(t, "members", members, `{"joined":["_broker","lane","loop"],"missing":[{"slot":"direct","reason":"provider disconnected"}]}`)
	c.Send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"direct-run"}}`)
	is(t, "a call of what left", answer(t, c, `1`), `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Provider \"direct\" is no longer connected"}}`)

	stranger := b.Dedicated(t, "direct")
	wanted(t, c, "lane-run", "loop-run")
	c.Send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"direct-run"}}`)
	if got := answer(t, c, `2`); !strings.Contains(got, `"error"`) {
		t.Errorf("a call of a provider that did not join: %s", got)
	}
	stranger.Send(joinAll)
	admit(t, b, stranger, "direct", hasTools, `{"tools":[{"name":"new"}]}`)
	wanted(t, c, "lane-run", "loop-run", "direct-new")
}

// F-12: a takeover resets the membership, and a call in flight is answered.
func TestTakeover(t *testing.T) {
	b := start(t, nil)
	c := open(t, b, transports["ws"], "_all")
	p := member(t, b, "s")
	c.Send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s-run"}}`)
	p.Receive()
	p.Drop()
	is(t, "the call", answer(t, c, `1`), `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Provider \"s\" disconnected"}}`)
	wanted(t, c)
}

// F-05: nobody can serve _all but the broker.
func TestReserved(t *testing.T) {
	b := start(t, nil)
	if code, reason := brokertest.Dial(t, b.ProviderURL("_all"), nil).Closed(); code != 1008 || reason != `Provider "_all" is reserved by the broker` {
		t.Errorf("dedicated: %d %s", code, reason)
	}
	s := brokertest.Dial(t, b.ProvidersURL(), nil)
	s.Send(`{"provider":"_all","payload":{"jsonrpc":"2.0","method":"x"}}`)
	is(t, "multiplexed", s.Receive(), `{"provider":"_all","payload":{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Provider \"_all\" is reserved by the broker"}}}`)
}

// Row 49: a provider that refuses is named as missing, and its slot goes on.
func TestRefusals(t *testing.T) {
	b := start(t, nil)
	c := open(t, b, transports["ws"], "_all")
	bad := b.Dedicated(t, "bad")
	bad.Send(joinAll)
	bad.Send(`{"jsonrpc":"2.0","id":` + brokertest.ID(bad.Receive()) + `,"error":{"code":-32000,"message":"no licence"}}`)
	b.Log.Wait(t, `[broker] aggregate: provider "bad" failed its handshake and was not added to "_all"`, "no licence")
	half := b.Dedicated(t, "half")
	half.Send(joinAll)
	handshake(t, half, hasTools)
	half.Send(`{"jsonrpc":"2.0","id":` + brokertest.ID(half.Receive()) + `,"error":{"code":-32000,"message":"database is down"}}`)
	b.Log.Wait(t, `provider "half" joined "_all"`)
	members := wanted(t, c)
	is(t, "members", members, `{"joined":["_broker","half"],"missing":[{"slot":"half","reason":"tools/list failed: database is down"},{"slot":"bad","reason":"initialize refused: no licence"}]}`)
}

// Row 50: with aggregateResources one URI of two providers is two resources, and
// a read goes to the owner it names.
func TestResources(t *testing.T) {
	everywhere(t, func(c *config.Config) { c.AggregateResources = true }, func(t *testing.T, b *brokertest.Broker, dial dialer) {
		c := open(t, b, dial, "_all")
		for _, slot := range []string{"a", "b"} {
			p := b.Dedicated(t, slot)
			p.Send(joinAll)
			handshake(t, p, `{"protocolVersion":"2025-06-18","capabilities":{"resources":{}},"serverInfo":{"name":"p","version":"1"}}`)
			brokertest.Respond(p, p.Receive(), `{"resources":[{"uri":"file:///a","name":"a"}]}`)
			brokertest.Respond(p, p.Receive(), `{"resourceTemplates":[]}`)
			b.Log.Wait(t, `provider "`+slot+`" joined "_all"`)
			refuse(t, p, "tools/list")
			refuse(t, p, "prompts/list")

			c.Send(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"slot:` + slot + `/file:///a"}}`)
			request := p.Receive()
			if !strings.Contains(request, `"uri":"file:///a"`) {
				t.Errorf("the provider got %s", request)
			}
			brokertest.Respond(p, request, `{"contents":[{"uri":"file:///a","text":"of `+slot+`"}]}`)
			is(t, "the read", answer(t, c, `1`), `{"jsonrpc":"2.0","id":1,"result":{"contents":[{"uri":"slot:`+slot+`/file:///a","text":"of `+slot+`"}]}}`)
		}
		c.Send(`{"jsonrpc":"2.0","id":2,"method":"resources/list"}`)
		list := answer(t, c, `2`)
		for _, slot := range []string{"a", "b"} {
			if !strings.Contains(list, `{"uri":"slot:`+slot+`/file:///a","name":"a"}`) {
				t.Errorf("the resource of %s is not in %s", slot, list)
			}
		}
	})
}

// Spec 03 3.3: a provider that declares nothing and has tools is listed with them, and
// its silence about prompts is no trouble.
func TestUndeclaredTools(t *testing.T) {
	everywhere(t, nil, func(t *testing.T, b *brokertest.Broker, dial dialer) {
		c := open(t, b, dial, "_all")
		p := b.Dedicated(t, "s")
		p.Send(joinAll)
		handshake(t, p, `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"p","version":"1"}}`)
		brokertest.Respond(p, p.Receive(), oneTool)
		if request := p.Receive(); !strings.Contains(request, `"method":"prompts/list"`) {
			t.Errorf("got %s, want prompts/list", request)
		}
		is(t, "members", wanted(t, c, "s-run"), `{"joined":["_broker","s"],"missing":[]}`)
		c.Send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s-run"}}`)
		brokertest.Respond(p, p.Receive(), `{"content":[]}`)
		is(t, "the call", answer(t, c, `1`), `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`)
	})
}

// Row 53: a hostile provider ends its own list, nobody else's.
func TestHostileCursor(t *testing.T) {
	b := start(t, nil)
	c := open(t, b, transports["http"], "_all")
	member(t, b, "good")
	p := b.Dedicated(t, "hostile")
	p.Send(joinAll)
	handshake(t, p, hasTools)
	for range 2 {
		brokertest.Respond(p, p.Receive(), `{"tools":[{"name":"again"}],"nextCursor":"same"}`)
	}
	b.Log.Wait(t, `[broker] aggregate: the list of provider "hostile" is not complete`, "repeats a cursor")
	wanted(t, c, "good-run", "hostile-again", "hostile-again-2")
}

// Row 55: the members' instructions are joined under headings.
func TestInstructions(t *testing.T) {
	b := start(t, nil)
	for _, slot := range []string{"a", "b", "c"} {
		p := b.Dedicated(t, slot)
		p.Send(joinAll)
		handshake(t, p, `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"p","version":"1"},"instructions":"Use `+slot+` well."}`)
		b.Log.Wait(t, `provider "`+slot+`" joined "_all"`)
	}
	c := transports["ws"](t, b, "_all")
	c.Send(initialize)
	instructions, _ := wire.Unquote(wire.Member(wire.Member([]byte(answer(t, c, `"init"`)), "result"), "instructions"))
	if want := "## a\n\nUse a well.\n\n## b\n\nUse b well.\n\n## c\n\nUse c well."; !strings.HasSuffix(instructions, want) {
		t.Errorf("instructions are %q, want them to end in %q", instructions, want)
	}
}

// Spec 03 3.5: list_changed comes as a pair, on a join, a change and a leave.
func TestNotifications(t *testing.T) {
	b := start(t, nil)
	c := open(t, b, transports["ws"], "_all")
	pair := func(what string) {
		t.Helper()
		is(t, what, c.Receive(), `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		is(t, what, c.Receive(), `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`)
	}
	p := member(t, b, "s")
	pair("a member joined")
	p.Send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"not for clients of _all"}}`)
	p.Send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	brokertest.Respond(p, p.Receive(), `{"tools":[{"name":"two"}]}`)
	pair("its tools changed")
	wanted(t, c, "s-two")
	p.Close(1000, "")
	pair("it left")
}
