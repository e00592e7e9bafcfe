package aggregate_test

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpbroker/actors/wire"
	"mcpbroker/brokertest"
	"mcpbroker/config"
)

// gate is where children wait before they serve.
type gate struct {
	t testing.TB
	l net.Listener
}

func newGate(t testing.TB) *gate {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return &gate{t, l}
}

// next waits for the next child to come; it serves once open is called.
func (g *gate) next() (open func()) {
	g.t.Helper()
	_ = g.l.(*net.TCPListener).SetDeadline(time.Now().Add(patience))
	c, err := g.l.Accept()
	if err != nil {
		g.t.Fatalf("no child came: %v", err)
	}
	g.t.Cleanup(func() { c.Close() })
	return func() { _, _ = c.Write([]byte{1}) }
}

// withChild adds an upstream that is this test binary; see main_test.go.
func withChild(t testing.TB, name string, g *gate) func(*config.Config) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Parse("x.toml", fmt.Appendf(nil, "[[stdioUpstreams]]\nname = '%s'\naggregate = true\ncommand = '%s'\nenv = { AGGREGATE_TEST_CHILD = '%s' }\n",
		name, program, g.l.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	return func(c *config.Config) { c.StdioUpstreams = cfg.StdioUpstreams }
}

func who(c caller, id, asked string) {
	c.Send(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"s-who","arguments":` + asked + `}}`)
}

// pid is the process that answered, and to which question.
func pid(t testing.TB, message, id, asked string) int {
	t.Helper()
	result := wire.Member([]byte(message), "result")
	n, err := strconv.Atoi(string(wire.Member(result, "pid")))
	if err != nil || brokertest.ID(message) != id || string(wire.Member(result, "asked")) != asked {
		t.Fatalf("got %s, want the answer of a process to call %s of %s", message, id, asked)
	}
	return n
}

// undisturbed is a caller that is not to hear of a change of lists.
type undisturbed struct {
	t testing.TB
	caller
}

func (u undisturbed) Receive() string {
	u.t.Helper()
	message := u.caller.Receive()
	if strings.Contains(message, `/list_changed"`) {
		u.t.Errorf("got %s", message)
	}
	return message
}

// Spec 06, discovery cache: the death of a member's process is no news to the
// clients of _all. Its lists stay, marked, and a call made before there is another
// process is answered by that.
func TestChildRestart(t *testing.T) {
	everywhere := []string{"ws", "http"}
	g := newGate(t)
	b := start(t, withChild(t, "s", g))
	g.next()()
	b.Log.Wait(t, `provider "s" joined "_all" with 1 tool`)
	watcher := undisturbed{t, open(t, b, transports["ws"], "_all")}
	callers := map[string]caller{}
	var first int
	for _, name := range everywhere {
		callers[name] = undisturbed{t, open(t, b, transports[name], "_all")}
		who(callers[name], `1`, `{"n":1}`)
		first = pid(t, callers[name].Receive(), `1`, `{"n":1}`)
	}

	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	serve := g.next() // its death has been noticed
	for _, name := range everywhere {
		who(callers[name], `2`, `{"n":2}`)
	}
	marked(t, watcher, "s-who", `{"joined":["_broker","s"],"restarting":[{"slot":"s","reason":"its lists are those of before the restart"}],"missing":[]}`)
	report := diagnose(t, watcher)
	if !strings.Contains(report, "aggregate-member-restarting") || strings.Contains(report, "aggregate-member-incomplete") {
		t.Errorf("broker_diagnose meanwhile: %s", report)
	}

	serve()
	var second int
	for _, name := range everywhere {
		second = pid(t, callers[name].Receive(), `2`, `{"n":2}`)
	}
	if second == first {
		t.Errorf("process %d answered after its death", first)
	}
	b.Log.WaitN(t, 2, `provider "s" joined "_all" with 1 tool`)
	who(watcher, `3`, `{"n":3}`)
	if n := pid(t, watcher.Receive(), `3`, `{"n":3}`); n != second {
		t.Errorf("process %d answered, want %d", n, second)
	}
	marked(t, watcher, "s-who", `{"joined":["_broker","s"],"missing":[]}`)
}

// Spec 06: so is a call that is made as soon as the process is dead, whatever the
// broker knows of that by then.
func TestCallAtChildsDeath(t *testing.T) {
	g := newGate(t)
	everywhere(t, withChild(t, "s", g), func(t *testing.T, b *brokertest.Broker, dial dialer) {
		g.next()()
		b.Log.Wait(t, `provider "s" joined "_all" with 1 tool`)
		c := undisturbed{t, open(t, b, dial, "_all")}
		who(c, `1`, `{"n":1}`)
		first := pid(t, c.Receive(), `1`, `{"n":1}`)
		if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for syscall.Kill(first, 0) == nil {
			runtime.Gosched()
		}
		who(c, `2`, `{"n":2}`)
		g.next()()
		if second := pid(t, c.Receive(), `2`, `{"n":2}`); second == first {
			t.Errorf("process %d answered after its death", first)
		}
	})
}

// marked asks for the tools until their _meta says this of the members; they are
// the same all the time.
func marked(t testing.TB, c caller, want, members string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		names, meta := tools(t, c, `"t"`)
		is(t, "the tools", strings.Join(names, " "), want)
		got := string(wire.Member([]byte(meta), "io.cyanmycelium/members"))
		if got == members {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the members are %s, want %s", got, members)
		}
	}
}

func diagnose(t testing.TB, c caller) string {
	t.Helper()
	c.Send(`{"jsonrpc":"2.0","id":"d","method":"tools/call","params":{"name":"_broker-broker_diagnose"}}`)
	return c.Receive()
}
