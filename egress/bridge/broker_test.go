package bridge_test

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"mcpbroker"
	"mcpbroker/actors/wire"
	"mcpbroker/brokertest"
	"mcpbroker/config"
	"mcpbroker/egress/bridge"
	"mcpbroker/internal/freeport"
)

// bridged starts a broker with a provider on slot "s" and a host that has done its
// handshake over a bridge.
func bridged(t testing.TB, opts ...mcpbroker.Option) (*brokertest.Broker, *brokertest.Socket, *host) {
	t.Helper()
	b := brokertest.Start(t, brokertest.Options{Configure: opts})
	p := b.Dedicated(t, "s")
	h := start(t, b.MCPURL("s"))
	h.send(initialize)
	brokertest.Respond(p, p.Receive(), brokertest.ServerResult)
	h.expect(`{"jsonrpc":"2.0","id":0,"result":` + brokertest.ServerResult + `}`)
	h.send(initialized)
	p.Receive()
	return b, p, h
}

// Calls, notifications and broadcasts through a real broker; the session ends with
// the host.
func TestRelay(t *testing.T) {
	b, p, h := bridged(t)
	h.send(`{"jsonrpc":"2.0","id":"x","method":"m","params":{"big":12345678901234567890,"text":"读é🎉"}}`)
	m := p.Receive()
	if !strings.Contains(m, `"big":12345678901234567890,"text":"读é🎉"`) {
		t.Errorf("the provider received %s", m)
	}
	brokertest.Respond(p, m, `{"unknown":1e400}`)
	h.expect(`{"jsonrpc":"2.0","id":"x","result":{"unknown":1e400}}`)
	p.Send("{\"jsonrpc\":\"2.0\",\n\"method\":\"notifications/tools/list_changed\"}")
	h.expect(`{"jsonrpc":"2.0", "method":"notifications/tools/list_changed"}`)
	if err := h.end(); err != nil {
		t.Error(err)
	}
	b.Sessions(t, "s", 0)
}

// F-17 and the checks of the broker, as a host on a pipe gets them.
func TestJunk(t *testing.T) {
	_, _, h := bridged(t)
	for _, c := range []struct{ line, code string }{
		{"junk", "-32700"}, {"\"\xff\"", "-32700"}, {`{"id":1,"id":2,"method":"m"}`, "-32600"},
		{"[]", "-32600"}, {"7", "-32600"}, {`{"id":null,"method":"m"}`, "-32600"},
	} {
		h.send(c.line)
		if got := h.receive(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":null,"error":{"code":`+c.code+",") {
			t.Errorf("%q is answered %s", c.line, got)
		}
	}
}

// Row 56: large messages both ways; the broker's limit is the broker's answer.
func TestSizes(t *testing.T) {
	const limit = 1 << 20
	_, p, h := bridged(t, mcpbroker.WithMaxMessageBytes(limit))
	note := func(size int) string {
		frame := `{"jsonrpc":"2.0","method":"n","params":[""]}`
		return frame[:len(frame)-3] + strings.Repeat("x", size-len(frame)) + `"]}`
	}
	for _, size := range []int{64<<10 - 1, 64<<10 + 1, limit} {
		h.send(note(size))
		if p.Receive() != note(size) {
			t.Errorf("%d bytes to the provider arrived otherwise", size)
		}
		p.Send(note(size))
		h.expect(note(size))
	}
	for _, size := range []int{limit + 1, 8 * limit} {
		h.send(`{"jsonrpc":"2.0","id":1,"method":"m","params":["` + strings.Repeat("x", size) + `"]}`)
		h.expect(string(wire.TooLarge(limit).Response([]byte("1"))))
	}
}

// Row 47: a request of the provider reaches the host, and its answer the provider.
func TestServerRequest(t *testing.T) {
	c := config.Default()
	c.Host, c.Port, c.ServerRequests = "127.0.0.1", 0, config.ServerRequestsRelay
	b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{mcpbroker.WithConfig(c)}})
	p := b.Dedicated(t, "s")
	h := start(t, b.MCPURL("s"))
	h.send(strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{"sampling":{}}`, 1))
	brokertest.Respond(p, p.Receive(), brokertest.ServerResult)
	h.receive()
	h.send(initialized)
	p.Receive()
	h.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}`)
	call := p.Receive()
	p.Send(`{"jsonrpc":"2.0","id":77,"method":"sampling/createMessage","params":{}}`)
	ask := h.receive()
	if !strings.Contains(ask, `"method":"sampling/createMessage"`) {
		t.Fatalf("the host was asked %s", ask)
	}
	h.send(`{"jsonrpc":"2.0","id":` + brokertest.ID(ask) + `,"result":{"role":"assistant"}}`)
	if got, want := p.Receive(), `{"jsonrpc":"2.0","id":77,"result":{"role":"assistant"}}`; got != want {
		t.Errorf("the provider was answered %s, want %s", got, want)
	}
	brokertest.Respond(p, call, `{}`)
	h.expect(`{"jsonrpc":"2.0","id":1,"result":{}}`)
}

