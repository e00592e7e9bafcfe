package introspection_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbroker"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
	"mcpbroker/brokertest"
	"mcpbroker/config"
)

// open is a client of _broker with a session.
func open(t *testing.T, b *brokertest.Broker) *brokertest.Client {
	t.Helper()
	c := brokertest.NewClient(t, b.MCPURL("_broker"))
	c.Initialize()
	return c
}

// callTool returns what a tool gives, as the object or as the text.
func callTool(t *testing.T, c *brokertest.Client, name, arguments string) string {
	t.Helper()
	a := c.Post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, name, arguments))
	result := wire.Member([]byte(a.Body), "result")
	if object := wire.Member(result, "structuredContent"); object != nil {
		return string(object)
	}
	return a.Body
}

type slot struct {
	Name                                                               string
	Transport                                                          string
	Connected, Aggregate                                               bool
	ConnectedSince                                                     *time.Time
	ConnectedForMs                                                     *int64
	ClientCount, SessionCount, PendingCount, ResourceSubscriptionCount int
}

func slots(t *testing.T, c *brokertest.Client) map[string]slot {
	t.Helper()
	var list struct {
		Count     int
		Providers []slot
	}
	object := callTool(t, c, "providers_list", "{}")
	if err := json.Unmarshal([]byte(object), &list); err != nil || list.Count != len(list.Providers) {
		t.Fatalf("providers_list: %v in %s", err, object)
	}
	byName := map[string]slot{}
	for _, s := range list.Providers {
		byName[s.Name] = s
	}
	return byName
}

const initializeAnswer = `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","serverInfo":{"name":"_broker","version":"dev"},` +
	`"capabilities":{"resources":{"subscribe":true,"listChanged":true},"tools":{"listChanged":true}},"_meta":{"grammar":"default:en"}}}`

// Spec 03 1.1, 1.2: every client transport reaches the slot.
func TestWireTransports(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	c := brokertest.NewClient(t, b.MCPURL("_broker"))
	brokertest.Is(t, "Streamable HTTP", c.Initialize(), 200, initializeAnswer)

	ws := brokertest.Dial(t, b.ClientURL("_broker"), nil)
	ws.Send(brokertest.InitializeFrame)
	brokertest.Equal(t, "WebSocket", ws.Receive(), initializeAnswer)

	sse := b.DialSSE(t, "_broker")
	sse.Send(brokertest.InitializeFrame)
	brokertest.Equal(t, "legacy SSE", sse.Receive(), initializeAnswer)
}

// Spec 03 1.1: no provider may claim the name; the multiplexed socket stays open.
func TestWireReserved(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	dedicated := brokertest.Dial(t, b.ProviderURL("_broker"), nil)
	code, reason := dedicated.Closed()
	if code != 1008 || reason != `Provider "_broker" is reserved by the broker` {
		t.Errorf("a dedicated provider is closed with %d %q", code, reason)
	}
	shared := brokertest.Dial(t, b.ProvidersURL(), nil)
	shared.Send(`{"provider":"_broker","payload":{"jsonrpc":"2.0","method":"notifications/register"}}`)
	brokertest.Equal(t, "a multiplexed provider", shared.Receive(),
		`{"provider":"_broker","payload":{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Provider \"_broker\" is reserved by the broker"}}}`)
	b.Lane(t, shared, "other")
	brokertest.Is(t, "the server", open(t, b).Post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`), 200, `{"jsonrpc":"2.0","id":1,"result":{}}`)
}

// Spec 03 1.3: frames that are no request, on the socket that keeps its session.
func TestWireMalformed(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	ws := brokertest.Dial(t, b.ClientURL("_broker"), nil)
	for _, c := range []struct {
		frame string
		code  string
	}{{`{`, "-32700"}, {`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, "-32600"}, {`{"jsonrpc":"2.0","id":null,"method":"ping"}`, "-32600"}} {
		ws.Send(c.frame)
		if got := ws.Receive(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":null,"error":{"code":`+c.code+`,`) {
			t.Errorf("%s: %s", c.frame, got)
		}
	}
	ws.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	ws.Send(`{"jsonrpc":"2.0","id":"x","method":"ping"}`)
	brokertest.Equal(t, "afterwards", ws.Receive(), `{"jsonrpc":"2.0","id":"x","result":{}}`)
}

