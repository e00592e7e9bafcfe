package main_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// hosted is a process whose standard input and output a test has, as an MCP host
// would.
type hosted struct {
	*process
	stdin io.WriteCloser
}

func host(p *process) *hosted {
	p.t.Helper()
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	p.start()
	return &hosted{p, stdin}
}

// hostBridge runs "broker bridge" to a slot of a broker.
func hostBridge(t *testing.T, b *broker, slot string) *hosted {
	t.Helper()
	binary, err := brokerBinary()
	if err != nil {
		t.Fatal(err)
	}
	return host(command(t, binary, "bridge", slot, "--url", "http://127.0.0.1:"+b.port))
}

// hostBroker runs "broker run" with its standard input and output on a slot.
func hostBroker(t *testing.T, slot string, args ...string) (*hosted, *broker) {
	t.Helper()
	p := newBroker(t, append([]string{"--port", "0"}, args...)...)
	p.cmd.Env = append(p.cmd.Env, "MCP_BROKER_STDIO_PROVIDER="+slot)
	h := host(p)
	m := h.await(h.stderr, `started on https?://localhost:(\d+) `)
	return h, &broker{process: p, port: m[1]}
}

func (h *hosted) send(lines ...string) {
	h.t.Helper()
	if _, err := io.WriteString(h.stdin, strings.Join(lines, "\n")+"\n"); err != nil {
		h.t.Fatalf("write to %s: %v", h.name, err)
	}
}

// answer waits for the response to a raw id.
func (h *hosted) answer(id string) string {
	h.t.Helper()
	return h.await(h.stdout, `(?m)^(\{"jsonrpc":"2\.0","id":`+regexp.QuoteMeta(id)+`,.*)$`)[1]
}

// leave ends the input and finds that the process ends in order.
func (h *hosted) leave() {
	h.t.Helper()
	if err := h.stdin.Close(); err != nil {
		h.t.Errorf("close the input of %s: %v", h.name, err)
	}
	h.stops()
	for line := range strings.Lines(h.stdout.String()) {
		if !strings.HasPrefix(line, `{"jsonrpc":"2.0",`) {
			h.t.Errorf("%s wrote %q to standard output", h.name, line)
		}
	}
}

// connectHost runs a command from the official Go client.
func connectHost(t *testing.T, cmd *exec.Cmd, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1.0.0"}, o)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd, TerminateDuration: patience}, nil)
	if err != nil {
		t.Fatalf("connect the Go SDK client: %v", err)
	}
	return session
}

// F-37: the official Go client starts the broker and is its stdio host.
func TestGoSDKHostsBroker(t *testing.T) {
	p := newBroker(t, "--port", "0", "--demo")
	p.cmd.Env = append(p.cmd.Env, "MCP_BROKER_STDIO_PROVIDER=demo")
	p.cmd.Stdout = nil // the client's
	session := connectHost(t, p.cmd, nil)
	if got := session.InitializeResult(); got.ProtocolVersion != "2025-11-25" || got.ServerInfo.Name != "mcp-broker demo" {
		t.Errorf("negotiated %+v", got)
	}
	expectText(t, session, "echo", map[string]any{"message": "héllo\u2028<&>"}, "héllo\u2028<&>")
	if err := session.Close(); err != nil {
		t.Errorf("the broker ended with %v", err)
	}
	said := p.stderr.String()
	if !strings.Contains(said, "\n[mcp-broker] The stdio host has gone, stopping\n") || strings.Contains(said, "DATA RACE") || strings.Contains(said, "names a slot") {
		t.Errorf("standard error: %s", said)
	}
}

// The official Go client starts a bridge to a running broker: lists, calls,
// progress, cancellation; its session ends with it.
func TestGoSDKHostsBridge(t *testing.T) {
	b := startBroker(t)
	tools := newToolbox()
	tools.serveDirect(t, b.direct("toolbox"))
	binary, err := brokerBinary()
	if err != nil {
		t.Fatal(err)
	}
	steps := make(chan float64, 8)
	p := command(t, binary, "bridge", "--url", "http://127.0.0.1:"+b.port, "toolbox")
	p.cmd.Stdout = nil
	session := connectHost(t, p.cmd, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) { steps <- req.Params.Progress },
	})
	if got := session.InitializeResult(); got.ProtocolVersion != "2025-11-25" || got.ServerInfo.Name != "toolbox" {
		t.Errorf("negotiated %+v", got)
	}
	expectText(t, session, "echo", map[string]any{"message": "héllo <&>"}, "héllo <&>")
	big := strings.Repeat("é", 1<<20)
	expectText(t, session, "echo", map[string]any{"message": big}, big)
	expectText(t, session, "count", map[string]any{"to": 3}, "counted to 3")
	for want := range 3 {
		if got := within(t, steps, "no progress"); got != float64(want+1) {
			t.Errorf("progress %v, want %d", got, want+1)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := session.CallTool(ctx, call("wait", map[string]any{}))
		failed <- err
	}()
	within(t, steps, "the call did not begin")
	cancel()
	if err := within(t, failed, "no end of the call"); err == nil {
		t.Error("the cancelled call succeeded")
	}
	tools.awaitCancelled(t)
	if err := session.Close(); err != nil {
		t.Errorf("the bridge ended with %v", err)
	}
	if got := p.stderr.String(); got != "" {
		t.Errorf("standard error %q", got)
	}
}

