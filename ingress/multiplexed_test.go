package ingress_test

import (
	"strings"
	"testing"
	"time"

	"mcpbroker"
	"mcpbroker/actors/msg"
	"mcpbroker/brokertest"
)

// T2 of spec 01 section 11.
func TestRelayMultiplexed(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	p := brokertest.Dial(t, b.ProvidersURL(), nil)
	p.Send(`{"provider":"s","payload":{"jsonrpc":"2.0","method":"notifications/register"}}`)
	if info := b.Connected(t, "s"); info.Transport != msg.Multiplexed || info.Aggregate {
		t.Errorf("slot: %+v", info)
	}
	c := brokertest.NewClient(t, b.MCPURL("s"))
	reply := c.Start(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	equal(t, "B>P", stable(p.Receive()), `{"provider":"s","payload":{"jsonrpc":"2.0","id":"brk-1","method":"initialize","params":{"_meta":{"traceparent":"$TRACE"}}}}`)
	p.Send(`{"provider":"s","payload":{"jsonrpc":"2.0","id":"brk-1","result":{}}}`)
	equal(t, "B>C", c.Await(reply).Body, `{"jsonrpc":"2.0","id":1,"result":{}}`)
}

// T3 of spec 01 section 11, 3.3 M3 and F-05.
func TestMultiplexedReserved(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	b.Loopback(t, "mine")
	p := brokertest.Dial(t, b.ProvidersURL(), nil)
	for _, slot := range []string{"_all", "_broker", "mine"} {
		p.Send(`{"provider":"` + slot + `","payload":{"jsonrpc":"2.0","method":"x"}}`)
		equal(t, "B>P", p.Receive(), `{"provider":"`+slot+`","payload":{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Provider \"`+slot+`\" is reserved by the broker"}}}`)
	}
	own := b.Lane(t, p, "own")
	brokertest.NewClient(t, b.MCPURL("own")).Handshake(own)
}

// Spec 01 3.3 M5 and F-16: each frame of a refused slot is answered, the log is
// sampled, and the socket's other slots work.
func TestMultiplexedRefusal(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	b.Dedicated(t, "held")
	p := brokertest.Dial(t, b.ProvidersURL(), nil)
	own := b.Lane(t, p, "own")
	const tries = 101
	for range tries {
		p.Send(`{"provider":"held","payload":{"jsonrpc":"2.0","method":"x"}}`)
		got := p.Receive()
		lead := `{"provider":"held","payload":{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Provider \"held\" is already connected. `
		if !strings.HasPrefix(got, lead) {
			t.Fatalf("refusal %s", got)
		}
		for _, token := range []string{"answered the last heartbeat", "wait up to 30000ms", "provider_status"} {
			if !strings.Contains(got, token) {
				t.Fatalf("refusal %s lacks %q", got, token)
			}
		}
	}
	lines := b.Log.Lines(`[broker] WARNING: multiplexed WebSocket provider "held" rejected`)
	if len(lines) != 2 || !strings.HasSuffix(lines[1], "(refusal 101 on this socket)") {
		t.Errorf("%d refusals logged %q", tries, lines)
	}
	brokertest.NewClient(t, b.MCPURL("own")).Handshake(own)
}

// F-42: a refused claim of an open shared socket is granted once the slot is
// free; the oldest wins; a socket that left is passed over.
func TestRememberedClaims(t *testing.T) {
	withdrawn := make(chan struct{}, 8)
	b := brokertest.Start(t, brokertest.Options{Plain: true, Configure: []mcpbroker.Option{mcpbroker.WithTap(func(_ string, message any) {
		if _, ok := message.(*msg.WithdrawClaim); ok {
			withdrawn <- struct{}{}
		}
	})}})
	holder := b.Dedicated(t, "s")
	claim := func() *brokertest.Socket {
		p := brokertest.Dial(t, b.ProvidersURL(), nil)
		p.Send(`{"provider":"s","payload":{"jsonrpc":"2.0","method":"notifications/register","params":{"aggregate":true}}}`)
		p.Receive() // the refusal
		return p
	}
	gone, first, second := claim(), claim(), claim()
	gone.Close(1000, "")
	for range 2 { // the registry takes it, then the slot
		select {
		case <-withdrawn:
		case <-time.After(30 * time.Second):
			t.Fatal("the claim of a socket that left was not withdrawn")
		}
	}
	alive(t, b)
	holder.Close(1000, "")
	info := b.WaitSlot(t, "s", func(i msg.SlotInfo) bool { return i.Transport == msg.Multiplexed })
	if !info.Aggregate {
		t.Error("the remembered opt-in is lost")
	}
	first.Send(`{"provider":"s","payload":{"jsonrpc":"2.0","id":1,"method":"ping"}}`)
	equal(t, "the oldest claim", first.Receive(), `{"provider":"s","payload":{"jsonrpc":"2.0","id":1,"result":{}}}`)
	second.Send(`{"provider":"s","payload":{"jsonrpc":"2.0","id":1,"method":"ping"}}`)
	if got := second.Receive(); !strings.Contains(got, "already connected") {
		t.Errorf("the younger claim: %s", got)
	}
}

// Spec 01 3.1: what is an envelope, and what is dropped with one warning per
// socket (3.2).
func TestEnvelopes(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{Plain: true})
	p := brokertest.Dial(t, b.ProvidersURL(), nil)
	junk := `{"provider":"","payload":{}}` + strings.Repeat(" ", 300)
	for _, frame := range []string{
		junk, `[]`, `null`, `"text"`, `{"provider":1,"payload":{}}`, `{"provider":"n"}`, `{"payload":{}}`, `not json`, `{}`,
		`{"type":"register","aggregate":true}`,
	} {
		p.Send(frame)
	}
	for i, frame := range []string{
		`{"provider":"e0","payload":null}`,
		`{"payload":7,"provider":"e1"}`,
		`{"provider":"e2","x":1,"payload":[]}`,
		` { "provider" : "e\u0033" , "payload" : {} } `,
		`{"jsonrpc":"2.0","provider":"e4","payload":{"jsonrpc":"2.0","method":"notifications/register"}}`,
		`{"provider":"e5","payload":{"type":"register","aggregate":true}}`,
		`{"provider":"e6","payload":{"jsonrpc":"2.0","id":9,"method":"notifications/register","params":{"aggregate":true}}}`,
	} {
		p.Send(frame)
		slot := "e" + string(rune('0'+i))
		if info := b.Connected(t, slot); info.Aggregate != (i >= 5) {
			t.Errorf("%s: %+v", frame, info)
		}
	}
	const lead = "[broker] multiplexed provider socket sent a frame that is not a tunnel envelope; it was dropped."
	if lines := b.Log.Lines(lead); len(lines) != 1 || !strings.Contains(lines[0], `"{\"provider\":\"\",\"payload\":{}}`+strings.Repeat(" ", 200-28)+`"`) {
		t.Errorf("warnings %q", lines)
	}
	if got := p.Pending(); got != "" {
		t.Errorf("the provider received %s", got)
	}
}

