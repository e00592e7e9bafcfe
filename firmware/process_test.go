package firmware

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a child that never outlives its test. Both of its outputs are read
// as lines.
type process struct {
	t      *testing.T
	name   string
	cmd    *exec.Cmd
	exited chan struct{}

	mu      sync.Mutex
	rest    []byte
	lines   []string
	changed chan struct{} // closed and replaced with every line
	cursor  int           // next looks at the lines from here on
}

// command prepares a child in a working directory of its own, without the
// broker's environment variables.
func command(t *testing.T, path string, args ...string) *process {
	p := &process{
		t: t, name: filepath.Base(path), cmd: exec.Command(path, args...),
		exited: make(chan struct{}), changed: make(chan struct{}),
	}
	p.cmd.Dir = t.TempDir()
	p.cmd.Stdout, p.cmd.Stderr = p, p
	p.cmd.WaitDelay = patience // its last words may be read late
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "MCP_BROKER_") {
			p.cmd.Env = append(p.cmd.Env, v)
		}
	}
	return p
}

// Write implements io.Writer for the child's output.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rest = append(p.rest, b...)
	for {
		line, rest, ok := bytes.Cut(p.rest, []byte("\n"))
		if !ok {
			return len(b), nil
		}
		p.lines = append(p.lines, strings.TrimSuffix(string(line), "\r"))
		p.rest = rest
		close(p.changed)
		p.changed = make(chan struct{})
	}
}

func (p *process) start() *process {
	p.t.Helper()
	if err := p.cmd.Start(); err != nil {
		p.t.Fatalf("start %s: %v", p.name, err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	p.t.Cleanup(p.end)
	return p
}

func (p *process) end() {
	p.kill()
	text := strings.Join(p.all(), "\n")
	for _, finding := range []string{"WARNING: DATA RACE", "ERROR: AddressSanitizer", "ERROR: LeakSanitizer", "runtime error:"} {
		if strings.Contains(text, finding) {
			p.t.Errorf("%s: %s", p.name, finding)
		}
	}
	if p.t.Failed() {
		p.t.Logf("%s wrote\n%s", p.name, text)
	}
}

// kill ends the process without giving it a chance, and waits for its end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("send %s to %s: %v", s, p.name, err)
	}
}

// exit waits for the process to end by itself and returns its exit code.
func (p *process) exit() int {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(patience):
		p.t.Fatalf("%s still runs after %s", p.name, patience)
	}
	return p.cmd.ProcessState.ExitCode()
}

// all returns every line so far.
func (p *process) all() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.lines...)
}

// find returns the submatches of the first line from the cursor on that matches,
// and moves the cursor behind it.
func (p *process) find(re *regexp.Regexp) ([]string, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := p.cursor; i < len(p.lines); i++ {
		if m := re.FindStringSubmatch(p.lines[i]); m != nil {
			p.cursor = i + 1
			return m, nil
		}
	}
	return nil, p.changed
}

// next waits for the next line that matches and returns its submatches.
func (p *process) next(pattern string) []string {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	late := time.After(patience)
	for exited := p.exited; ; {
		m, changed := p.find(re)
		if m != nil {
			return m
		}
		if exited == nil {
			p.t.Fatalf("%s ended without a line %q", p.name, pattern)
		}
		select {
		case <-changed:
		case <-exited:
			exited = nil // once more: the last words may be the ones
		case <-late:
			p.t.Fatalf("%s wrote no line %q within %s", p.name, pattern, patience)
		}
	}
}

// count tells how many lines match so far.
func (p *process) count(pattern string) int {
	re := regexp.MustCompile(pattern)
	n := 0
	for _, line := range p.all() {
		if re.MatchString(line) {
			n++
		}
	}
	return n
}

// brokerProcess is the built broker, running: one that can be killed.
type brokerProcess struct {
	*process
	port string
}

// startBroker runs the broker on a free port, with the lines of a configuration
// file.
func startBroker(t *testing.T, config string) *brokerProcess {
	t.Helper()
	return runBroker(t, reservePort(t), config)
}

// reservePort returns a port that no process is given by chance until the test ends,
// and on which a broker can be killed and started again: it is bound, but nobody
// listens.
func reservePort(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatalf("reserve a port: %v", err)
	}
	syscall.CloseOnExec(fd)
	t.Cleanup(func() { _ = syscall.Close(fd) })
	at, err := bindShared(fd)
	if err != nil {
		t.Fatalf("reserve a port: %v", err)
	}
	return strconv.Itoa(at.(*syscall.SockaddrInet4).Port)
}

func bindShared(fd int) (syscall.Sockaddr, error) {
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return nil, err
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return nil, err
	}
	return syscall.Getsockname(fd)
}

func runBroker(t *testing.T, port, config string) *brokerProcess {
	t.Helper()
	binary, err := brokerBinary()
	if err != nil {
		t.Fatal(err)
	}
	p := command(t, binary)
	file := filepath.Join(p.cmd.Dir, "broker.toml")
	text := "host = \"127.0.0.1\"\nport = " + port + "\n" + config
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p.cmd.Args = append(p.cmd.Args, "run", file)
	p.start()
	m := p.next(`started on https?://localhost:(\d+) `)
	return &brokerProcess{process: p, port: m[1]}
}

// restart runs another broker on the port of one that was killed.
func (b *brokerProcess) restart(config string) *brokerProcess {
	b.t.Helper()
	<-b.exited
	return runBroker(b.t, b.port, config)
}

func (b *brokerProcess) mcp(slot string) string {
	return "http://127.0.0.1:" + b.port + "/" + slot + "/mcp"
}
