//lint:file-ignore SA1019 the revisions that servers speak today have sampling and logging

package main_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbroker/brokertest"
	"mcpbroker/internal/freeport"
)

// serversDir locks the MCP servers that are run as upstreams.
const serversDir = "testdata/servers"

var serverModules = sync.OnceValues(func() (string, error) { return npmPackages(serversDir, "servers") })

// npmServer returns node and the script of a server.
func npmServer(t *testing.T, name string) (node, script string) {
	t.Helper()
	node = requireTool(t, "node")
	requireTool(t, "npm")
	modules, err := serverModules()
	if err != nil {
		t.Fatal(err)
	}
	return node, filepath.Join(modules, "@modelcontextprotocol", name, "dist", "index.js")
}

// stdioEntry is an upstream of a broker.toml.
func stdioEntry(slot, command string, args ...string) string {
	quoted := make([]string, len(args))
	for i, arg := range args {
		quoted[i] = strconv.Quote(arg)
	}
	return fmt.Sprintf("\n[[stdioUpstreams]]\nname = %q\ncommand = %q\nargs = [%s]\n", slot, command, strings.Join(quoted, ", "))
}

// configured starts a broker with the text of a broker.toml.
func configured(t *testing.T, text string) *broker {
	t.Helper()
	file := filepath.Join(t.TempDir(), "broker.toml")
	write(t, file, text)
	return startBroker(t, file)
}

// verdict waits until the log says that an upstream has reached a verdict.
func (b *broker) verdict(slot, verdict string) {
	b.t.Helper()
	b.await(b.stderr, `upstream "`+slot+`" is `+verdict)
}

// freePort is a port to listen on later, and again. It is below those that systems give
// to sockets which ask for any: nobody gets it meanwhile by chance.
func freePort(t *testing.T) string {
	t.Helper()
	port, release, err := freeport.Reserve(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return strconv.Itoa(port)
}

// everythingHTTP runs the reference server over Streamable HTTP.
func everythingHTTP(t *testing.T, port string) *process {
	t.Helper()
	node, script := npmServer(t, "server-everything")
	p := command(t, node, script, "streamableHttp")
	p.cmd.Env = append(p.cmd.Env, "PORT="+port)
	p.start()
	p.await(p.stderr, `listening on port`)
	return p
}

// heard is what a client of the Go SDK was told.
type heard struct {
	progress chan float64
	updates  chan string
	logs     chan string
}

func newHeard() *heard {
	return &heard{make(chan float64, 64), make(chan string, 64), make(chan string, 64)}
}

func (h *heard) options() *mcp.ClientOptions {
	return &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { h.progress <- r.Params.Progress },
		ResourceUpdatedHandler:      func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { h.updates <- r.Params.URI },
		LoggingMessageHandler:       func(_ context.Context, r *mcp.LoggingMessageRequest) { h.logs <- fmt.Sprint(r.Params.Data) },
		CreateMessageHandler: func(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			said := r.Params.Messages[0].Content.(*mcp.TextContent).Text
			return &mcp.CreateMessageResult{Content: &mcp.TextContent{Text: "asked: " + said}, Model: "none", Role: "assistant"}, nil
		},
	}
}

// The reference server as an upstream, as a child and over HTTP: tools, progress,
// a sampling request relayed to the caller, resources with subscription and
// updates, prompts, completion and logging.
func TestEverythingUpstream(t *testing.T) {
	node, script := npmServer(t, "server-everything")
	port := freePort(t)
	everythingHTTP(t, port)
	b := configured(t, "serverRequests = \"relay\"\n"+stdioEntry("child", node, script, "stdio")+
		"\n[[mcpServers]]\nname = \"remote\"\nurl = \"http://127.0.0.1:"+port+"/mcp\"\naggregate = false\n")
	for _, slot := range []string{"child", "remote"} {
		t.Run(slot, func(t *testing.T) {
			b.verdict(slot, "live, was starting")
			exercise(t, b.mcp(slot))
		})
	}
}