// Spec 01 3.2, section 9 item 9, F-15: a bare message on the shared path, first
// or behind junk.
func TestPlainOnSharedPath(t *testing.T) {
	for _, c := range []struct{ name, before, frame, method string }{
		{"first", "", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "tools/list"},
		{"no method", "", `{"jsonrpc":"2.0","id":1,"result":{}}`, "(none)"},
		{"behind junk", "junk", `{"jsonrpc":"2.0","method":"m"}`, "m"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := brokertest.Start(t, brokertest.Options{})
			p := brokertest.Dial(t, b.ProvidersURL(), nil)
			if c.before != "" {
				p.Send(c.before)
			}
			p.Send(c.frame)
			equal(t, "answer", p.Receive(), `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Plain JSON-RPC (method `+c.method+`) on the multiplex path /providers. MultiplexTransport sends envelopes to /providers; DirectTransport sends plain frames to /provider/<name>. The broker is closing the connection."}}`)
			code, reason := p.Closed()
			if code != 1008 || reason != "Plain JSON-RPC on multiplex path /providers: use MultiplexTransport here, or connect to /provider/<name>" {
				t.Errorf("closed %d %q", code, reason)
			}
			b.Log.Wait(t, "[broker] Plain JSON-RPC", "MultiplexTransport", "DirectTransport")
		})
	}
	b := brokertest.Start(t, brokertest.Options{})
	p := brokertest.Dial(t, b.ProvidersURL(), nil)
	own := b.Lane(t, p, "s")
	p.Send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	b.Log.Wait(t, "not a tunnel envelope")
	brokertest.NewClient(t, b.MCPURL("s")).Handshake(own)
}

