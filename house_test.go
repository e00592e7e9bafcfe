package mcpbroker_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbroker"
	"mcpbroker/actors/msg"
	"mcpbroker/brokertest"
	"mcpbroker/config"
)

// house is a broker that was started from a configuration file.
type house struct {
	*brokertest.Broker
	t   testing.TB
	dir string // of the file
}

// patience bounds every wait for a process. Only a failing test uses it up.
const patience = 30 * time.Second

// newHouse starts a broker from the text of a broker.toml, which may begin with
// keys of the whole broker.
func newHouse(t testing.TB, text string, more ...mcpbroker.Option) *house {
	t.Helper()
	h := &house{t: t, dir: t.TempDir()}
	c, err := h.load(text)
	if err != nil {
		t.Fatal(err)
	}
	h.Broker = brokertest.Start(t, brokertest.Options{Configure: append([]mcpbroker.Option{mcpbroker.WithConfig(c)}, more...)})
	return h
}

func (h *house) load(text string) (*config.Config, error) {
	h.t.Helper()
	file := filepath.Join(h.dir, "broker.toml")
	if err := os.WriteFile(file, []byte("host = \"127.0.0.1\"\nport = 0\n"+text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return config.Load(config.Source{Path: file})
}

// reload makes text the configuration of the running broker.
func (h *house) reload(text string) (mcpbroker.Reloaded, error) {
	h.t.Helper()
	c, err := h.load(text)
	if err != nil {
		return mcpbroker.Reloaded{}, err
	}
	return h.Reload(h.t.Context(), c)
}

// child is an entry of stdioUpstreams that runs the test binary as an MCP server.
// Lines of TOML may follow it.
func child(name string, args ...string) string {
	binary, err := os.Executable()
	if err != nil {
		panic(err)
	}
	list := []string{strconv.Quote(asChild)}
	for _, arg := range args {
		list = append(list, strconv.Quote(arg))
	}
	return fmt.Sprintf("\n[[stdioUpstreams]]\nname = %q\ncommand = %q\nargs = [%s]\nenv.GORACE = \"atexit_sleep_ms=0\"\n", name, binary, strings.Join(list, ", "))
}

// instance describes the upstream of a slot.
func (h *house) instance(slot string) msg.Instance {
	h.t.Helper()
	all, err := h.Upstreams(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	for _, i := range all {
		if i.Slot == slot {
			return i
		}
	}
	h.t.Fatalf("slot %q has no upstream among %d", slot, len(all))
	return msg.Instance{}
}

// wait asks for the upstream of a slot until it is as wanted.
func (h *house) wait(slot string, wanted func(msg.Instance) bool) msg.Instance {
	h.t.Helper()
	var i msg.Instance
	if !eventually(func() bool { i = h.instance(slot); return wanted(i) }) {
		h.t.Fatalf("the upstream did not change as wanted; it is %+v", i)
	}
	return i
}

// eventually asks until something is true.
func eventually(isTrue func() bool) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(patience); ; {
		if isTrue() {
			return true
		}
		select {
		case <-tick.C:
		case <-late:
			return false
		}
	}
}

func (h *house) verdict(slot string, v msg.Verdict) msg.Instance {
	h.t.Helper()
	return h.wait(slot, func(i msg.Instance) bool { return i.Verdict == v })
}

// client opens a session on a slot.
func (h *house) client(slot string) *brokertest.Client {
	h.t.Helper()
	c := brokertest.NewClient(h.t, h.MCPURL(slot))
	if a := c.Initialize(); !strings.Contains(a.Body, `"result"`) {
		h.t.Fatalf("initialize of slot %q: %d %s", slot, a.Status, a.Body)
	}
	return c
}

// text calls a tool, which must answer with a text.
func (h *house) text(c *brokertest.Client, tool, arguments string) string {
	h.t.Helper()
	return textOf(h.t, c.Post(toolCall("1", tool, arguments)))
}

func textOf(t testing.TB, a brokertest.Answer) string {
	t.Helper()
	var answer struct {
		Result struct {
			Content []struct{ Text string }
			IsError bool
		}
	}
	if err := json.Unmarshal([]byte(a.Body), &answer); err != nil || len(answer.Result.Content) != 1 || answer.Result.IsError {
		t.Fatalf("not the text of a tool: %d %.1000s", a.Status, a.Body)
	}
	return answer.Result.Content[0].Text
}

// kill ends a process at once.
func kill(t testing.TB, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	process, err := os.FindProcess(n)
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Kill(); err != nil {
		t.Fatalf("kill %d: %v", n, err)
	}
}

// journal is what children have written down.
func journal(t testing.TB, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// methodsOf are the lines one process wrote into a journal, without its pid.
func methodsOf(lines []string, pid string) []string {
	var methods []string
	for _, line := range lines {
		if rest, ok := strings.CutPrefix(line, pid+" "); ok {
			methods = append(methods, rest)
		}
	}
	return methods
}

// lifeline tells when children begin and end: each holds a connection to it.
type lifeline struct {
	listener   net.Listener
	born, died chan string // pids

	mu    sync.Mutex
	alive map[string]bool
}

func newLifeline(t testing.TB) *lifeline {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &lifeline{listener: listener, born: make(chan string, 1<<14), died: make(chan string, 1<<14), alive: map[string]bool{}}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { l.follow(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		if !eventually(func() bool { return l.living() == 0 }) {
			t.Errorf("%d children are left", l.living())
			return
		}
		all.Wait()
	})
	return l
}

func (l *lifeline) addr() string { return l.listener.Addr().String() }

func (l *lifeline) follow(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	line, err := in.ReadString('\n')
	if err != nil {
		return // it died in the middle of its start
	}
	pid := strings.TrimSpace(line)
	l.set(pid, true)
	l.born <- pid
	_, _ = in.ReadByte()
	l.set(pid, false)
	l.died <- pid
}

func (l *lifeline) set(pid string, alive bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if alive {
		l.alive[pid] = true
	} else {
		delete(l.alive, pid)
	}
}

// living is how many children live.
func (l *lifeline) living() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.alive)
}

// only tells whether this child lives and no other does.
func (l *lifeline) only(pid string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.alive) == 1 && l.alive[pid]
}

// next takes the next pid of born or died.
func next(t testing.TB, pids <-chan string, within time.Duration, what string) string {
	t.Helper()
	select {
	case pid := <-pids:
		return pid
	case <-time.After(within):
		t.Fatalf("no child %s within %s", what, within)
		return ""
	}
}