func exercise(t *testing.T, url string) {
	h := newHeard()
	c, _ := connectGo(t, url, h.options())
	defer c.Close()
	expectText(t, c, "echo", map[string]any{"message": "héllo 🎉"}, "Echo: héllo 🎉")
	expectText(t, c, "trigger-long-running-operation", map[string]any{"duration": 0.3, "steps": 3},
		"Long running operation completed. Duration: 0.3 seconds, Steps: 3.")
	for want := range 3 {
		if got := within(t, h.progress, "no progress"); got != float64(want+1) {
			t.Errorf("progress %v, want %d", got, want+1)
		}
	}

	sampled, err := c.CallTool(t.Context(), call("trigger-sampling-request", map[string]any{"prompt": "why?"}))
	if err != nil {
		t.Fatal(err)
	}
	if got := sampled.Content[0].(*mcp.TextContent).Text; sampled.IsError || !strings.Contains(got, `asked: Resource trigger-sampling-request context: why?`) {
		t.Errorf("sampling came to %s", got)
	}

	list, err := c.ListResources(t.Context(), nil)
	if err != nil || len(list.Resources) == 0 {
		t.Fatalf("%d resources, %v", len(list.Resources), err)
	}
	uri := list.Resources[0].URI
	read, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
	if err != nil || len(read.Contents) != 1 || read.Contents[0].URI != uri {
		t.Errorf("read %s: %+v, %v", uri, read, err)
	}
	if err := c.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CallTool(t.Context(), call("toggle-subscriber-updates", map[string]any{})); err != nil {
		t.Fatal(err)
	}
	if got := within(t, h.updates, "no update"); got != uri {
		t.Errorf("update of %s, want %s", got, uri)
	}
	if err := c.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: uri}); err != nil {
		t.Fatal(err)
	}

	if err := c.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "debug"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CallTool(t.Context(), call("toggle-simulated-logging", map[string]any{})); err != nil {
		t.Fatal(err)
	}
	for { // subscribing is logged too
		if got := within(t, h.logs, "no log message"); strings.Contains(got, "level") {
			break
		}
	}

	done, err := c.Complete(t.Context(), &mcp.CompleteParams{
		Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "completable-prompt"}, Argument: mcp.CompleteParamsArgument{Name: "department", Value: "S"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Sales", "Support"}, done.Completion.Values); diff != "" {
		t.Errorf("completion (-want +got):\n%s", diff)
	}
	prompt, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "completable-prompt", Arguments: map[string]string{"department": "Sales", "name": "Eve"}})
	if err != nil || prompt.Messages[0].Content.(*mcp.TextContent).Text != "Please promote Eve to the head of the Sales team." {
		t.Errorf("prompt %+v, %v", prompt, err)
	}
}

// Spec 07 rows 1 and 4: the remote server is killed and started again; it knows
// the old session no more. The next call is answered, and while the server is away
// calls fail at once with the cause.
func TestRemoteRestarts(t *testing.T) {
	port := freePort(t)
	remote := everythingHTTP(t, port)
	b := configured(t, "\n[[mcpServers]]\nname = \"remote\"\nurl = \"http://127.0.0.1:"+port+"/mcp\"\n"+
		"healthCheck = { intervalSeconds = 3600 }\nretry = { intervalSeconds = 1, attempts = 600 }\n")
	b.verdict("remote", "live")
	c, _ := connectGo(t, b.mcp("remote"), nil)
	defer c.Close()
	expectText(t, c, "echo", map[string]any{"message": "1"}, "Echo: 1")

	remote.kill()
	remote = everythingHTTP(t, port)
	expectText(t, c, "echo", map[string]any{"message": "2"}, "Echo: 2")

	remote.kill()
	begun := time.Now()
	_, err := c.CallTool(t.Context(), call("echo", map[string]any{"message": "3"}))
	if err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("a call while the server is away came to %v", err)
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("the error took %s", took)
	}
	b.await(b.stderr, `upstream "remote" is error, was starting`)
	known := len(b.stderr.String()) // it has been live before
	everythingHTTP(t, port)
	b.awaitBehind(b.stderr, known, `(?s)upstream "remote" is starting, was error.*upstream "remote" is live, was starting`)
	expectText(t, c, "echo", map[string]any{"message": "4"}, "Echo: 4")
}

// Two more servers people run: files below a folder, and a memory that outlives
// the child.
func TestFilesystemAndMemoryUpstreams(t *testing.T) {
	node, files := npmServer(t, "server-filesystem")
	_, memory := npmServer(t, "server-memory")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "note.txt"), "written before")
	b := configured(t, stdioEntry("files", node, files, dir)+"aggregate = true\n"+
		stdioEntry("memory", node, memory)+"aggregate = true\nhealthCheck = { tool = \"read_graph\" }\n"+
		"env = { MEMORY_FILE_PATH = "+strconv.Quote(filepath.Join(dir, "memory.jsonl"))+" }\n")
	b.verdict("files", "live")
	b.verdict("memory", "healthy")

	f, _ := connectGo(t, b.mcp("files"), nil)
	defer f.Close()
	expectText(t, f, "read_text_file", map[string]any{"path": filepath.Join(dir, "note.txt")}, "written before")
	if r, err := f.CallTool(t.Context(), call("read_text_file", map[string]any{"path": "/etc/hostname"})); err != nil || !r.IsError {
		t.Errorf("a file outside the folder: %+v, %v", r, err)
	}

	all, _ := connectGo(t, b.mcp("_all"), nil)
	defer all.Close()
	remember := map[string]any{"entities": []any{map[string]any{"name": "pump-1", "entityType": "pump", "observations": []any{"leaks"}}}}
	b.await(b.stderr, `provider "memory" joined "_all"`)
	if r, err := all.CallTool(t.Context(), call("memory-create_entities", remember)); err != nil || r.IsError {
		t.Fatalf("remember: %+v, %v", r, err)
	}
	self, _ := connectGo(t, b.mcp("_broker"), nil)
	defer self.Close()
	if r, err := self.CallTool(t.Context(), call("instance_restart", map[string]any{"name": "memory"})); err != nil || r.IsError {
		t.Fatalf("restart: %+v, %v", r, err)
	}
	m, _ := connectGo(t, b.mcp("memory"), nil)
	defer m.Close()
	r, err := m.CallTool(t.Context(), call("search_nodes", map[string]any{"query": "leaks"}))
	if err != nil || !strings.Contains(r.Content[0].(*mcp.TextContent).Text, "pump-1") {
		t.Errorf("remembered %+v, %v", r, err)
	}
}

