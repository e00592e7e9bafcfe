package wsclient_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"mcpbroker"
	"mcpbroker/actors/msg"
	"mcpbroker/brokertest"
	"mcpbroker/config"
)

const (
	fin  = 0x80
	text = brokertest.OpText
)

// T1 of spec 01 section 11, byte by byte: no session, no initialize.
func TestTranscript(t *testing.T) {
	_, p, c := served(t)
	c.Send(`{"jsonrpc":"2.0","id":5,"method":"tools/list"}`)
	brokertest.Equal(t, "B>P", stable(p.Receive()), `{"jsonrpc":"2.0","id":"brk-1","method":"tools/list","params":{"_meta":{"traceparent":"$TRACE"}}}`)
	p.Send(`{"jsonrpc":"2.0","id":"brk-1","result":{"tools":[]}}`)
	brokertest.Equal(t, "B>C", c.Receive(), `{"jsonrpc":"2.0","id":5,"result":{"tools":[]}}`)
}

// F-17, F-20, F-23: junk to a multiplexed slot is answered -32700 and reaches
// nobody; a response and a notification are not answered, with a provider or
// without.
func TestWhatIsNotAnswered(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	c := brokertest.Dial(t, b.ClientURL("s"), nil)
	const response, notification = `{"jsonrpc":"2.0","id":"brk-1","result":{}}`, `{"jsonrpc":"2.0","method":"n"}`
	const parseError = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: the message is not valid JSON: unexpected character at byte 0"}}`
	silent := func() {
		c.Send(response)
		c.Send(notification)
		c.Send(`junk`)
		brokertest.Equal(t, "the one answer", c.Receive(), parseError)
	}
	silent()
	c.Send(`{"jsonrpc":"2.0","id":1,"method":"m"}`) // behind the notification: its answer comes from the slot
	brokertest.Equal(t, "a request", c.Receive(), `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Provider \"s\" not connected. Call providers_list on the _broker slot to see which slots are live."}}`)
	p := b.Multiplexed(t, "s")
	silent()
	brokertest.Equal(t, "the notification", p.Receive(), notification)
	works(t, p, c)
}

// Binary frames are read as text, fragments are joined, multi-byte text split
// over them is not harmed (row 59).
func TestFrames(t *testing.T) {
	b, p, _ := served(t)
	c := brokertest.DialRaw(t, b.ClientURL("s"))
	const frame = `{"method":"n","params":"读é🎉"}`
	c.Frame(fin|brokertest.OpBinary, []byte(frame))
	brokertest.Equal(t, "binary", p.Receive(), frame)
	c.Frame(text, []byte(frame[:1]))
	for i := 1; i < len(frame)-1; i++ {
		c.Frame(0, []byte(frame[i:i+1]))
	}
	c.Frame(fin, []byte(frame[len(frame)-1:]))
	brokertest.Equal(t, "fragments", p.Receive(), frame)
	p.Send(frame)
	if opcode, got, err := c.Read(); err != nil || opcode != text || string(got) != frame {
		t.Errorf("opcode %d %s %v", opcode, got, err)
	}
}

