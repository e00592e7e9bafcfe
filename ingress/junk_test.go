package ingress_test

import (
	"strings"
	"testing"

	"mcpbroker"
	"mcpbroker/brokertest"
)

const (
	fin  = 0x80
	text = brokertest.OpText
)

// Spec 01 2.7, section 9 item 3, row 73 of bad input: a frame that violates the
// protocol ends its socket with the right code, and nothing else.
func TestProtocolFaults(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	bystander := b.Dedicated(t, "bystander")
	c := brokertest.NewClient(t, b.MCPURL("bystander"))
	c.Handshake(bystander)
	type frame struct {
		first   byte
		payload string
	}
	for _, test := range []struct {
		name   string
		frames []frame
		code   int
	}{
		{"invalid UTF-8", []frame{{fin | text, "\"\xff\""}}, 1007},
		{"truncated UTF-8", []frame{{fin | text, "\"\xc3"}}, 1007},
		{"surrogate", []frame{{fin | text, "\"\xed\xa0\x80\""}}, 1007},
		{"invalid UTF-8 in a binary message", []frame{{fin | brokertest.OpBinary, "\"\xff\""}}, 1007},
		{"invalid UTF-8 across fragments", []frame{{text, "\"\xc3"}, {fin, "x\""}}, 1007},
		{"reserved opcode", []frame{{fin | 0x3, ""}}, 1002},
		{"reserved control opcode", []frame{{fin | 0xB, ""}}, 1002},
		{"reserved bit", []frame{{fin | 0x40 | text, "{}"}}, 1002},
		{"continuation of nothing", []frame{{fin, "{}"}}, 1002},
		{"fragmented ping", []frame{{brokertest.OpPing, "x"}}, 1002},
		{"long ping", []frame{{fin | brokertest.OpPing, strings.Repeat("x", 126)}}, 1002},
	} {
		for _, path := range []string{"/provider/s", "/providers"} {
			t.Run(test.name+path, func(t *testing.T) {
				p := brokertest.DialRaw(t, b.WSURL()+path)
				lead := `[broker] multiplex provider socket error: `
				if path == "/provider/s" {
					b.Connected(t, "s")
					lead = `[broker] provider "s" socket error: `
				}
				before := len(b.Log.Lines(lead))
				for _, f := range test.frames {
					_ = p.TryWrite(brokertest.AppendFrame(nil, f.first, []byte(f.payload)))
				}
				if code, reason, _ := p.Closed(); code != test.code {
					t.Errorf("closed %d %q, want %d", code, reason, test.code)
				}
				b.Empty(t, "s")
				if lines := b.Log.WaitN(t, before+1, lead); len(lines) != before+1 {
					t.Errorf("logged %q", lines[before:])
				}
			})
		}
	}
	equal(t, "bystander", call(c, bystander, `{"jsonrpc":"2.0","id":1,"method":"ping"}`), `{"jsonrpc":"2.0","id":1,"result":{}}`)
}

// An unmasked frame breaks the connection.
func TestUnmaskedFrame(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	p := brokertest.DialRaw(t, b.ProviderURL("s"))
	b.Connected(t, "s")
	p.Write([]byte{fin | text, 2, '{', '}'})
	if code, reason, _ := p.Closed(); code != 1002 && code != 1006 {
		t.Errorf("closed %d %q", code, reason)
	}
	b.Empty(t, "s")
	alive(t, b)
}

// Spec 01 section 2: binary messages are read as text and relayed as text; a
// message may come in any fragments, byte by byte (row 59).
func TestBinaryAndFragments(t *testing.T) {
	const result = `{"text":"读é🎉"}`
	write := map[string]func(p *brokertest.Raw, message string){
		"binary": func(p *brokertest.Raw, m string) { p.Frame(fin|brokertest.OpBinary, []byte(m)) },
		"one byte a fragment, one byte a packet": func(p *brokertest.Raw, m string) {
			var wire []byte
			for i := range len(m) {
				first := byte(brokertest.OpContinuation)
				if i == 0 {
					first = text
				}
				if i == len(m)-1 {
					first |= fin
				}
				wire = brokertest.AppendFrame(wire, first, []byte{m[i]})
			}
			for i := range wire {
				p.Write(wire[i : i+1])
			}
		},
		"ping between fragments, empty fragments": func(p *brokertest.Raw, m string) {
			p.Frame(text, nil)
			p.Frame(brokertest.OpContinuation, []byte(m[:20]))
			p.Frame(fin|brokertest.OpPing, nil)
			p.Frame(brokertest.OpContinuation, nil)
			p.Frame(fin|brokertest.OpContinuation, []byte(m[20:]))
		},
	}
	for name, send := range write {
		for _, path := range []string{"/provider/s", "/providers"} {
			t.Run(name+path, func(t *testing.T) {
				b := brokertest.Start(t, brokertest.Options{})
				p := brokertest.DialRaw(t, b.WSURL()+path)
				before, after := "", ""
				if path == "/providers" {
					before, after = `{"provider":"s","payload":`, "}"
					p.Text(before + `{"type":"register"}}`)
				}
				b.Connected(t, "s")
				c := brokertest.NewClient(t, b.MCPURL("s"))
				reply := c.Start(`{"jsonrpc":"2.0","id":"读","method":"initialize"}`)
				if _, _, err := p.Read(); err != nil {
					t.Fatal(err)
				}
				send(p, before+`{"jsonrpc":"2.0","id":"brk-1","result":`+result+`}`+after)
				equal(t, "answer", c.Await(reply).Body, `{"jsonrpc":"2.0","id":"读","result":`+result+`}`)
			})
		}
	}
}

