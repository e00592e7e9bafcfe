package main_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/brokertest"
)

func containsAll(text string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}

// expectUnknownSession finds that a session is gone (spec 01 5.4).
func expectUnknownSession(t *testing.T, url, id string) {
	t.Helper()
	c := brokertest.NewClient(t, url)
	c.Session = id
	a := c.Post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	want := `{"error":"unknown_session","error_description":"Session not found or terminated"}`
	if id == "" || a.Status != http.StatusNotFound || a.Body != want {
		t.Errorf("session %q is answered %d %s", id, a.Status, a.Body)
	}
}

// spec 01 5: the official TypeScript client over Streamable HTTP.
func TestTypeScriptClient(t *testing.T) {
	b := startBroker(t)
	tools := newToolbox()
	tools.serveDirect(t, b.direct("toolbox"))

	client := startNode(t, "client.mjs", b.mcp("toolbox"))
	connected := client.next()
	id, _ := connected["session"].(string)
	delete(connected, "session")
	if diff := cmp.Diff(event{"event": "connected", "server": "toolbox", "revision": "2025-11-25"}, connected); diff != "" || id == "" {
		t.Fatalf("session %q (-want +got):\n%s", id, diff)
	}
	client.expect(
		event{"event": "tools", "names": []any{"count", "echo", "wait"}},
		event{"event": "echo", "content": textContent("héllo <&>")},
		event{"event": "count", "content": textContent("counted to 3"), "progress": []any{1.0, 2.0, 3.0}},
		event{"event": "wait", "outcome": "MCP error -32001: enough"},
	)
	tools.awaitCancelled(t)
	client.expect(event{"event": "terminated", "session": nil})
	if code := client.exit(patience); code != 0 {
		t.Errorf("the client exited with %d", code)
	}
	expectUnknownSession(t, b.mcp("toolbox"), id)
}

func textContent(s string) []any { return []any{map[string]any{"type": "text", "text": s}} }

// The README's curl lines, run as they stand there against a demo broker.
func TestReadmeCurl(t *testing.T) {
	requireTool(t, "curl")
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var lines string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllSubmatch(readme, -1) {
		if bytes.Contains(block[1], []byte("localhost:3000/demo/mcp")) {
			lines += string(block[1]) + "echo\n"
		}
	}
	b := startBroker(t, "--demo")
	sh := command(t, requireTool(t, "sh"), "-eu", "-c", strings.ReplaceAll(lines, "localhost:3000", "127.0.0.1:"+b.port))
	sh.cmd.Env = append(sh.cmd.Env, "no_proxy=*")
	sh.start()
	if code := sh.exit(patience); code != 0 {
		t.Fatalf("the lines exit with %d", code)
	}
	initialized, called, _ := strings.Cut(sh.stdout.String(), "\n")
	if !containsAll(initialized, `"id":1,"result":{`, `"serverInfo":{"name":"mcp-broker demo"`) {
		t.Errorf("initialize is answered\n%s", initialized)
	}
	want := `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"hello"}]}}` + "\n"
	if diff := cmp.Diff(want, called); diff != "" {
		t.Errorf("tools/call is answered (-want +got):\n%s", diff)
	}
}
