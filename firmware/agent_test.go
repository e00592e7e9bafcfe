package firmware

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcpbroker/firmware/firmwaretest"
)

// The agent's own tests: in a bare loop, and with threads under ThreadSanitizer. The
// targets run what they build.
func TestAgent(t *testing.T) {
	for _, target := range []string{"agent-bare", "agent-threads", "agent-freestanding"} {
		t.Run(target, func(t *testing.T) {
			require(t, "gcc", "gcc")
			build(t, target)
		})
	}
}

// agent is the agent on POSIX threads, under ThreadSanitizer, with the MCP surface.
type agent struct {
	*process
	commands io.Writer
	told     int // commands so far
}

func startAgent(t *testing.T, port, slot string) *agent {
	t.Helper()
	require(t, "gcc", "gcc")
	build(t, "agent-device")
	p := command(t, filepath.Join(firmwaretest.Dir(t), "build", "agent", "device"), port, slot)
	commands, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.start()
	// Before the process is ended by force: its own end reports what the sanitizer
	// found.
	t.Cleanup(func() {
		_ = commands.Close()
		if code := p.exit(); code != 0 {
			t.Errorf("the agent ended with exit code %d", code)
		}
	})
	return &agent{process: p, commands: commands}
}

// tell gives a command without waiting for it to be carried out.
func (a *agent) tell(line string) {
	a.t.Helper()
	a.told++
	if _, err := fmt.Fprintln(a.commands, line); err != nil {
		a.t.Fatalf("tell the agent to %s: %v", line, err)
	}
}

// do gives a command and returns the number it is answered with.
func (a *agent) do(line string) int {
	a.t.Helper()
	a.tell(line)
	return a.did()
}

// did waits for the answer to the last command. Events come before and after it, so
// it leaves them to be found.
func (a *agent) did() int {
	a.t.Helper()
	late := time.After(patience)
	for {
		a.mu.Lock()
		changed, answers := a.changed, []string(nil)
		for _, line := range a.lines {
			if rest, ok := strings.CutPrefix(line, "did "); ok {
				answers = append(answers, rest)
			}
		}
		a.mu.Unlock()
		if len(answers) >= a.told {
			return number(a.t, strings.Fields(answers[a.told-1])[0])
		}
		select {
		case <-changed:
		case <-a.exited:
			a.t.Fatal("the agent has ended")
		case <-late:
			a.t.Fatalf("the agent did %d of %d commands within %s", len(answers), a.told, patience)
		}
	}
}

// spec 04 7, 15: an agent waits for the network, serves its slot, sends from several
// threads while it serves, loses the broker and comes back, stops and starts.
func TestAgentAgainstBroker(t *testing.T) {
	b := startBroker(t, "")
	a := startAgent(t, b.port, "pump-1")
	if rc := a.do("start"); rc != 0 {
		t.Fatalf("start: %d", rc)
	}
	if rc := a.do("start"); rc != -8 {
		t.Errorf("second start: %d, want -8", rc)
	}
	if r := gone(t, b.mcp("pump-1")); r.Error == nil || r.Error.Code != -32000 {
		t.Errorf("call before there is a network: %s %+v", r.Result, r.Error)
	}
	a.do("up")
	a.next(`^event CONNECTED connects=1$`)
	s := open(t, b.mcp("pump-1"), "pump-1")
	s.echo("pump-1", awkward)
	a.notifies(s)

	b.kill()
	a.next(`^event DISCONNECTED `)
	b = b.restart("")
	a.next(`^event CONNECTED connects=2$`)
	open(t, b.mcp("pump-1"), "pump-1").echo("pump-1", "again")

	if rc := a.do("stop"); rc != 0 {
		t.Errorf("stop: %d", rc)
	}
	if r := gone(t, b.mcp("pump-1")); r.Error == nil || r.Error.Code != -32000 {
		t.Errorf("call of a stopped agent: %s %+v", r.Result, r.Error)
	}
	a.do("start")
	a.next(`^event CONNECTED connects=1$`)
	open(t, b.mcp("pump-1"), "pump-1").echo("pump-1", "and again")
}

// notifies has four threads send, with calls between, and counts what arrives.
func (a *agent) notifies(s *session) {
	a.t.Helper()
	stream := s.client.Listen()
	const each = 50
	a.tell(fmt.Sprint("notify ", each))
	for i := range 20 {
		s.echo("pump-1", fmt.Sprint("meanwhile ", i))
	}
	for arrived := 0; arrived < 4*each; {
		block := stream.Next()
		if block == "" {
			a.t.Fatalf("%d notifications of %d arrived", arrived, 4*each)
		}
		for line := bufio.NewScanner(strings.NewReader(block)); line.Scan(); {
			if strings.Contains(line.Text(), `"from the agent"`) {
				arrived++
			}
		}
	}
	if sent := a.did(); sent != 4*each {
		a.t.Errorf("%d notifications were sent, want %d", sent, 4*each)
	}
}

// spec 04 15: the agent whose slot another holds says so, with the broker's words.
func TestAgentSlotHeld(t *testing.T) {
	b := startBroker(t, "")
	startDevice(t, b.port, "--name", "pump-1").awaitConnect(1)
	a := startAgent(t, b.port, "pump-1")
	a.do("start")
	a.do("up")
	a.next(`^event DISCONNECTED code=1008 reason=Slot already held by a live provider; .*"pump-1" attempts=1$`)
	a.next(`^event DISCONNECTED code=1008 .* attempts=2$`)
}
