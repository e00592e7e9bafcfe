package aggregate_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbroker"
	"mcpbroker/actors/wire"
	"mcpbroker/brokertest"
	"mcpbroker/config"
)

// patience bounds every wait. Only a failing test uses it up.
const patience = 30 * time.Second

// caller is a client of one slot: JSON-RPC messages without their framing.
type caller interface {
	Send(frame string)
	Receive() string // the next message, an answer or not
}

type dialer func(t testing.TB, b *brokertest.Broker, slot string) caller

var transports = map[string]dialer{
	"http": dialHTTP,
	"sse":  func(t testing.TB, b *brokertest.Broker, slot string) caller { return b.DialSSE(t, slot) },
	"ws": func(t testing.TB, b *brokertest.Broker, slot string) caller {
		return brokertest.Dial(t, b.ClientURL(slot), nil)
	},
}

// everywhere runs a test against a broker reached over each transport.
func everywhere(t *testing.T, change func(*config.Config), test func(t *testing.T, b *brokertest.Broker, dial dialer)) {
	for name, dial := range transports {
		t.Run(name, func(t *testing.T) { test(t, start(t, change), dial) })
	}
}

// start starts a broker and waits until _broker is a member of _all.
func start(t testing.TB, change func(*config.Config)) *brokertest.Broker {
	t.Helper()
	c := config.Default()
	c.Host, c.Port = "127.0.0.1", 0
	if change != nil {
		change(c)
	}
	b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{mcpbroker.WithConfig(c)}})
	b.Log.Wait(t, `provider "_broker" joined "_all"`)
	return b
}

// httpCaller posts every message and takes what comes on the stream of its own
// answer. It opens no other stream.
type httpCaller struct {
	t       testing.TB
	url     string
	session string
	client  *http.Client
	ctx     context.Context
	in      chan string
	run     sync.WaitGroup
}

func dialHTTP(t testing.TB, b *brokertest.Broker, slot string) caller {
	ctx, cancel := context.WithCancel(context.Background())
	c := &httpCaller{t: t, url: b.MCPURL(slot), client: &http.Client{Transport: &http.Transport{}}, ctx: ctx, in: make(chan string, 4096)}
	t.Cleanup(func() { cancel(); c.run.Wait(); c.client.CloseIdleConnections() })
	return c
}

func (c *httpCaller) Send(frame string) {
	c.t.Helper()
	f, err := wire.Scan([]byte(frame))
	if err != nil {
		c.t.Fatalf("scan %s: %v", frame, err)
	}
	if f.IsRequest() && string(f.Method) != "initialize" {
		c.run.Go(func() { c.post(frame) })
		return
	}
	c.post(frame)
}

func (c *httpCaller) post(frame string) {
	r, _ := http.NewRequestWithContext(c.ctx, http.MethodPost, c.url, strings.NewReader(frame))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		r.Header.Set("Mcp-Session-Id", c.session)
	}
	resp, err := c.client.Do(r)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	if session := resp.Header.Get("Mcp-Session-Id"); session != "" && c.session == "" {
		c.session = session
	}
	lines := bufio.NewReader(resp.Body)
	events := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
	for {
		line, err := lines.ReadString('\n')
		line = strings.TrimRight(line, "\n")
		data, isData := strings.CutPrefix(line, "data: ")
		switch {
		case events && isData:
			c.in <- data
		case !events && line != "":
			c.in <- line
		}
		if err != nil {
			return
		}
	}
}

func (c *httpCaller) Receive() string {
	c.t.Helper()
	select {
	case message := <-c.in:
		return message
	case <-time.After(patience):
		c.t.Fatalf("nothing came within %s", patience)
	}
	return ""
}

const initialize = `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"x","version":"1"}}}`

// open connects a client and initializes it.
func open(t testing.TB, b *brokertest.Broker, dial dialer, slot string) caller {
	t.Helper()
	c := dial(t, b, slot)
	c.Send(initialize)
	answer(t, c, `"init"`)
	c.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

// answer returns the answer with this id, passing over notifications of lists.
func answer(t testing.TB, c caller, id string) string {
	t.Helper()
	for {
		message := c.Receive()
		if strings.Contains(message, `/list_changed"`) {
			continue
		}
		if got := brokertest.ID(message); got != id {
			t.Fatalf("got %s, want the answer to %s", message, id)
		}
		return message
	}
}

// event returns the next message that is no notification of lists.
func event(c caller) string {
	for {
		if message := c.Receive(); !strings.Contains(message, `/list_changed"`) {
			return message
		}
	}
}

const joinAll = `{"jsonrpc":"2.0","method":"notifications/register","params":{"aggregate":true}}`

// admit answers what _all asks a provider that has asked to join.
func admit(t testing.TB, b *brokertest.Broker, p brokertest.Provider, slot, capabilities, list string) {
	t.Helper()
	handshake(t, p, capabilities)
	request := p.Receive()
	if !strings.Contains(request, `"method":"tools/list"`) {
		t.Fatalf("got %s, want tools/list", request)
	}
	brokertest.Respond(p, request, list)
	b.Log.Wait(t, `provider "`+slot+`" joined "_all"`)
	refuse(t, p, "prompts/list")
}

// refuse answers what _all asks for although it is not declared.
func refuse(t testing.TB, p brokertest.Provider, method string) {
	t.Helper()
	request := p.Receive()
	if !strings.Contains(request, `"method":"`+method+`"`) {
		t.Fatalf("got %s, want %s", request, method)
	}
	p.Send(`{"jsonrpc":"2.0","id":` + brokertest.ID(request) + `,"error":{"code":-32601,"message":"Method not found"}}`)
}

func handshake(t testing.TB, p brokertest.Provider, result string) {
	t.Helper()
	request := p.Receive()
	if !strings.Contains(request, `"method":"initialize"`) || !strings.Contains(request, `"mcp-broker-aggregate"`) {
		t.Fatalf("got %s, want the initialize of _all", request)
	}
	brokertest.Respond(p, request, result)
	if note := p.Receive(); note != `{"jsonrpc":"2.0","method":"notifications/initialized"}` {
		t.Fatalf("got %s", note)
	}
}

const (
	hasTools = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"p","version":"1"}}`
	oneTool  = `{"tools":[{"name":"run"}]}`
)

// member connects a provider with one tool that is a member of _all.
func member(t testing.TB, b *brokertest.Broker, slot string) *brokertest.Socket {
	t.Helper()
	p := b.Dedicated(t, slot)
	p.Send(joinAll)
	admit(t, b, p, slot, hasTools, oneTool)
	return p
}

func tools(t testing.TB, c caller, id string) (names []string, meta string) {
	t.Helper()
	c.Send(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/list"}`)
	result := wire.Member([]byte(answer(t, c, id)), "result")
	wire.Elements(wire.Member(result, "tools"), func(raw []byte) {
		name, _ := wire.Unquote(wire.Member(raw, "name"))
		if !strings.HasPrefix(name, "_broker-") {
			names = append(names, name)
		}
	})
	return names, string(wire.Member(result, "_meta"))
}

// wanted asks for the tools until they are these.
func wanted(t testing.TB, c caller, want ...string) (members string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		got, meta := tools(t, c, `"t"`)
		if strings.Join(got, " ") == strings.Join(want, " ") {
			return string(wire.Member([]byte(meta), "io.cyanmycelium/members"))
		}
		if time.Now().After(deadline) {
			t.Fatalf("tools are %q, want %q", got, want)
		}
	}
}
