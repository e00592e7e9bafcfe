package main_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbroker/brokertest"
)

// requireNginx is requireTool with the place packages put a server into.
func requireNginx(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("/usr/sbin/nginx"); err == nil {
		return path
	}
	return requireTool(t, "nginx")
}

// proxyTimeout is after how much silence the proxy gives up. The broker comments
// streams sooner, and a raw client has as long to answer its pings.
const (
	proxyTimeout = 10 * time.Second
	keepAlive    = 4 * time.Second
)

// proxied runs a broker behind the nginx of docs/clients.md, which listens on a
// Unix socket. The host in URLs does not matter.
func proxied(t *testing.T) (*broker, brokertest.DialFunc) {
	t.Helper()
	nginx := requireNginx(t)
	p := newBroker(t, "--port", "0")
	p.cmd.Env = append(p.cmd.Env, "MCP_BROKER_SERVER_REQUESTS=relay", fmt.Sprintf("MCP_BROKER_KEEP_ALIVE_INTERVAL_MS=%d", keepAlive.Milliseconds()))
	b := runBroker(p)

	blocks := readClientsDoc(t).blocks("nginx")
	if len(blocks) != 1 {
		t.Fatalf("docs/clients.md has %d configurations for nginx", len(blocks))
	}
	proxy := command(t, nginx, "-e", "stderr", "-p", ".", "-c", "nginx.conf")
	socket := filepath.Join(proxy.cmd.Dir, "s")
	site := blocks[0]
	for documented, here := range map[string]string{
		"http://127.0.0.1:3000":   b.url(),
		"listen 8080;":            "listen unix:" + socket + ";",
		"proxy_read_timeout 11m;": "proxy_read_timeout " + proxyTimeout.String() + ";",
	} {
		if !strings.Contains(site, documented) {
			t.Fatalf("docs/clients.md has no %q", documented)
		}
		site = strings.ReplaceAll(site, documented, here)
	}
	paths := ""
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		paths += kind + "_temp_path " + kind + ";\n"
	}
	write(t, filepath.Join(proxy.cmd.Dir, "nginx.conf"), "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log stderr notice;\n"+
		"events {}\nhttp {\naccess_log off;\n"+paths+site+"}\n")
	proxy.start()
	proxy.await(proxy.stderr, `getrlimit`) // said once it listens
	return b, func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
}

// F-43, row 66, spec 01 5.6: through a proxy with a path of its own and a
// timeout for silence, events arrive while the stream is open and silence does
// not close it.
func TestProxiedStreams(t *testing.T) {
	b, dial := proxied(t)
	const slot = "a%2Fb"
	p := brokertest.Dial(t, b.direct(slot), nil)

	legacy := brokertest.NewClientVia(t, "http://nginx/tools/"+slot+"/sse", dial).Listen()
	endpoint, ok := strings.CutPrefix(legacy.Next(), "event: endpoint\ndata: ")
	if !ok || !strings.HasPrefix(endpoint, "/tools/"+slot+"/messages?sessionId=") {
		t.Fatalf("the stream begins with status %d and the endpoint %q", legacy.Status, endpoint)
	}
	posts := brokertest.NewClientVia(t, "http://nginx"+endpoint, dial)
	modern := brokertest.NewClientVia(t, "http://nginx/tools/"+slot+"/mcp", dial)
	opened := modern.Start(brokertest.InitializeFrame)
	brokertest.Respond(p, p.Receive(), "{}")
	modern.Session = within(t, opened, "no answer").Header.Get("Mcp-Session-Id")
	stream := modern.Listen()
	if got := stream.Next(); got != ": open" {
		t.Errorf("the stream begins with status %d %q", stream.Status, got)
	}
	socket := brokertest.DialVia(t, "ws://nginx/tools/"+slot, nil, dial)

	exchange := func(id string) {
		frame := `{"jsonrpc":"2.0","id":"` + id + `","method":"m"}`
		answer := `{"jsonrpc":"2.0","id":"` + id + `","result":{}}`
		expectHTTP(t, posts.Post(frame), http.StatusAccepted, "")
		brokertest.Respond(p, p.Receive(), "{}")
		expectCarried(t, "legacy stream", nextEvent(legacy), "event: message\ndata: "+answer)
		socket.Send(frame)
		brokertest.Respond(p, p.Receive(), "{}")
		expectCarried(t, "raw socket", socket.Receive(), answer)
		note := `{"jsonrpc":"2.0","method":"notifications/message","params":"` + id + `"}`
		p.Send(note)
		expectCarried(t, "stream", nextEvent(stream), "event: message\nid: "+id+"\ndata: "+note)
		expectCarried(t, "legacy stream", nextEvent(legacy), "event: message\ndata: "+note)
		expectCarried(t, "raw socket", socket.Receive(), note)
	}
	exchange("1")
	// The call that is silent for long enough shows that the timeout is in force,
	// and that the streams were as long without an event.
	silent := modern.Start(`{"jsonrpc":"2.0","id":1,"method":"never/answered"}`)
	p.Receive()
	if a := within(t, silent, "the silent call goes on"); a.Status != http.StatusGatewayTimeout {
		t.Errorf("the silent call ended with %d", a.Status)
	}
	// The broker learns it from the proxy and tells the provider (F-45).
	if got := p.Receive(); !strings.Contains(got, `"method":"notifications/cancelled"`) {
		t.Errorf("the provider got %s", got)
	}
	exchange("2")
}

func nextEvent(s *brokertest.Stream) string {
	for {
		if block := s.Next(); block != ": keep-alive" {
			return block
		}
	}
}

func expectCarried(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// Row 44: a client of the official SDK and a provider, both behind the proxy.
func TestProxiedSDK(t *testing.T) {
	b, dial := proxied(t)
	serveWorkshop(t, b.direct("workshop"))
	transport := &http.Transport{DialContext: dial}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}
	for name, way := range map[string]mcp.Transport{
		"http": &mcp.StreamableClientTransport{Endpoint: "http://nginx/tools/workshop/mcp", HTTPClient: client},
		"sse":  &mcp.SSEClientTransport{Endpoint: "http://nginx/tools/workshop/sse", HTTPClient: client},
	} {
		t.Run(name, func(t *testing.T) { expectVisit(t, visitGo(t, way), fullVisit("")) })
	}
	socket := brokertest.DialVia(t, "ws://nginx/tools/provider/other", nil, dial)
	answer := brokertest.NewClient(t, b.mcp("other")).Start(brokertest.InitializeFrame)
	brokertest.Respond(socket, socket.Receive(), "{}")
	expectHTTP(t, within(t, answer, "no answer"), http.StatusOK, `{"jsonrpc":"2.0","id":0,"result":{}}`)
}
