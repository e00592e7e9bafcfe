package mcpbroker_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"mcpbroker"
	"mcpbroker/brokertest"
	"mcpbroker/config"
)

const (
	initializeSampling = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"sampling":{}},"clientInfo":{"name":"raw","version":"1"}}}`
	callTool           = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`
	createMessage      = `{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{"x":1.0}}`
)

// Decision 5: with serverRequests = "relay" the question travels on the stream
// that answers the call, and nowhere else does a call without a progress token
// get a stream.
func TestRelayOnThePost(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{
		mcpbroker.WithServerRequests("relay"), mcpbroker.WithSlot("refusing", config.Slot{ServerRequests: "refuse"}),
	}})
	p := b.Dedicated(t, "s")
	c := brokertest.NewClient(t, b.MCPURL("s"))
	opened := c.Start(initializeSampling)
	brokertest.Respond(p, p.Receive(), brokertest.ServerResult)
	c.Session = c.Await(opened).Header.Get("Mcp-Session-Id")
	c.Header.Set("Accept", "application/json, text/event-stream")

	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.MCPURL("s"), strings.NewReader(callTool))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = http.Header{"Mcp-Session-Id": {c.Session}, "Accept": {"text/event-stream"}}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	answered := make(chan *http.Response, 1)
	go func() {
		response, err := transport.RoundTrip(request)
		if err != nil {
			t.Errorf("post: %v", err)
		}
		answered <- response
	}()
	call := p.Receive()
	p.Send(createMessage)
	response := <-answered
	if response == nil {
		return
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	next := func() string {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return data
			}
		}
		return ""
	}
	ask := next()
	if want := `{"jsonrpc":"2.0","id":` + brokertest.ID(ask) + `,"method":"sampling/createMessage","params":{"x":1.0}}`; ask != want {
		t.Fatalf("the client was asked %s, want %s", ask, want)
	}
	if a := c.Post(`{"jsonrpc":"2.0","id":` + brokertest.ID(ask) + `,"result":{"role":"assistant"}}`); a.Status != http.StatusAccepted {
		t.Errorf("the answer: %d %s", a.Status, a.Body)
	}
	if got, want := p.Receive(), `{"jsonrpc":"2.0","id":"q","result":{"role":"assistant"}}`; got != want {
		t.Errorf("the provider received %s, want %s", got, want)
	}
	brokertest.Respond(p, call, "{}")
	if got, want := next(), `{"jsonrpc":"2.0","id":1,"result":{}}`; got != want {
		t.Errorf("the stream ends with %s, want %s", got, want)
	}

	refusing := b.Dedicated(t, "refusing")
	refusing.Send(createMessage)
	if got := refusing.Receive(); !strings.Contains(got, `"id":"q"`) || !strings.Contains(got, "-32601") {
		t.Errorf("the slot that refuses: %s", got)
	}
}

// Spec 01 4.5: the configured bounds reach the slot.
func TestSubscriptionBounds(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{
		mcpbroker.WithResourceSubscriptions(config.ResourceSubscriptions{MaxSubscriptionsPerClient: 1, MaxSubscriptionsPerSlot: 2, MaxResourceURILength: 5}),
	}})
	p := b.Dedicated(t, "s")
	one, two := brokertest.Dial(t, b.WSURL()+"/s", nil), brokertest.Dial(t, b.WSURL()+"/s", nil)
	subscribe := func(c *brokertest.Socket, uri string) {
		c.Send(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"` + uri + `"}}`)
	}
	for _, c := range []struct {
		client *brokertest.Socket
		uri    string
		names  string // the bound that refuses, empty for none
	}{
		{one, "u://six", "maxResourceUriLength"},
		{one, "u://1", ""},
		{one, "u://2", "maxSubscriptionsPerClient"},
		{two, "u://3", ""},
		{brokertest.Dial(t, b.WSURL()+"/s", nil), "u://4", "maxSubscriptionsPerSlot"},
	} {
		subscribe(c.client, c.uri)
		if c.names == "" {
			brokertest.Respond(p, p.Receive(), "{}")
		}
		answer := c.client.Receive()
		if c.names == "" && answer != `{"jsonrpc":"2.0","id":1,"result":{}}` || !strings.Contains(answer, c.names) {
			t.Errorf("%s: %s, want %s", c.uri, answer, c.names)
		}
	}
}

// Spec 01 4.6: a broker that has to introduce itself gives its name and version.
func TestIdentity(t *testing.T) {
	c := config.Default()
	c.Host, c.Port, c.BrokerName = "127.0.0.1", 0, `plant "7"`
	b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{mcpbroker.WithConfig(c), mcpbroker.WithVersion("1.2.3")}})
	p := b.Dedicated(t, "s")
	client := brokertest.Dial(t, b.WSURL()+"/s", nil)
	client.Send(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"u"}}`)
	brokertest.Respond(p, p.Receive(), "{}")
	client.Receive()
	p.Close(1000, "")
	b.Empty(t, "s")
	next := b.Dedicated(t, "s")
	got := next.Receive()
	if want := `"clientInfo":{"name":"plant \"7\"","version":"1.2.3"}`; !strings.Contains(got, `"initialize"`) || !strings.Contains(got, want) {
		t.Errorf("the new provider received %s, want %s", got, want)
	}
}