// bundleServer is a whole MCP server for a bundle; it greets with an answer of the
// user's.
const bundleServer = `
const answers = {
  initialize: () => ({ protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "bundled", version: "1" } }),
  "tools/list": () => ({ tools: [{ name: "greet", inputSchema: { type: "object" } }] }),
  "tools/call": () => ({ content: [{ type: "text", text: process.env.GREETING + " from " + process.argv[2] }] }),
};
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  if (id === undefined) return;
  const outcome = answers[method] ? { result: answers[method]() } : { error: { code: -32601, message: "Method not found" } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...outcome }));
});
`

const bundleManifest = `{
  "manifest_version": "0.3", "name": "greeter", "version": "1.0.0", "description": "greets", "author": { "name": "A" },
  "server": {
    "type": "node", "entry_point": "server/index.js",
    "mcp_config": { "command": "node", "args": ["${__dirname}/server/index.js", "${user_config.site}"], "env": { "GREETING": "${user_config.greeting}" } }
  },
  "user_config": {
    "greeting": { "type": "string", "title": "G", "description": "g", "required": true, "sensitive": true },
    "site": { "type": "string", "title": "S", "description": "s", "default": "here" }
  }
}`

// packerDir locks the packer of the tests of bundles.
const packerDir = "../../ingress/bundle/testdata/packer"

// A bundle that its own packer has packed and signed runs as an upstream. One that
// was changed afterwards, or signed by somebody else, does not, and says why.
func TestPackedBundleUpstream(t *testing.T) {
	node := requireTool(t, "node")
	requireTool(t, "npm")
	modules, err := npmPackages(packerDir, "packer")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	packer := func(args ...string) {
		t.Helper()
		p := command(t, node, append([]string{filepath.Join(modules, "@anthropic-ai", "mcpb", "dist", "cli", "cli.js")}, args...)...)
		p.cmd.Dir = dir
		p.start()
		if code := p.exit(patience); code != 0 {
			t.Fatalf("mcpb %q ended with %d", args, code)
		}
	}
	source := filepath.Join(dir, "source", "server")
	if err := os.MkdirAll(source, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(source, "index.js"), bundleServer)
	write(t, filepath.Join(dir, "source", "manifest.json"), bundleManifest)
	packer("pack", "source", "greeter.mcpb")
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	certify(t, dir, key)
	packer("sign", "greeter.mcpb", "--cert", "cert.pem", "--key", "key.pem")
	selfSigned(t, source) // somebody else
	packed, err := os.ReadFile(filepath.Join(dir, "greeter.mcpb"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "changed.mcpb"), string(packed[:100])+string([]byte{packed[100] ^ 1})+string(packed[101:]))

	file := filepath.Join(dir, "broker.toml")
	var text strings.Builder
	for _, entry := range [][3]string{{"good", "greeter", "cert.pem"}, {"changed", "changed", "cert.pem"}, {"stranger", "greeter", "source/server/cert.pem"}} {
		fmt.Fprintf(&text, "\n[[mcpbBundles]]\nname = %q\npath = \"%s.mcpb\"\npublicKey = %q\nuserConfig = { greeting = \"hello\" }\n", entry[0], entry[1], entry[2])
	}
	write(t, file, text.String())
	b := startBroker(t, file)
	b.verdict("good", "live")
	c, _ := connectGo(t, b.mcp("good"), nil)
	defer c.Close()
	expectText(t, c, "greet", map[string]any{}, "hello from here")
	for _, slot := range []string{"changed", "stranger"} {
		b.verdict(slot, "error, was starting: .*signature")
		a := brokertest.NewClient(t, b.mcp(slot)).Initialize()
		if !strings.Contains(a.Body, `"code":-32000,"message":"Provider \"`+slot+`\" not connected: `) || !strings.Contains(a.Body, "signature") {
			t.Errorf("%s: %s", slot, a.Body)
		}
	}
}