// The official TypeScript client as host of a broker, and of a bridge.
func TestTypeScriptHost(t *testing.T) {
	b := startBroker(t, "--demo")
	binary, err := brokerBinary()
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"run":    {binary, "run", "--port", "0", "--demo"},
		"bridge": {binary, "bridge", "demo", "--url", "http://127.0.0.1:" + b.port},
	} {
		t.Run(name, func(t *testing.T) {
			node := startNode(t, "host.mjs", args...)
			node.expect(
				event{"event": "connected", "server": "mcp-broker demo"},
				event{"event": "tools", "names": []any{"clock", "echo"}},
				event{"event": "echo", "content": textContent("héllo <&>")},
				event{"event": "closed"},
			)
			if code := node.exit(patience); code != 0 {
				t.Errorf("the host exited with %d", code)
			}
		})
	}
}

const hostInitialize = `{"jsonrpc":"2.0","id":"i%d","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"host","version":"1"}}}`

// Spec 01 4.3, L10: a host that comes before any provider is told so, and how to
// avoid it; the same pipe works once there is one. The port is open besides.
func TestHostBeforeProvider(t *testing.T) {
	h, b := hostBroker(t, "toolbox")
	h.await(h.stderr, `(?m)^\[mcp-broker\] MCP_BROKER_STDIO_PROVIDER="toolbox" names a slot this broker does not host\..*"_all".*Hosted slots: none yet\.$`)
	h.send(fmt.Sprintf(hostInitialize, 1))
	want := `{"jsonrpc":"2.0","id":"i1","error":{"code":-32000,"message":"Provider \"toolbox\" not connected. This host is pinned to one slot (MCP_BROKER_STDIO_PROVIDER). ` +
		`Pin it to \"_all\" to reach every provider that joined it, or to \"_broker\" to see which slots are live."}}`
	if diff := cmp.Diff(want, h.answer(`"i1"`)); diff != "" {
		t.Errorf("without a provider (-want +got):\n%s", diff)
	}
	newToolbox().serveDirect(t, b.direct("toolbox"))
	h.send(fmt.Sprintf(hostInitialize, 2))
	if got := h.answer(`"i2"`); !containsAll(got, `"result":`, `"name":"toolbox"`) {
		t.Errorf("initialize is answered %s", got)
	}
	h.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hi"}}}`)
	if got := h.answer("3"); !strings.Contains(got, `"text":"hi"`) {
		t.Errorf("the call is answered %s", got)
	}
	newSession(t, b.mcp("toolbox"))
	h.leave()
}

// F-37: at the end of the input the answers owed are written first.
func TestHostEndFlushes(t *testing.T) {
	t.Run("run", func(t *testing.T) {
		h, b := hostBroker(t, "slow")
		p := startSlow(t, b.direct("slow"))
		endFlushes(t, h, p)
	})
	t.Run("bridge", func(t *testing.T) {
		b := startBroker(t)
		p := startSlow(t, b.direct("slow"))
		endFlushes(t, hostBridge(t, b, "slow"), p)
	})
}

func endFlushes(t *testing.T, h *hosted, p *slowProvider) {
	t.Helper()
	h.send(fmt.Sprintf(hostInitialize, 1), `{"jsonrpc":"2.0","method":"notifications/initialized"}`, slowCall)
	within(t, p.begun, "the call did not reach the provider")
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		_ = h.stdin.Close()
		close(p.finish)
	}()
	if got, want := h.answer(`"s"`), `{"jsonrpc":"2.0","id":"s","result":{"content":[{"type":"text","text":"done"}]}}`; got != want {
		t.Errorf("answered %s, want %s", got, want)
	}
	<-finished
	h.stops()
}

// A call that does not finish is answered, and does not keep the process.
func TestHostEndWithCallInFlight(t *testing.T) {
	h, b := hostBroker(t, "slow")
	p := startSlow(t, b.direct("slow"))
	h.send(slowCall)
	within(t, p.begun, "the call did not reach the provider")
	h.leave()
	if got := h.stdout.String(); got != `{"jsonrpc":"2.0","id":"s","error":{"code":-32000,"message":"Session closed"}}`+"\n" {
		t.Errorf("standard output %q", got)
	}
}

