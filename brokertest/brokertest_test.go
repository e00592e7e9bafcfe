package brokertest_test

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"mcpbroker/brokertest"
	"mcpbroker/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// Each provider of the package serves a client of the package.
func TestPeers(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	for slot, p := range map[string]brokertest.Provider{
		"d": b.Dedicated(t, "d"), "m": b.Multiplexed(t, "m"), "a/b ": b.Multiplexed(t, "a/b "), "l": b.Loopback(t, "l"),
	} {
		c := brokertest.NewClient(t, b.MCPURL(slot))
		c.Handshake(p)
		reply := c.Start(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
		brokertest.Respond(p, p.Receive(), `"ok"`)
		if a := c.Await(reply); a.Status != 200 || a.Body != `{"jsonrpc":"2.0","id":1,"result":"ok"}` {
			t.Errorf("slot %q: %d %s", slot, a.Status, a.Body)
		}
		stream := c.Listen()
		if got := stream.Next(); got != ": open" {
			t.Errorf("slot %q: stream begins with %q", slot, got)
		}
		stream.Close()
		if got := stream.Next(); got != "" {
			t.Errorf("slot %q: a closed stream yields %q", slot, got)
		}
		b.Sessions(t, slot, 1)
		b.Pending(t, slot, 0)
	}
}

// A stop before the end of the test is no error, nor is a second one.
func TestStopEarly(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	p := b.Dedicated(t, "s")
	b.Stop(t)
	b.Stop(t)
	if code, reason := p.Closed(); code != 1001 || reason != "The broker is stopping" {
		t.Errorf("closed %d %q", code, reason)
	}
}

// Frames written by hand are what a library reads, in every length form, and the
// other way round.
func TestRaw(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	p := brokertest.DialRaw(t, b.ProviderURL("s"))
	for _, size := range []int{1, 125, 126, 1<<16 - 1, 1 << 16, 1 << 17} {
		id := `"` + strings.Repeat("x", size) + `"`
		p.Text(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`)
		opcode, payload, err := p.Read()
		if err != nil || opcode != brokertest.OpText || string(payload) != `{"jsonrpc":"2.0","id":`+id+`,"result":{}}` {
			t.Fatalf("%d bytes: opcode %d, %d bytes, %v", size, opcode, len(payload), err)
		}
	}
	go b.Stop(t)
	if code, _, messages := p.Closed(); code != 1001 || messages != 0 {
		t.Errorf("closed %d after %d messages", code, messages)
	}
	if _, _, err := p.Read(); err != io.EOF {
		t.Errorf("read after the end: %v", err)
	}
}

// Exchange sends what no HTTP library would.
func TestExchange(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	if a := b.Exchange(t, "OPTIONS /%zz HTTP/1.1\r\nHost: x\r\n\r\n"); a.Status != 204 || a.Body != "" {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if a := b.Refused(t, "/provider", "X-Extra: 1"); a.Status != 400 {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

// The log finds lines that came before and lines that come later.
func TestLog(t *testing.T) {
	l := brokertest.NewLog(t)
	log := slog.New(l)
	log.Debug("not kept")
	log.Info("a one")
	go func() {
		for i := range 3 {
			log.Warn(fmt.Sprintf("b %d", i))
		}
	}()
	if got := l.Wait(t, "a", "one"); got != "a one" {
		t.Errorf("found %q", got)
	}
	if got := l.WaitN(t, 3, "b "); len(got) != 3 || got[0] != "b 0" || got[2] != "b 2" {
		t.Errorf("found %q", got)
	}
	if got := l.Lines("not kept"); got != nil {
		t.Errorf("found %q", got)
	}
	l.WithGroup("g")
	l.WithAttrs(nil)
}