// Section 9 item 3 for clients: a frame that violates the protocol ends its
// socket with the right code and one line, and disturbs nobody. What comes behind
// invalid UTF-8 is not handled.
func TestFaults(t *testing.T) {
	b, p, bystander := served(t, mcpbroker.WithMaxMessageBytes(1024))
	for _, test := range []struct {
		name   string
		frames func(c *brokertest.Raw)
		code   int
	}{
		{"invalid UTF-8", func(c *brokertest.Raw) {
			b := brokertest.AppendFrame(nil, fin|text, []byte("\"\xff\""))
			c.Write(brokertest.AppendFrame(b, fin|text, []byte(`{"method":"behind"}`)))
		}, 1007},
		{"too big", func(c *brokertest.Raw) { c.Text(`"` + strings.Repeat("x", 1023) + `"`) }, 1009},
		{"reserved opcode", func(c *brokertest.Raw) { c.Frame(fin|0x3, nil) }, 1002},
		{"reserved bit", func(c *brokertest.Raw) { c.Frame(fin|0x40|text, []byte("{}")) }, 1002},
	} {
		c := brokertest.DialRaw(t, b.ClientURL("s"))
		b.Sessions(t, "s", 2)
		before := len(b.Log.Lines("client socket error"))
		test.frames(c)
		if code, reason, _ := c.Closed(); code != test.code {
			t.Errorf("%s: closed %d %q, want %d", test.name, code, reason, test.code)
		}
		b.Sessions(t, "s", 1)
		lines := b.Log.WaitN(t, before+1, `[broker] client socket error on slot "s": `)
		if len(lines) != before+1 {
			t.Errorf("%s: logged %q", test.name, lines[before:])
		}
	}
	c := brokertest.Dial(t, b.ClientURL("s"), nil)
	c.Send(`{"method":"` + strings.Repeat("x", 1024-13) + `"}`)
	brokertest.Equal(t, "at the limit", p.Receive(), `{"method":"`+strings.Repeat("x", 1024-13)+`"}`)
	works(t, p, bystander)
}

