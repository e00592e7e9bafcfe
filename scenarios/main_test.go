package scenarios

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbroker/internal/leak"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// brokerBinary is the program under test, built once.
var brokerBinary string

func TestMain(m *testing.M) {
	if mode := os.Getenv(fakeMode); mode != "" {
		os.Exit(fakeBroker(mode))
	}
	flag.Parse()
	os.Exit(withBroker(m))
}

func withBroker(m *testing.M) int {
	dir, err := os.MkdirTemp("", "broker-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	brokerBinary = filepath.Join(dir, "broker")
	build := exec.Command("go", "build", "-o", brokerBinary, "mcpbroker/cmd/broker")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the broker: %v\n%s", err, out)
		return 1
	}
	return leak.Run(m)
}

// fakeMode makes this test binary a broker with a fault.
const fakeMode = "SCENARIOS_FAKE_BROKER"

func fakeBroker(mode string) int {
	switch mode {
	case "dies":
		fmt.Println("[mcp-broker] fake started on http://localhost (no TLS)")
		fmt.Print("a last line without end")
		return 3
	case "refuses":
		fmt.Fprintln(os.Stderr, "[mcp-broker] Cannot start: out of luck")
		return 1
	case "mute":
		time.Sleep(time.Hour) // until it is killed
	}
	return 0
}

// output is a writer that tests can wait on and read.
type output struct {
	mu    sync.Mutex
	text  bytes.Buffer
	lines feed[string]
	split lineWriter
}

func newOutput() *output {
	o := &output{}
	o.split.line = o.lines.add
	return o
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(p)
	return o.split.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// wait returns once a line contains part.
func (o *output) wait(t *testing.T, part string) {
	t.Helper()
	if _, err := o.lines.find(t.Context(), 0, func(line string) bool { return strings.Contains(line, part) }); err != nil {
		t.Fatalf("no line with %q: %v", part, err)
	}
}

// fast are the options of tests. They bear that a process stands still for some seconds:
// no heartbeat is missed, and what is waited for comes in time.
func fast(out *output) Options {
	return Options{Out: out, Broker: brokerBinary, AnyPort: true, Heartbeat: 8 * time.Second, Fast: true, patience: 30 * time.Second}
}

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "my.toml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}
