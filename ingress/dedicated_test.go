package ingress_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"mcpbroker/actors/msg"
	"mcpbroker/brokertest"
	"mcpbroker/ingress/socket"
)

const heldReason = `Slot already held by a live provider; call provider_status on _broker. Slot: "`

// T1 of spec 01 section 11, over Streamable HTTP, and the state of section 4.1.
func TestRelayDedicated(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	p := b.Dedicated(t, "s")
	c := brokertest.NewClient(t, b.MCPURL("s"))
	c.Handshake(p)

	reply := c.Start(`{"jsonrpc":"2.0","id":5,"method":"tools/list"}`)
	equal(t, "B>P", stable(p.Receive()), `{"jsonrpc":"2.0","id":"brk-2","method":"tools/list","params":{"_meta":{"traceparent":"$TRACE"}}}`)
	info := b.Connected(t, "s")
	if info.Transport != msg.Dedicated || info.SessionCount != 1 || info.PendingCount != 1 || info.ConnectedSince.IsZero() || info.Aggregate {
		t.Errorf("slot during the call: %+v", info)
	}
	p.Send(`{"jsonrpc":"2.0","id":"brk-2","result":{"tools":[]}}`)
	equal(t, "B>C", c.Await(reply).Body, `{"jsonrpc":"2.0","id":5,"result":{"tools":[]}}`)

	p.Close(1000, "")
	info = b.Empty(t, "s")
	if info.Transport != msg.NoProvider || !info.ConnectedSince.IsZero() || info.PendingCount != 0 {
		t.Errorf("slot without its provider: %+v", info)
	}
}

// T4 of spec 01 section 11, 2.1 D4: open comes before the refusal, and the
// refused socket is never listed nor routed.
func TestSecondProviderRefused(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	p := b.Dedicated(t, "dup")
	since := b.Connected(t, "dup").ConnectedSince
	second := brokertest.Dial(t, b.ProviderURL("dup"), nil)
	code, reason := second.Closed()
	if code != 1008 || reason != heldReason+`dup"` {
		t.Errorf("refusal: %d %q", code, reason)
	}
	b.Log.Wait(t, `[broker] WARNING: WebSocket provider "dup" rejected: `, `Provider "dup" is already connected.`,
		"The incumbent answered the last heartbeat.", "wait up to 30000ms", "provider_status")
	if now := b.Connected(t, "dup"); now.ConnectedSince != since {
		t.Errorf("the holder changed: %+v", now)
	}
	c := brokertest.NewClient(t, b.MCPURL("dup"))
	c.Handshake(p)
}

// Spec 01 2.1 D2, 1.5 and F-05: names the broker reserves, and slots of this
// process.
func TestReservedSlots(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	b.Loopback(t, "mine")
	for _, c := range []struct{ target, slot string }{
		{"/provider/_all", "_all"},
		{"/provider/_broker", "_broker"},
		{"/provider/%5Fall", "_all"},
		{"/provider/mine", "mine"},
	} {
		code, reason, _ := brokertest.DialRaw(t, b.WSURL()+c.target).Closed()
		if code != 1008 || reason != `Provider "`+c.slot+`" is reserved by the broker` {
			t.Errorf("%s: %d %q", c.target, code, reason)
		}
		b.Log.Wait(t, `[broker] WARNING: WebSocket provider "`+c.slot+`" rejected`, "reserved system slot")
	}
	if err := attach(b, "_broker"); err == nil || err.Error() != `Provider "_broker" is reserved by the broker (-32000)` {
		t.Errorf("loopback on _broker: %v", err)
	}
	alive(t, b)
}

func attach(b *brokertest.Broker, slot string) error {
	_, err := b.AttachLoopback(slot, nil, &brokertest.Loop{})
	return err
}