// F-31, row 56: a message of exactly the limit passes, one byte more closes the
// socket with 1009 and fails its calls; the slot lives on.
func TestMessageLimit(t *testing.T) {
	const limit = 1 << 16
	b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{mcpbroker.WithMaxMessageBytes(limit)}})
	for _, way := range connect[:2] {
		t.Run(way.kind, func(t *testing.T) {
			overhead := 0
			p := way.to(b, t, way.kind)
			if way.kind == "multiplexed" {
				overhead = len(`{"provider":"multiplexed","payload":}`)
			}
			c := brokertest.NewClient(t, b.MCPURL(way.kind))
			c.Handshake(p)
			padded := func(id string, size int) string {
				frame := `{"jsonrpc":"2.0","id":` + id + `,"result":""}`
				return frame[:len(frame)-2] + strings.Repeat("x", size-overhead-len(frame)) + `"}`
			}
			reply := c.Start(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
			p.Send(padded(brokertest.ID(p.Receive()), limit))
			if a := c.Await(reply); len(a.Body) != limit-overhead-len(`"brk-2"`)+1 {
				t.Errorf("answer at the limit: %d bytes %.200s", len(a.Body), a.Body)
			}
			reply = c.Start(`{"jsonrpc":"2.0","id":2,"method":"m"}`)
			p.Send(padded(brokertest.ID(p.Receive()), limit+1))
			equal(t, "over the limit", c.Await(reply).Body, `{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"Provider \"`+way.kind+`\" disconnected: it sent a message larger than the limit of 65536 bytes (maxMessageBytes)"}}`)
			if code, reason := p.(interface{ Closed() (int, string) }).Closed(); code != 1009 {
				t.Errorf("closed %d %q", code, reason)
			}
			b.Empty(t, way.kind)
		})
	}
	loop := b.Loopback(t, "l")
	err := loop.Port().Send([]byte(`"` + strings.Repeat("x", limit) + `"`))
	if err == nil || !strings.Contains(err.Error(), "larger than 65536 bytes (maxMessageBytes)") {
		t.Errorf("loopback over the limit: %v", err)
	}
	alive(t, b)
}

// F-26, 4.7 P1, section 9 item 17: junk reaches nobody; one warning per slot with
// at most 200 characters of it.
func TestJunkFromProvider(t *testing.T) {
	onEach(t, func(t *testing.T, b *brokertest.Broker, p brokertest.Provider, c *brokertest.Client) {
		stream := c.Listen()
		stream.Next()
		long := strings.Repeat("é", 300)
		junk := []string{
			`["` + long + `"]`, `null`, `7`, `"text"`, `[{"jsonrpc":"2.0","id":"brk-1","result":{}}]`, `{}`, `{"jsonrpc":"2.0"}`,
			`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}`, `{"jsonrpc":"2.0","id":null,"method":"notifications/x"}`,
			`{"jsonrpc":"2.0","id":true,"method":"m"}`, `{"jsonrpc":"2.0","method":7}`,
			`{"jsonrpc":"2.0","method":"a","method":"b"}`,
			strings.Repeat("[", 200) + strings.Repeat("]", 200),
		}
		if _, shared := p.(*brokertest.Lane); !shared { // on a shared socket they are no envelopes
			junk = append(junk, "", "x", `{"jsonrpc":`, `{} {}`)
		}
		for _, frame := range junk {
			p.Send(frame)
		}
		p.Send(`{"jsonrpc":"2.0","method":"notifications/marker"}`)
		equal(t, "the first event", stream.Next(), "event: message\nid: 1\ndata: "+`{"jsonrpc":"2.0","method":"notifications/marker"}`)
		lines := b.Log.Lines(`[broker] provider "s" sent a frame the broker could not route as JSON-RPC`)
		if len(lines) != 1 || !strings.HasSuffix(lines[0], `"[\"`+long[:198*2]+`"`) {
			t.Errorf("warnings %q", lines)
		}
	})
}
