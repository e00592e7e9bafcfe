package stdio_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"mcpbroker"
	"mcpbroker/actors/wire"
	"mcpbroker/brokertest"
)

// patience is how long a test waits for what it expects, on a machine that is busy.
const patience = 30 * time.Second

// host is the process at the other end of the pipes.
type host struct {
	t     testing.TB
	in    *io.PipeWriter
	lines chan string
	done  <-chan struct{}
}

// attach starts a bridge to a slot.
func attach(t testing.TB, b *brokertest.Broker, slot string) *host {
	t.Helper()
	inReader, in := io.Pipe()
	out, outWriter := io.Pipe()
	h := &host{t: t, in: in, lines: make(chan string, 1024)}
	var err error
	if h.done, err = b.ServeStdio(t.Context(), slot, inReader, outWriter); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for r := bufio.NewReader(out); ; {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			h.lines <- strings.TrimSuffix(line, "\n")
		}
	}()
	t.Cleanup(func() {
		_ = in.Close()
		<-h.done
		_ = outWriter.Close()
		<-ended
	})
	return h
}

// write writes bytes as they are.
func (h *host) write(text string) {
	h.t.Helper()
	if _, err := io.WriteString(h.in, text); err != nil {
		h.t.Fatalf("write to the bridge: %v", err)
	}
}

func (h *host) send(frame string) { h.t.Helper(); h.write(frame + "\n") }

func (h *host) receive() string {
	h.t.Helper()
	select {
	case line := <-h.lines:
		return line
	case <-time.After(patience):
		h.t.Fatalf("no line within %s", patience)
		return ""
	}
}

func (h *host) expect(want string) {
	h.t.Helper()
	if got := h.receive(); got != want {
		h.t.Errorf("the host received\n got %.300s\nwant %.300s", got, want)
	}
}

// ended waits for the end of the bridge.
func (h *host) ended() {
	h.t.Helper()
	select {
	case <-h.done:
	case <-time.After(patience):
		h.t.Fatalf("the bridge has not ended within %s", patience)
	}
}

var freshTrace = regexp.MustCompile(`00-[0-9a-f]{32}-[0-9a-f]{16}-01`)

func equal(t testing.TB, what, got, want string) {
	t.Helper()
	if got = freshTrace.ReplaceAllString(got, "$$TRACE"); got != want {
		t.Errorf("%s:\n got %.300s\nwant %.300s", what, got, want)
	}
}

func served(t testing.TB, opts ...mcpbroker.Option) (*brokertest.Broker, *brokertest.Socket, *host) {
	t.Helper()
	b := brokertest.Start(t, brokertest.Options{Configure: opts})
	p := b.Dedicated(t, "s")
	return b, p, attach(t, b, "s")
}

