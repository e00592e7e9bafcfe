package remote

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"mcpbroker/actors/wire"
)

// The public reference server over Streamable HTTP, killed and started again between
// two calls: it answers an unknown session with 400 (07 rows 1 and 2).
func TestReferenceServer(t *testing.T) {
	script := filepath.Join(nodeModules(t), "@modelcontextprotocol", "server-everything", "dist", "index.js")
	port := freePort(t)
	kill := startReference(t, script, "streamableHttp", port)

	b := connect(t, Config{URL: fmt.Sprintf("http://127.0.0.1:%d/mcp", port)})
	b.pace.reopen = reopenDelay
	b.send(initialize)
	contains(t, "initialize", b.answer("brk-1"), `"serverInfo"`)
	b.send(initialized, request(2, "tools/list"))
	contains(t, "tools/list", b.answer("brk-2"), `"name":"echo"`)
	call := `{"jsonrpc":"2.0","id":"brk-%d","method":"tools/call","params":{"name":"echo","arguments":{"message":"读é🎉"}}}`
	b.send(fmt.Sprintf(call, 3))
	contains(t, "tools/call", b.answer("brk-3"), "读é🎉")
	before := b.driver.(*streamable).current().id

	kill()
	startReference(t, script, "streamableHttp", port)
	b.send(fmt.Sprintf(call, 4))
	contains(t, "tools/call after the restart", b.answer("brk-4"), `"content":[{"type":"text","text":"Echo: 读é🎉"}]`)
	if after := b.driver.(*streamable).current().id; after == before || after == "" {
		t.Errorf("session %q, was %q", after, before)
	}
	b.driver.Stop(patience)
	b.expectEnd("<nil>", false)
}

// answer is the response to a request; what else the server says is left out.
func (b *broker) answer(id string) string {
	b.t.Helper()
	for {
		text := b.next()
		f, err := wire.Scan([]byte(text))
		if err == nil && f.IsResponse() && string(f.Raw(f.ID)) == strconv.Quote(id) {
			return text
		}
	}
}

// startReference runs the server in one of its modes until it listens.
func startReference(t *testing.T, script, mode string, port int) (kill func()) {
	t.Helper()
	cmd := exec.Command("node", script, mode)
	cmd.Env = append(os.Environ(), "PORT="+strconv.Itoa(port))
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 256)
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		for scan := bufio.NewScanner(stderr); scan.Scan(); {
			select {
			case lines <- scan.Text():
			default:
			}
		}
		_ = cmd.Wait()
	}()
	kill = func() {
		_ = cmd.Process.Kill()
		<-exited
	}
	t.Cleanup(kill)
	for {
		line := receive(t, lines, "line of the server")
		if strings.Contains(line, "on port") {
			return kill
		}
	}
}

// nodeModules installs the locked packages once per lock file into the user's cache.
func nodeModules(t *testing.T) string {
	t.Helper()
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatalf("%s is not installed: CI runs every test", tool)
			}
			t.Skipf("%s is not installed: the test with it is skipped", tool)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	cache = filepath.Join(cache, "mcpbroker-e2e")
	sum := sha256.New()
	manifest := map[string][]byte{}
	for _, name := range []string{"package.json", "package-lock.json", ".npmrc"} {
		text, err := os.ReadFile(filepath.Join("testdata", "node", name))
		if err != nil {
			t.Fatal(err)
		}
		manifest[name] = text
		sum.Write(text)
	}
	dir := filepath.Join(cache, fmt.Sprintf("node-%x", sum.Sum(nil)[:6]))
	if _, err := os.Stat(dir); err != nil {
		installNode(t, cache, dir, manifest)
	}
	return filepath.Join(dir, "node_modules")
}

// installNode installs beside dir first: dir exists only when it is complete.
func installNode(t *testing.T, cache, dir string, manifest map[string][]byte) {
	t.Helper()
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	temp, err := os.MkdirTemp(cache, "node-*.tmp")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(temp) }()
	for name, text := range manifest {
		if err := os.WriteFile(filepath.Join(temp, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	install := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	install.Dir, install.WaitDelay = temp, time.Second
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	if err := os.Rename(temp, dir); err != nil {
		if _, stat := os.Stat(dir); stat != nil {
			t.Fatal(err)
		}
	}
}