// F-08: a malformed frame on a refused socket ends that socket only.
func TestRefusedSocketMalformed(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	for _, first := range []byte{0x80 | brokertest.OpText, 0x80 | 0x3, 0xF0 | brokertest.OpText} {
		p := brokertest.DialRaw(t, b.ProviderURL("_all"))
		_ = p.TryWrite(brokertest.AppendFrame(nil, first, []byte{0xff, 0xfe}))
		// Either the refusal or the fault comes first.
		if code, reason, _ := p.Closed(); code != 1008 && code != 1002 {
			t.Errorf("frame %x: closed %d %q", first, code, reason)
		}
	}
	alive(t, b)
}

// Spec 01 2.2, section 9 item 12: a close reason has at most 123 bytes, is cut
// between characters, and loses the name first.
func TestCloseReasonLength(t *testing.T) {
	for _, c := range []struct{ name, slot, kept string }{
		{"long", strings.Repeat("n", 150), strings.Repeat("n", 120-len(heldReason))},
		{"two-byte", strings.Repeat("é", 80), strings.Repeat("é", (120-len(heldReason))/2)},
		{"four-byte", "a" + strings.Repeat("\U0001F389", 40), "a" + strings.Repeat("\U0001F389", (119-len(heldReason))/4)},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := brokertest.Start(t, brokertest.Options{})
			b.Dedicated(t, c.slot)
			code, reason, _ := brokertest.DialRaw(t, b.ProviderURL(c.slot)).Closed()
			if code != 1008 || len(reason) > 123 || !utf8.ValidString(reason) {
				t.Errorf("closed %d with %d bytes %q", code, len(reason), reason)
			}
			equal(t, "reason", reason, heldReason+c.kept+"...")
		})
	}
}

// Spec 01 2.3 FF2 to FF4, section 9 item 10, F-09: registrations are consumed
// whenever they come, whatever comes first leaves the socket open, and clients
// see nothing of it.
func TestFirstFrames(t *testing.T) {
	const late = `{"jsonrpc":"2.0","method":"notifications/register","params":{"aggregate":true}}`
	for _, c := range []struct {
		name, frame string
		aggregate   bool
	}{
		{"FF2 opt-in", late, true},
		{"FF2 false", `{"jsonrpc":"2.0","method":"notifications/register","params":{"aggregate":false}}`, false},
		{"FF2 not exactly true", `{"jsonrpc":"2.0","method":"notifications/register","params":{"aggregate":1}}`, false},
		{"FF2 with an id", `{"jsonrpc":"2.0","id":4,"method":"notifications/register","params":{"aggregate":true}}`, true},
		{"FF2 any jsonrpc", `{"jsonrpc":7,"method":"notifications/register"}`, false},
		{"FF3", `{"type":"register","aggregate":true}`, true},
		{"FF3 without", `{"type":"register"}`, false},
		{"FF3 as text", `{"type":"register","aggregate":"true"}`, false},
		{"FF4 malformed", `{"jsonrpc":`, false},
		{"FF4 array", `[1,2]`, false},
		{"FF4 scalar", `7`, false},
		{"FF4 notification", `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`, false},
		{"jsonrpc and envelope", `{"jsonrpc":"2.0","provider":"x","payload":{},"method":"notifications/y"}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := brokertest.Start(t, brokertest.Options{Plain: true})
			p := b.Dedicated(t, "s")
			p.Send(c.frame)
			p.Send(`{"jsonrpc":"2.0","id":"sync","method":"ping"}`)
			equal(t, "ping", p.Receive(), `{"jsonrpc":"2.0","id":"sync","result":{}}`) // the frame before it is done with
			cl := brokertest.NewClient(t, b.MCPURL("s"))
			cl.Handshake(p)
			if got := b.Connected(t, "s").Aggregate; got != c.aggregate {
				t.Errorf("aggregate = %v, want %v", got, c.aggregate)
			}
			stream := cl.Listen()
			stream.Next() // : open
			p.Send(late)
			p.Send(`{"jsonrpc":"2.0","method":"notifications/after"}`)
			equal(t, "first event", stream.Next(), "event: message\nid: 1\ndata: "+`{"jsonrpc":"2.0","method":"notifications/after"}`)
			if !b.Connected(t, "s").Aggregate {
				t.Error("the late registration did not opt in")
			}
		})
	}
}

// Spec 01 2.3 FF1, 2.4, section 9 item 8, F-15: an envelope on a dedicated URL.
func TestEnvelopeOnSlotPath(t *testing.T) {
	for _, c := range []struct{ name, before, frame string }{
		{"object", "", `{"provider":"x","payload":{"jsonrpc":"2.0","method":"m"}}`},
		{"null payload", "", `{"provider":"x","payload":null}`},
		{"empty payload", "", `{"payload":{},"provider":"x"}`},
		{"behind junk", "junk", `{"provider":"x","payload":{}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := brokertest.Start(t, brokertest.Options{})
			p := b.Dedicated(t, "a b")
			if c.before != "" {
				p.Send(c.before)
			}
			p.Send(c.frame)
			const text = `Envelope frame for slot \"x\" on the slot-scoped path /provider/a%20b of slot \"a b\". DirectTransport sends plain frames to /provider/a%20b; MultiplexTransport sends envelopes to /providers. The broker is closing the connection.`
			equal(t, "answer", p.Receive(), `{"provider":"x","payload":{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"`+text+`"}}}`)
			code, reason := p.Closed()
			if code != 1008 || reason != "Envelope frame on slot-scoped path /provider/a%20b: use DirectTransport here, or connect to /providers" {
				t.Errorf("closed %d %q", code, reason)
			}
			b.Log.Wait(t, "[broker] Envelope frame", "DirectTransport", "MultiplexTransport")
			b.Empty(t, "a b")
			b.Dedicated(t, "a b")
		})
	}
}