// Spec 01 5.7: several clients, each with its own answers and all broadcasts.
func TestSeveralClients(t *testing.T) {
	b, p, first := served(t)
	second := brokertest.Dial(t, b.ClientURL("s"), nil)
	b.Sessions(t, "s", 2)
	for i, c := range []*brokertest.Socket{first, second} {
		c.Send(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
		brokertest.Respond(p, p.Receive(), []string{`"a"`, `"b"`}[i])
		brokertest.Equal(t, "own answer", c.Receive(), `{"jsonrpc":"2.0","id":1,"result":`+[]string{`"a"`, `"b"`}[i]+`}`)
	}
	p.Send("{\"method\":\r\n\"n\"}")
	for _, c := range []*brokertest.Socket{first, second} {
		brokertest.Equal(t, "broadcast, as it was sent", c.Receive(), "{\"method\":\r\n\"n\"}")
	}
}

// Spec 01 4.4, F-45: a client that leaves, with a close frame or without, leaves
// nothing behind.
func TestClientLeaves(t *testing.T) {
	b, p, bystander := served(t)
	for _, leave := range []func(c *brokertest.Socket){
		func(c *brokertest.Socket) { c.Close(1000, "") },
		func(c *brokertest.Socket) { c.Drop() },
	} {
		c := brokertest.Dial(t, b.ClientURL("s"), nil)
		c.Send(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
		id := brokertest.ID(p.Receive())
		leave(c)
		brokertest.Equal(t, "F-45", p.Receive(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`,"reason":"The caller no longer waits for the answer"}}`)
		b.Sessions(t, "s", 1)
		b.Pending(t, "s", 0)
	}
	works(t, p, bystander)
	if lines := b.Log.Lines("error"); len(lines) != 0 {
		t.Errorf("logged %q", lines)
	}
}

// F-43: a silent socket is pinged; who does not answer is cut.
func TestPings(t *testing.T) {
	b := configured(t, func(c *config.Config) { c.KeepAliveIntervalMs = 100 })
	silent := brokertest.DialRaw(t, b.ClientURL("t"))
	if opcode, _, err := silent.Read(); err != nil || opcode != brokertest.OpPing {
		t.Errorf("opcode %d, %v", opcode, err)
	}
	if code, _, _ := silent.Closed(); code != 1006 {
		t.Errorf("the silent client was closed with %d", code)
	}
	brokertest.Equal(t, "line", b.Log.Wait(t, "did not answer a ping"),
		`[broker] a WebSocket client of slot "t" did not answer a ping within 100ms (keepAliveIntervalMs) and was disconnected`)
	b.Sessions(t, "t", 0)
	if lines := b.Log.Lines("did not answer a ping"); len(lines) != 1 {
		t.Errorf("logged %q", lines)
	}
}

// F-43: who answers stays. A machine that is too busy to answer within one interval
// is given a longer one.
func TestAnsweredPings(t *testing.T) {
	answers := func(every config.Milliseconds) (err error) {
		b := configured(t, func(c *config.Config) { c.KeepAliveIntervalMs = every })
		c := brokertest.DialRaw(t, b.ClientURL("s"))
		for n := 0; n < 5 && err == nil; n++ {
			opcode, payload, broken := c.Read()
			if broken != nil {
				return broken
			}
			brokertest.Equal(t, "opcode", fmt.Sprint(opcode), fmt.Sprint(brokertest.OpPing))
			err = c.TryWrite(brokertest.AppendFrame(nil, fin|brokertest.OpPong, payload))
		}
		return err
	}
	for every := config.Milliseconds(50); ; every *= 8 {
		err := answers(every)
		switch {
		case err == nil:
			return
		case every > 5000:
			t.Fatalf("cut in spite of its answers, every %d ms: %v", every, err)
		}
	}
}

// Design section 2: a client that does not read is closed with 1013 behind what
// is being written, with one line; the others never notice.
func TestSlowReader(t *testing.T) {
	b, p, bystander := served(t)
	stalled := brokertest.DialRaw(t, b.ClientURL("s"))
	b.Sessions(t, "s", 2)
	large := `{"method":"n","params":"` + strings.Repeat("x", 64<<10) + `"}`
	done := make(chan struct{})
	go func() {
		defer close(done)
		for len(b.Log.Lines("reads too slowly")) == 0 {
			p.Send(large)
			brokertest.Equal(t, "another client", bystander.Receive(), large)
		}
	}()
	brokertest.Equal(t, "line", b.Log.Wait(t, "reads too slowly"), `[broker] a WebSocket client of slot "s" was closed: it reads too slowly`)
	// At once: what is being written to it is given up after 10 s.
	if code, reason, messages := stalled.Closed(); code != 1013 || reason != "The client reads too slowly" || messages == 0 {
		t.Errorf("closed %d %q after %d messages", code, reason, messages)
	}
	<-done
	b.Sessions(t, "s", 1)
	works(t, p, bystander)
}

// Spec 01 5.12: a stop writes what waits and says goodbye with 1001.
func TestStop(t *testing.T) {
	b, p, c := served(t)
	p.Send(`{"method":"last"}`)
	brokertest.Equal(t, "before", c.Receive(), `{"method":"last"}`)
	b.Stop(t)
	if code, reason := c.Closed(); code != 1001 || reason != "The broker is stopping" {
		t.Errorf("closed %d %q", code, reason)
	}
}

// A client that does not answer the close frame is cut when the goodbyes are
// over; others, and providers, get theirs meanwhile.
func TestStopWithSilentClient(t *testing.T) {
	b, p, c := served(t)
	silent := brokertest.DialRaw(t, b.ClientURL("s"))
	b.Sessions(t, "s", 2)
	b.Stop(t)
	for _, want := range []string{"close frame", "end"} {
		opcode, _, err := silent.Read()
		if want == "end" != (err != nil) || err == nil && opcode != brokertest.OpClose {
			t.Errorf("%s: opcode %d, %v", want, opcode, err)
		}
	}
	for _, peer := range []*brokertest.Socket{p, c} {
		if code, reason := peer.Closed(); code != 1001 || reason != "The broker is stopping" {
			t.Errorf("closed %d %q", code, reason)
		}
	}
}

// A crash of the session's actor closes its socket with 1011, and nobody else's.
func TestCrash(t *testing.T) {
	var armed atomic.Bool
	b, p, c := served(t, mcpbroker.WithTap(func(_ string, message any) {
		if _, ok := message.(*msg.ClientFrame); ok && armed.CompareAndSwap(true, false) {
			panic("injected")
		}
	}))
	other := brokertest.Dial(t, b.ClientURL("s"), nil)
	armed.Store(true)
	c.Send(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
	if code, reason := c.Closed(); code != 1011 || reason != "The session failed; connect again" {
		t.Errorf("closed %d %q", code, reason)
	}
	b.Sessions(t, "s", 1)
	works(t, p, other)
}
