package main_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait for another process. Only a failing test uses it
// up.
const patience = time.Minute

// cacheDir is where things that are costly to make stay between runs.
func cacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache directory: %w", err)
	}
	return filepath.Join(base, "mcpbroker-e2e"), nil
}

// brokerBinary builds the command as it is shipped, with the race detector if
// the test has it. The name depends on the source directory, so that two work
// trees do not exchange binaries.
var brokerBinary = sync.OnceValues(func() (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	wd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	binary := filepath.Join(cache, fmt.Sprintf("%x", sha256.Sum256([]byte(wd)))[:12], "broker")
	args := []string{"build", "-o", binary}
	if raceEnabled() {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, ".")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the broker: %w\n%s", err, out)
	}
	return binary, nil
})

func raceEnabled() bool {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return false
	}
	for _, s := range info.Settings {
		if s.Key == "-race" {
			return s.Value == "true"
		}
	}
	return false
}

// requireTool returns the path of a program the test drives. On CI its absence
// is a failure, elsewhere it skips the test.
func requireTool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path
	case os.Getenv("CI") == "true":
		t.Fatalf("%s is not installed: CI runs every test", name)
	}
	t.Skipf("%s is not installed: the end-to-end test with it is skipped", name)
	return ""
}

// transcript is what a process has written so far.
type transcript struct {
	mu      sync.Mutex
	text    []byte
	changed chan struct{} // closed and replaced with every write
}

func newTranscript() *transcript { return &transcript{changed: make(chan struct{})} }

func (tr *transcript) Write(p []byte) (int, error) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.text = append(tr.text, p...)
	close(tr.changed)
	tr.changed = make(chan struct{})
	return len(p), nil
}

func (tr *transcript) String() string {
	text, _ := tr.snapshot()
	return text
}

func (tr *transcript) snapshot() (string, <-chan struct{}) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return string(tr.text), tr.changed
}

// process is a child that never outlives the test.
type process struct {
	t              *testing.T
	name           string
	cmd            *exec.Cmd
	stdout, stderr *transcript
	exited         chan struct{}
}

// command prepares a child in a working directory of its own, without the
// broker's environment variables.
func command(t *testing.T, path string, args ...string) *process {
	p := &process{
		t: t, name: filepath.Base(path), cmd: exec.Command(path, args...),
		stdout: newTranscript(), stderr: newTranscript(), exited: make(chan struct{}),
	}
	p.cmd.Dir = t.TempDir()
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	p.cmd.WaitDelay = 10 * time.Second // its last words may be read late
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "MCP_BROKER_") {
			p.cmd.Env = append(p.cmd.Env, v)
		}
	}
	return p
}

func (p *process) start() {
	p.t.Helper()
	if err := p.cmd.Start(); err != nil {
		p.t.Fatalf("start %s: %v", p.name, err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	p.t.Cleanup(p.end)
}

func (p *process) end() {
	p.kill()
	if strings.Contains(p.stderr.String(), "WARNING: DATA RACE") {
		p.t.Errorf("%s has a data race", p.name)
	}
	if p.t.Failed() {
		p.t.Logf("%s wrote\n%s\nand on standard error\n%s", p.name, p.stdout, p.stderr)
	}
}

// kill ends the process without giving it a chance, and waits for its end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("send %s to %s: %v", s, p.name, err)
	}
}

// exit waits for the process to end by itself and returns its exit code.
func (p *process) exit(within time.Duration) int {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(within):
		p.t.Fatalf("%s still runs after %s", p.name, within)
	}
	return p.cmd.ProcessState.ExitCode()
}

// stops waits for a broker to end by itself, in order: with exit code 0, and within the
// time it gives itself (F-14).
func (p *process) stops() {
	p.t.Helper()
	code := p.exit(patience)
	if said := p.stderr.String(); code != 0 || strings.Contains(said, "not everything ended within") {
		p.t.Errorf("%s exited with %d; its standard error ends in %q", p.name, code, said[max(0, len(said)-400):])
	}
}

// await waits until the output contains a match and returns its submatches.
func (p *process) await(tr *transcript, pattern string) []string {
	p.t.Helper()
	return p.awaitBehind(tr, 0, pattern)
}

// awaitBehind is await for what comes behind the first bytes of the output.
func (p *process) awaitBehind(tr *transcript, known int, pattern string) []string {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	for exited := p.exited; ; {
		text, changed := tr.snapshot()
		if m := re.FindStringSubmatch(text[known:]); m != nil {
			return m
		}
		if exited == nil {
			p.t.Fatalf("%s ended without writing %q", p.name, pattern)
		}
		select {
		case <-changed:
		case <-exited:
			exited = nil // once more: the last words may be the ones
		case <-ctx.Done():
			p.t.Fatalf("%s did not write %q", p.name, pattern)
		}
	}
}

// broker is the built binary, running.
type broker struct {
	*process
	port string
}

// newBroker prepares "broker run".
func newBroker(t *testing.T, args ...string) *process {
	t.Helper()
	binary, err := brokerBinary()
	if err != nil {
		t.Fatal(err)
	}
	return command(t, binary, append([]string{"run"}, args...)...)
}

// startBroker runs "broker run" on a free port, or on the one args name, and
// returns once it listens.
func startBroker(t *testing.T, args ...string) *broker {
	t.Helper()
	return runBroker(newBroker(t, append([]string{"--port", "0"}, args...)...))
}

func runBroker(p *process) *broker {
	p.t.Helper()
	p.start()
	m := p.await(p.stderr, `started on https?://localhost:(\d+) `)
	return &broker{process: p, port: m[1]}
}

// restart runs another broker on the port of one that has ended, which is a freePort.
func (b *broker) restart(args ...string) *broker {
	b.t.Helper()
	<-b.exited
	return startBroker(b.t, append([]string{"--port", b.port}, args...)...)
}

func (b *broker) mcp(slot string) string { return "http://127.0.0.1:" + b.port + "/" + slot + "/mcp" }

func (b *broker) direct(slot string) string { return "ws://127.0.0.1:" + b.port + "/provider/" + slot }

func (b *broker) multiplex() string { return "ws://127.0.0.1:" + b.port + "/providers" }