// Progress arrives once, in its order, with the host's token, and before the
// answer.
func TestProgress(t *testing.T) {
	_, p, h := bridged(t)
	for round := range 20 {
		h.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"m","params":{"_meta":{"progressToken":"t"}}}`, round))
		m := p.Receive()
		token := string(wire.Member(wire.Member(wire.Member([]byte(m), "params"), "_meta"), "progressToken"))
		for i := range 3 {
			p.Send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, token, i))
		}
		brokertest.Respond(p, m, `{}`)
		for i := range 3 {
			h.expect(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":%d}}`, i))
		}
		h.expect(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, round))
	}
}

// A broker that is down is named in the answer to each request; one that comes
// back, on the same port, is used again: with another session, the same
// subscriptions, and no word from the host.
func TestBrokerRestart(t *testing.T) {
	number := quietPort(t)
	b, p, h := bridged(t, mcpbroker.WithPort(number))
	h.send(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"file:///a"}}`)
	brokertest.Respond(p, p.Receive(), `{}`)
	h.expect(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	port := strconv.Itoa(number)
	b.Stop(t)
	for id, told := 0, 0; told < 2; id++ {
		h.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"m"}`, id))
		want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32000,"message":"Cannot reach the broker at http://127.0.0.1:%s/s/mcp: dial tcp 127.0.0.1:%s: connect: connection refused. `, id, port, port)
		got := h.receive()
		if told == 0 && id < 8 && strings.Contains(got, "was lost: ") {
			continue // on a connection of before whose end had not been noticed
		}
		if told++; !strings.HasPrefix(got, want) {
			t.Errorf("answered %s, want %s", got, want)
		}
	}
	h.log.Wait(t, "[mcp-broker] bridge: cannot reach the broker at http://127.0.0.1:"+port+"/s/mcp: ")

	b = brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{mcpbroker.WithPort(number)}})
	h.log.Wait(t, "answers again")
	p = b.Dedicated(t, "s")
	seen := map[string]bool{}
	for !seen["resources/subscribe"] || !seen["m"] {
		m := p.Receive()
		method, _ := wire.Unquote(wire.Member([]byte(m), "method"))
		if seen[method] = true; brokertest.ID(m) != "" {
			brokertest.Respond(p, m, `{"method":"`+method+`"}`)
		}
		if method == "resources/subscribe" {
			h.expect(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///a"}}`)
			h.send(`{"jsonrpc":"2.0","id":2,"method":"m"}`)
		}
	}
	h.expect(`{"jsonrpc":"2.0","id":2,"result":{"method":"m"}}`)
	p.Send(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///a"}}`)
	h.expect(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///a"}}`)
}

// A bridge that was started before its broker opens the session with the host's
// initialize, once it can: the host, which would give up, is not told before.
func TestBrokerLater(t *testing.T) {
	addr := nobody(t)
	h := start(t, "http://"+addr.String()+"/s/mcp")
	h.send(initialize)
	h.log.Wait(t, "[mcp-broker] bridge: initialize waits for it, up to 30s")
	b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{mcpbroker.WithPort(addr.Port)}})
	h.expect(string(wire.NotConnected("s").Response([]byte("0"))))
	h.send(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
	h.expect(string(wire.NotConnected("s").Response([]byte("1"))))
	b.Sessions(t, "s", 1)
}

// nobody is an address where no broker is, yet.
func nobody(t testing.TB) *net.TCPAddr {
	t.Helper()
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: quietPort(t)}
}

// quietPort is a port that stays free while no broker listens on it.
func quietPort(t testing.TB) int {
	t.Helper()
	port, release, err := freeport.Reserve(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return port
}

// The wait of initialize ends with its time, or with the host; the answer says what was
// the matter. A later message opens the session.
func TestBrokerAway(t *testing.T) {
	addr := nobody(t)
	away := `{"jsonrpc":"2.0","id":0,"error":{"code":-32000,"message":"Cannot reach the broker at `
	told := func(h *host) {
		t.Helper()
		if got := h.receive(); !strings.HasPrefix(got, away) {
			t.Errorf("answered %s", got)
		}
	}
	h := start(t, "http://"+addr.String()+"/s/mcp")
	h.send(initialize)
	h.log.Wait(t, "initialize waits")
	_ = h.in.Close()
	told(h)

	soon := func(int) time.Duration { return time.Millisecond }
	h = startWith(t, bridge.Config{URL: "http://" + addr.String() + "/s/mcp", Retry: soon, Wait: 20 * time.Millisecond})
	h.send(initialize)
	told(h)

	h = startWith(t, bridge.Config{URL: "http://" + addr.String() + "/s/mcp", Retry: soon, Wait: -1})
	h.send(initialize)
	told(h)
	b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{mcpbroker.WithPort(addr.Port)}})
	h.send(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
	h.expect(string(wire.NotConnected("s").Response([]byte("1"))))
	b.Sessions(t, "s", 1)
}