// Spec 01 3.4 and 3.5: one socket carries many slots; nothing crosses between
// them, and all are released with it, each with its own errors.
func TestManySlotsOneSocket(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	p := brokertest.Dial(t, b.ProvidersURL(), nil)
	one, two := b.Lane(t, p, "one"), b.Lane(t, p, "two")
	c1, c2 := brokertest.NewClient(t, b.MCPURL("one")), brokertest.NewClient(t, b.MCPURL("two"))
	c1.Handshake(one)
	c2.Handshake(two)
	s1, s2 := c1.Listen(), c2.Listen()
	s1.Next()
	s2.Next()
	one.Send(`{"jsonrpc":"2.0","method":"notifications/one"}`)
	two.Send(`{"jsonrpc":"2.0","method":"notifications/two"}`)
	equal(t, "stream of slot one", s1.Next(), "event: message\nid: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/one\"}")
	equal(t, "stream of slot two", s2.Next(), "event: message\nid: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/two\"}")

	r1, r2 := c1.Start(`{"jsonrpc":"2.0","id":5,"method":"m"}`), c2.Start(`{"jsonrpc":"2.0","id":"z","method":"m"}`)
	b.Pending(t, "one", 1)
	b.Pending(t, "two", 1)
	p.Drop()
	equal(t, "slot one", c1.Await(r1).Body, `{"jsonrpc":"2.0","id":5,"error":{"code":-32000,"message":"Provider \"one\" disconnected"}}`)
	equal(t, "slot two", c2.Await(r2).Body, `{"jsonrpc":"2.0","id":"z","error":{"code":-32000,"message":"Provider \"two\" disconnected"}}`)
}

// Spec 01 section 6: registrations back to back, before any answer, all count.
func TestRegistrationBurst(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	p := brokertest.DialRaw(t, b.ProvidersURL())
	var burst []byte
	names := strings.Fields("r0 r1 r2 r3 r4 r5 r6 r7 r8 r9")
	for _, name := range names {
		burst = brokertest.AppendFrame(burst, 0x80|brokertest.OpText, []byte(`{"provider":"`+name+`","payload":{"jsonrpc":"2.0","method":"notifications/register"}}`))
	}
	p.Write(burst)
	for _, name := range names {
		b.Connected(t, name)
	}
}

// F-17: text that is no JSON, sent by a client of a multiplexed slot, is refused
// and reaches no provider.
func TestNoJSONToMultiplexedSlot(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	p := b.Multiplexed(t, "s")
	c := brokertest.NewClient(t, b.MCPURL("s"))
	c.Handshake(p)
	is(t, "no JSON", c.Post("hello"), 400, `{"error":"parse_error","error_description":"Body is not valid JSON"}`)
	equal(t, "the next call", call(c, p, `{"jsonrpc":"2.0","id":1,"method":"m"}`), `{"jsonrpc":"2.0","id":1,"result":{}}`)
}

// F-14, F-18: a stop says 1001 to every socket, one that announced nothing
// included.
func TestStopClosesSockets(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	idle := brokertest.Dial(t, b.ProvidersURL(), nil)
	b.Log.Wait(t, "role=multiplex-provider")
	dedicated := b.Dedicated(t, "d")
	shared := b.Multiplexed(t, "m")
	loop := b.Loopback(t, "l")
	b.Stop(t)
	for name, p := range map[string]*brokertest.Socket{"idle": idle, "dedicated": dedicated, "shared": shared.Socket} {
		if code, reason := p.Closed(); code != 1001 || reason != "The broker is stopping" {
			t.Errorf("%s: closed %d %q", name, code, reason)
		}
	}
	equal(t, "loopback", loop.End(), "1001 The broker is stopping")
}