// SIGTERM ends a host's process too, whatever its input does.
func TestHostedProcessSignalled(t *testing.T) {
	b := startBroker(t)
	run, _ := hostBroker(t, "_all")
	for _, h := range []*hosted{hostBridge(t, b, "s"), run} {
		h.send(`junk`)
		h.await(h.stdout, `"code":-32700`)
		h.signal(syscall.SIGTERM)
		h.stops()
	}
}

// With stdioExitOnEnd = false the broker outlives its host, also one that closes
// the output first: a broken pipe does not end it.
func TestBrokerOutlivesHost(t *testing.T) {
	p := newBroker(t, "broker.toml")
	write(t, filepath.Join(p.cmd.Dir, "broker.toml"), "port = 0\nstdioProvider = '_all'\nstdioExitOnEnd = false\n")
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdout = writer
	h := host(p)
	_ = writer.Close()
	_ = reader.Close()
	m := h.await(h.stderr, `started on https?://localhost:(\d+) `)
	h.send("junk")
	h.await(h.stderr, `(?m)^\[broker\] stdio client transport: write: .*broken pipe\n(?:.*\n)*?\[mcp-broker\] The stdio host has gone; the broker stays \(stdioExitOnEnd\)$`)
	newEmptySession(t, "http://127.0.0.1:"+m[1]+"/s/mcp")
	h.signal(syscall.SIGINT)
	h.stops()
}

// Row 1: a broker killed under a bridge is named in the answers meanwhile; its
// successor on the same port is used without the host's doing.
func TestBrokerKilledUnderBridge(t *testing.T) {
	b := startBroker(t, "--port", freePort(t))
	newToolbox().serveDirect(t, b.direct("toolbox"))
	h := hostBridge(t, b, "toolbox")
	echo := func(id int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"message":"call %d"}}}`, id, id)
	}
	h.send(fmt.Sprintf(hostInitialize, 1), `{"jsonrpc":"2.0","method":"notifications/initialized"}`, echo(1))
	if got := h.answer("1"); !strings.Contains(got, `"text":"call 1"`) {
		t.Fatalf("answered %s", got)
	}
	b.kill()
	h.await(h.stderr, `(?m)^\[mcp-broker\] bridge: cannot reach the broker at http://127\.0\.0\.1:`+b.port+`/toolbox/mcp: `)
	h.send(echo(2))
	if got := h.answer("2"); !containsAll(got, `"code":-32000`, "http://127.0.0.1:"+b.port+"/toolbox/mcp") {
		t.Errorf("while the broker is gone: %s", got)
	}
	b = b.restart()
	newToolbox().serveDirect(t, b.direct("toolbox"))
	h.send(echo(3))
	if got := h.answer("3"); !strings.Contains(got, `"text":"call 3"`) {
		t.Errorf("after the restart: %s", got)
	}
	h.await(h.stderr, `a new one was opened`)
	h.leave()
}

// A bridge over TLS trusts what the machine trusts.
func TestBridgeTLS(t *testing.T) {
	p := newBroker(t, "--demo", "broker.toml")
	selfSigned(t, p.cmd.Dir)
	write(t, filepath.Join(p.cmd.Dir, "broker.toml"), tlsConfig)
	b := runBroker(p)
	binary, err := brokerBinary()
	if err != nil {
		t.Fatal(err)
	}
	for trusted, want := range map[bool]string{true: `"name":"mcp-broker demo"`, false: "certificate"} {
		c := command(t, binary, "bridge", "demo", "--url", "https://localhost:"+b.port)
		if trusted {
			c.cmd.Env = append(c.cmd.Env, "SSL_CERT_FILE="+filepath.Join(p.cmd.Dir, "cert.pem"))
		}
		h := host(c)
		h.send(fmt.Sprintf(hostInitialize, 1))
		if got := h.answer(`"i1"`); !strings.Contains(got, want) {
			t.Errorf("trusted %v: %s", trusted, got)
		}
		h.leave()
	}
}

// The example of the README for hosts is a command that works.
func TestReadmeHost(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`"command": "broker", "args": \["bridge", "(\w+)"\]`).FindSubmatch(readme)
	if m == nil {
		t.Fatal("README.md does not show how a host runs the bridge")
	}
	b := startBroker(t, "--demo")
	h := hostBridge(t, b, string(m[1]))
	h.send(fmt.Sprintf(hostInitialize, 1))
	if got := h.answer(`"i1"`); !strings.Contains(got, `"name":"mcp-broker demo"`) {
		t.Errorf("initialize is answered %s", got)
	}
	h.leave()
}