// Spec 03 10.2 items 1 and 2: a bad percent sequence is a name like any other, or
// not found; nothing fails.
func TestWireBadPercent(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	c := open(t, b)
	const read = `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"broker://providers/%zz"}}`
	brokertest.Is(t, "nobody's", c.Post(read), 200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"Resource not found: broker://providers/%zz"}}`)
	brokertest.NewClient(t, b.URL()+"/%25zz/mcp").Initialize()
	if got := c.Post(read).Body; !strings.Contains(got, `{\"name\":\"%zz\",\"transport\":\"none\"`) {
		t.Errorf("the slot %%zz: %s", got)
	}
	if a := b.Exchange(t, "GET /%zz/mcp HTTP/1.1\r\nHost: "+b.Host()+"\r\nConnection: close\r\n\r\n"); a.Status < 400 || a.Status >= 500 {
		t.Errorf("GET /%%zz/mcp: %d %s", a.Status, a.Body)
	}
	brokertest.Is(t, "the server", c.Post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`), 200, `{"jsonrpc":"2.0","id":1,"result":{}}`)
}

// Spec 03 1.4, 10.2 item 16: the identity, with the port that clients reach.
func TestWireBrokerInfo(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{mcpbroker.WithVersion("9.8.7")}})
	c := open(t, b)
	var info struct {
		Name, Version, Host, StartedAt string
		Port                           int
		UptimeSeconds                  int64
		TLS                            bool
		Paths                          map[string]string
	}
	object := callTool(t, c, "broker_info", "{}")
	if err := json.Unmarshal([]byte(object), &info); err != nil {
		t.Fatal(err)
	}
	if want := b.URL(); fmt.Sprintf("http://%s:%d", info.Host, info.Port) != want {
		t.Errorf("the address is %s:%d, want %s", info.Host, info.Port, want)
	}
	started, err := time.Parse("2006-01-02T15:04:05.000Z", info.StartedAt)
	if err != nil || time.Since(started) < 0 || info.UptimeSeconds < 0 || info.UptimeSeconds > int64(time.Since(started)/time.Second) {
		t.Errorf("started at %s, up for %d s (%v)", info.StartedAt, info.UptimeSeconds, err)
	}
	defaults := config.Default()
	want := map[string]string{
		"provider": defaults.Paths.Provider, "providers": defaults.Paths.Providers, "client": defaults.Paths.Client,
		"mcp": defaults.Paths.MCP, "sse": defaults.Paths.SSE, "messages": defaults.Paths.Messages,
	}
	if diff := cmp.Diff(want, info.Paths); diff != "" || info.Version != "9.8.7" || info.Name != defaults.BrokerName || info.TLS {
		t.Errorf("identity %s; paths (-want +got):\n%s", object, diff)
	}
}

// Spec 03 1.4: what is reported is live, on each way a provider comes, and a slot
// whose provider left stays listed.
func TestWireProvidersList(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	c := open(t, b)
	dedicated := b.Dedicated(t, "d")
	b.Multiplexed(t, "m")
	b.Loopback(t, "l")
	user := brokertest.NewClient(t, b.MCPURL("d"))
	user.Handshake(dedicated)
	brokertest.Dial(t, b.ClientURL("d"), nil)
	b.Sessions(t, "d", 2)
	pending := user.Start(`{"jsonrpc":"2.0","id":5,"method":"tools/list"}`)
	request := dedicated.Receive()

	got := slots(t, c)
	for name, transport := range map[string]string{"d": "ws", "m": "ws-multiplex", "l": "loopback", "_broker": "loopback"} {
		s := got[name]
		if s.Transport != transport || !s.Connected || s.ConnectedSince == nil || s.ConnectedForMs == nil || *s.ConnectedForMs < 0 {
			t.Errorf("slot %q is %+v", name, s)
		}
	}
	if s := got["d"]; s.ClientCount != 1 || s.SessionCount != 1 || s.PendingCount != 1 || s.Aggregate {
		t.Errorf("the callers of d are %+v", s)
	}
	if s := got["_broker"]; s.SessionCount != 1 || s.PendingCount != 1 || !s.Aggregate {
		t.Errorf("this slot is %+v", s)
	}
	brokertest.Respond(dedicated, request, "{}")
	user.Await(pending)
	dedicated.Close(1000, "")
	b.Empty(t, "d")
	if s := slots(t, c)["d"]; s.Transport != "none" || s.Connected || s.ConnectedSince != nil || s.PendingCount != 0 {
		t.Errorf("after its provider left d is %+v", s)
	}
	status := callTool(t, c, "provider_status", `{"name":"d"}`)
	if !strings.HasPrefix(status, `{"name":"d","transport":"none","connected":false,"aggregate":false,"connectedSince":null,"connectedForMs":null,"clientCount":1,"sessionCount":1,`) {
		t.Errorf("its status is %s", status)
	}
}

// Spec 03 1.6: a session that subscribes hears of a provider that comes and goes,
// once for the list and once for the slot; another session hears nothing.
func TestWireUpdates(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	ws, other := brokertest.Dial(t, b.ClientURL("_broker"), nil), brokertest.Dial(t, b.ClientURL("_broker"), nil)
	for i, uri := range []string{"broker://providers", "broker://providers/a%2F1"} {
		ws.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/subscribe","params":{"uri":%q}}`, i, uri))
		brokertest.Equal(t, "subscribe", ws.Receive(), fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, i))
	}
	both := func(what string) {
		t.Helper()
		for _, uri := range []string{"broker://providers", "broker://providers/a%2F1"} {
			brokertest.Equal(t, what, ws.Receive(), `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"`+uri+`"}}`)
		}
	}
	client := brokertest.NewClient(t, b.MCPURL("a/1"))
	client.Initialize()
	both("the slot appears")
	p := b.Dedicated(t, "a/1")
	both("a provider attaches")
	p.Close(1000, "")
	both("it detaches")
	ws.Send(`{"jsonrpc":"2.0","id":9,"method":"ping"}`)
	brokertest.Equal(t, "no more than that", ws.Receive(), `{"jsonrpc":"2.0","id":9,"result":{}}`)
	other.Send(`{"jsonrpc":"2.0","id":9,"method":"ping"}`)
	brokertest.Equal(t, "the other session", other.Receive(), `{"jsonrpc":"2.0","id":9,"result":{}}`)

	listener := open(t, b)
	stream := listener.Listen()
	listener.Post(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"broker://providers"}}`)
	b.Dedicated(t, "b")
	for {
		block := stream.Next()
		if strings.Contains(block, `"method":"notifications/resources/updated","params":{"uri":"broker://providers"}`) {
			break
		}
		if block == "" {
			t.Fatal("the GET stream carries no update")
		}
	}
	b.WaitSlot(t, "_broker", func(i msg.SlotInfo) bool { return i.SubscriptionCount == 3 })
	if a := listener.Do("DELETE", ""); a.Status >= 300 {
		t.Fatalf("DELETE: %d %s", a.Status, a.Body)
	}
	ws.Close(1000, "")
	b.WaitSlot(t, "_broker", func(i msg.SlotInfo) bool { return i.SubscriptionCount == 0 })
}

// Spec 03 10.2 item 8: what one client opens with does not change what another
// reads.
func TestWireWordingPerSession(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	plain := open(t, b)
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	before := plain.Post(list).Body
	claude := brokertest.NewClient(t, b.MCPURL("_broker"))
	a := claude.Post(strings.Replace(brokertest.InitializeFrame, `"raw"`, `"claude-code"`, 1))
	claude.Session = a.Header.Get("Mcp-Session-Id")
	if !strings.Contains(a.Body, `"_meta":{"grammar":"claude:en"}`) {
		t.Errorf("initialize: %s", a.Body)
	}
	if claude.Post(list).Body == before || plain.Post(list).Body != before {
		t.Error("the wording is not of the session")
	}
}

// Spec 03 10.2 item 7: a call that is merely in flight accuses nobody.
func TestWireDiagnoseInFlight(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	c := open(t, b)
	p := b.Dedicated(t, "slow")
	user := brokertest.NewClient(t, b.MCPURL("slow"))
	user.Handshake(p)
	reply := user.Start(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x"}}`)
	request := p.Receive()
	var report struct {
		Slots    []slot
		Problems []struct{ ID, Severity, Slot string }
	}
	object := callTool(t, c, "broker_diagnose", `{"slot":"slow"}`)
	if err := json.Unmarshal([]byte(object), &report); err != nil {
		t.Fatalf("%v in %s", err, object)
	}
	if len(report.Slots) != 1 || report.Slots[0].PendingCount != 1 {
		t.Errorf("the slots are %+v", report.Slots)
	}
	for _, problem := range report.Problems {
		if problem.Severity != "info" {
			t.Errorf("accused: %+v", problem)
		}
	}
	brokertest.Respond(p, request, "{}")
	user.Await(reply)
	if got := callTool(t, c, "broker_diagnose", `{"slot":"Slow"}`); !strings.Contains(got, `Unknown slot: \"Slow\".`) || !strings.Contains(got, `"isError":true`) {
		t.Errorf("an unknown slot: %s", got)
	}
}