// Spec 01 5.7: requests, notifications and broadcasts, without a handshake.
func TestNoHandshake(t *testing.T) {
	_, p, h := served(t)
	h.send(`{"jsonrpc":"2.0","id":"x","method":"tools/list"}`)
	equal(t, "B>P", p.Receive(), `{"jsonrpc":"2.0","id":"brk-1","method":"tools/list","params":{"_meta":{"traceparent":"$TRACE"}}}`)
	p.Send(`{"jsonrpc":"2.0","id":"brk-1","result":{"tools":[]}}`)
	h.expect(`{"jsonrpc":"2.0","id":"x","result":{"tools":[]}}`)
	h.send(`{"jsonrpc":"2.0","method":"notifications/x"}`)
	equal(t, "B>P", p.Receive(), `{"jsonrpc":"2.0","method":"notifications/x"}`)
	p.Send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	h.expect(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
}

// F-17: a line that is no UTF-8 is answered, and the bridge lives.
func TestInvalidUTF8(t *testing.T) {
	_, p, h := served(t)
	h.send("\"\xff\"")
	h.expect(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: the message is not valid UTF-8"}}`)
	h.send(`{"jsonrpc":"2.0","method":"last"}`)
	equal(t, "B>P", p.Receive(), `{"jsonrpc":"2.0","method":"last"}`)
}

// Rows 59, 61 and 62: line ends, blank lines, a byte order mark, and text that
// comes byte by byte.
func TestFraming(t *testing.T) {
	_, p, h := served(t)
	frame := func(n int) string {
		return fmt.Sprintf("{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":[%d,\"读é🎉\u2028\u2029\u0085\"]}", n)
	}
	text := "\uFEFF" + frame(1) + "\r\n\n\r\n  " + frame(2) + "\t\n" + frame(3) + "\n"
	for i := range len(text) {
		h.write(text[i : i+1])
	}
	for n := range 3 {
		equal(t, "B>P", p.Receive(), frame(n+1))
	}
}

// Row 56: the cap on one message. One more byte is refused with the words of every
// transport, and the bridge lives.
func TestLimit(t *testing.T) {
	const limit = 2 << 20
	_, p, h := served(t, mcpbroker.WithMaxMessageBytes(limit))
	note := func(size int) string {
		frame := `{"jsonrpc":"2.0","method":"n","params":[""]}`
		return frame[:len(frame)-3] + strings.Repeat("x", size-len(frame)) + `"]}`
	}
	h.send(note(limit))
	equal(t, "to the provider", p.Receive(), note(limit))
	p.Send(note(limit))
	h.expect(note(limit))
	for _, size := range []int{limit + 1, 2 * limit} {
		h.send(note(size))
		h.expect(string(wire.TooLarge(limit).Response(nil)))
	}
	h.send(note(100))
	equal(t, "afterwards", p.Receive(), note(100))
}

// F-29: messages of several lines become one.
func TestOneLine(t *testing.T) {
	b, p, h := served(t)
	b.Sessions(t, "s", 1)
	p.Send("{\r\n \"jsonrpc\": \"2.0\",\n \"method\": \"notifications/x\"\n}")
	h.expect(`{   "jsonrpc": "2.0",  "method": "notifications/x" }`)
}

// Spec 01 8.3, section 9 item 24: a slot nobody serves is worth a warning, and its
// host is served once somebody does.
func TestWarning(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	b.Dedicated(t, "other")
	h := attach(t, b, "s")
	b.Log.Wait(t, `[mcp-broker] MCP_BROKER_STDIO_PROVIDER="s" names a slot this broker does not host`, `"_all"`, "Hosted slots: other.")
	p := b.Dedicated(t, "s")
	h.send(`{"jsonrpc":"2.0","id":2,"method":"initialize"}`)
	brokertest.Respond(p, p.Receive(), `{}`)
	h.expect(`{"jsonrpc":"2.0","id":2,"result":{}}`)
}

// Spec 01 8.3: no warning for a slot that is served, nor for the reserved ones.
func TestNoWarning(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	b.Loopback(t, "here")
	for _, slot := range []string{"here", "_all", "_broker"} {
		attach(t, b, slot)
	}
	if lines := b.Log.Lines("MCP_BROKER_STDIO_PROVIDER"); lines != nil {
		t.Errorf("warned: %q", lines)
	}
}

// F-37: at the end of the input answers owed are written first, notifications
// handed over; cancelled calls are not waited for.
func TestEndFlushes(t *testing.T) {
	b, p, h := served(t)
	h.send(`{"jsonrpc":"2.0","id":1,"method":"slow"}`)
	h.send(`{"jsonrpc":"2.0","id":2,"method":"cancelled"}`)
	h.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	h.write(`{"jsonrpc":"2.0","method":"last"}`) // without a line end
	_ = h.in.Close()
	slow := p.Receive()
	for !strings.Contains(p.Receive(), `"last"`) {
	}
	brokertest.Respond(p, slow, `"late"`)
	h.expect(`{"jsonrpc":"2.0","id":1,"result":"late"}`)
	h.expect(`{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"Session closed"}}`)
	h.ended()
	b.Sessions(t, "s", 0)
}

// Spec 01 5.12: a broker that has stopped takes no host.
func TestStopped(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	b.Stop(t)
	if _, err := b.ServeStdio(t.Context(), "s", strings.NewReader(""), io.Discard); err == nil {
		t.Error("a stopped broker takes a host")
	}
}

// failing is an output that is gone.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// A host that does not take its answers any more has gone.
func TestOutputFails(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	in, w := io.Pipe()
	defer w.Close()
	done, err := b.ServeStdio(t.Context(), "_all", in, failing{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, "junk\n"); err != nil {
		t.Fatal(err)
	}
	b.Log.Wait(t, "[broker] stdio client transport: write: broken pipe")
	<-done
}

// A fault of the input ends the bridge like its end, and is logged.
func TestInputFails(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	in, w := io.Pipe()
	_ = w.CloseWithError(errors.New("torn"))
	done, err := b.ServeStdio(t.Context(), "_all", in, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	b.Log.Wait(t, "[broker] stdio client transport: read: torn")
	<-done
}

// stalled is an output whose reader does nothing until released.
type stalled chan struct{}

func (s stalled) Write(p []byte) (int, error) { <-s; return len(p), nil }

// A host that does not read is closed at the bound, and costs the others nothing.
func TestSlowHost(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	p := b.Loopback(t, "s")
	in, w := io.Pipe()
	out := make(stalled)
	defer close(out)
	defer w.Close()
	done, err := b.ServeStdio(t.Context(), "s", in, out)
	if err != nil {
		t.Fatal(err)
	}
	b.Sessions(t, "s", 1)
	big := `{"jsonrpc":"2.0","method":"notifications/x","params":["` + strings.Repeat("x", 4<<20-100) + `"]}`
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		default:
			p.Send(big)
		}
	}
	b.Log.Wait(t, `[broker] the stdio host of slot "s" was closed: it reads too slowly`)
	b.Sessions(t, "s", 0)
}

// A session that fails costs the calls in flight; the host goes on with another.
func TestSessionCrash(t *testing.T) {
	b, p, h := served(t, mcpbroker.WithTap(func(_ string, message any) {
		if strings.Contains(fmt.Sprintf("%T", message), "ClientFrame") && strings.Contains(fmt.Sprintf("%s", message), "poison") {
			panic("injected")
		}
	}))
	h.send(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
	p.Receive()
	h.send(`{"jsonrpc":"2.0","id":2,"method":"poison"}`)
	answers := map[string]bool{h.receive(): true, h.receive(): true}
	for _, id := range []string{"1", "2"} {
		if want := string(wire.SessionClosed().Response([]byte(id))); !answers[want] {
			t.Errorf("answers %v, want %s", answers, want)
		}
	}
	b.Sessions(t, "s", 0)
	h.send(`{"jsonrpc":"2.0","id":3,"method":"after"}`)
	m := p.Receive()
	for !strings.Contains(m, `"after"`) {
		m = p.Receive()
	}
	brokertest.Respond(p, m, `{}`)
	h.expect(`{"jsonrpc":"2.0","id":3,"result":{}}`)
}