// F-15: once a JSON-RPC message was seen, an envelope is only junk.
func TestEnvelopeAfterPlain(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	p := b.Dedicated(t, "s")
	p.Send(`{"jsonrpc":"2.0","method":"notifications/x"}`)
	p.Send(`{"provider":"x","payload":{}}`)
	b.Log.Wait(t, `[broker] provider "s" sent a frame the broker could not route as JSON-RPC`)
	brokertest.NewClient(t, b.MCPURL("s")).Handshake(p)
}

// Spec 01 section 9 items 1 and 2: a slot is free as soon as its holder has
// left, and the newcomer keeps it although the old socket's end comes later.
func TestReconnect(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	old := brokertest.DialRaw(t, b.ProviderURL("s"))
	first := b.Connected(t, "s")
	old.Frame(0x80|brokertest.OpClose, []byte{0x03, 0xE8}) // and the TCP connection stays
	b.Empty(t, "s")
	p := b.Dedicated(t, "s")
	second := b.Connected(t, "s")
	if !second.ConnectedSince.After(first.ConnectedSince) {
		t.Errorf("connectedSince %v, then %v", first.ConnectedSince, second.ConnectedSince)
	}
	old.Drop()
	brokertest.NewClient(t, b.MCPURL("s")).Handshake(p)
}

// Frames that travel with the handshake, more than the socket may have under way,
// wait for the slot and are then handled in order.
func TestFramesWithTheHandshake(t *testing.T) {
	for _, path := range []string{"/provider/s", "/providers"} {
		b := brokertest.Start(t, brokertest.Options{})
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", b.Host())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		before, after := "", ""
		if path == "/providers" {
			before, after = `{"provider":"s","payload":`, "}"
		}
		const frames = 3 * socket.FramesInFlight
		burst := []byte("GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
		for i := range frames {
			burst = brokertest.AppendFrame(burst, fin|text, fmt.Appendf(nil, `%s{"jsonrpc":"2.0","id":%d,"method":"ping"}%s`, before, i, after))
		}
		if _, err := conn.Write(burst); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
		r := bufio.NewReader(conn)
		if _, err := http.ReadResponse(r, nil); err != nil {
			t.Fatal(err)
		}
		for i := range frames {
			want := fmt.Sprintf(`%s{"jsonrpc":"2.0","id":%d,"result":{}}%s`, before, i, after)
			got := make([]byte, 2+len(want))
			if _, err := io.ReadFull(r, got); err != nil || string(got[2:]) != want {
				t.Fatalf("%s: answer %d: %q, %v; want %q", path, i, got, err, want)
			}
		}
	}
}