// A standard client does all there is to do: every tool and every resource.
func TestWireStandardClient(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	updates := make(chan string, 8)
	client := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, &mcp.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { updates <- r.Params.URI },
	})
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: b.MCPURL("_broker")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
		arguments := map[string]any{}
		if tool.Name == "provider_status" {
			arguments["name"] = "_all"
		}
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool.Name, Arguments: arguments})
		if err != nil || result.IsError {
			t.Errorf("%s: %v, %+v", tool.Name, err, result)
		}
	}
	if diff := cmp.Diff([]string{"broker_info", "providers_list", "provider_status", "broker_guide", "broker_diagnose"}, names); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	resources, err := session.ListResources(t.Context(), nil)
	if err != nil || len(resources.Resources) != 8 {
		t.Fatalf("resources: %v, %+v", err, resources)
	}
	for _, resource := range resources.Resources {
		read, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: resource.URI})
		if err != nil || len(read.Contents) != 1 || read.Contents[0].URI != resource.URI || read.Contents[0].MIMEType != resource.MIMEType || read.Contents[0].Text == "" {
			t.Errorf("%s: %v, %+v", resource.URI, err, read)
		}
	}
	if err := session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "broker://providers"}); err != nil {
		t.Fatal(err)
	}
	b.Dedicated(t, "new")
	if uri := <-updates; uri != "broker://providers" {
		t.Errorf("told of %s", uri)
	}
}
