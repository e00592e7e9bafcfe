//go:build unix

package stdio

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpbroker/actors/msg"
)

// witness is a FIFO that processes hold open as long as they live.
type witness struct {
	t    testing.TB
	path string
	from *os.File
}

func newWitness(t testing.TB) *witness {
	t.Helper()
	path := t.TempDir() + "/fifo"
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	// Opening for reading alone would wait for a writer.
	from, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = from.Close() })
	return &witness{t, path, from}
}

// alive waits until n processes hold the FIFO.
func (w *witness) alive(n int) {
	w.t.Helper()
	w.wait("the start of the processes", func(b []byte, err error) bool {
		n -= len(b)
		return n == 0
	})
}

// dead waits until none holds it any more.
func (w *witness) dead() {
	w.t.Helper()
	w.wait("the end of the processes", func(_ []byte, err error) bool { return errors.Is(err, io.EOF) })
}

func (w *witness) wait(what string, done func([]byte, error) bool) {
	w.t.Helper()
	if err := w.from.SetReadDeadline(time.Now().Add(patience)); err != nil {
		w.t.Fatal(err)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	b := make([]byte, 1)
	for {
		n, err := w.from.Read(b)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			w.t.Fatalf("waited in vain for %s", what)
		}
		if done(b[:n], err) {
			return
		}
		if n == 0 { // nobody has it open for writing
			<-tick.C
		}
	}
}

// A server that knows from the end of its stdin that it is not needed is not
// signalled: it ends with exit code 0, and long before its grace.
func TestStopInOrder(t *testing.T) {
	h := newHouse(t)
	h.bounds.hint = patience
	r := h.start(t, Config{Name: "s", Command: "/bin/sh", Args: []string{"-c", `trap 'echo TERM >&2' TERM; echo '{"method":"up"}'; read -r _; echo goodbye >&2`}})
	r.hear()
	r.driver.Stop(time.Hour)
	end := r.end()
	equal(t, "error", end.Err, error(nil))
	equal(t, "tail", end.Tail, []string{"goodbye"})
	if strings.Contains(h.log.String(), "StdioUpstream") {
		t.Errorf("log of an orderly stop: %s", h.log)
	}
}

// What was handed over before Stop is still written.
func TestStopWritesWhatWaits(t *testing.T) {
	h := newHouse(t)
	h.bounds.hint = patience
	r := h.start(t, Config{Name: "s", Command: "/bin/sh", Args: []string{"-c", `while read -r line; do echo "$line" >&2; done`}})
	r.send(`{"id":1}`)
	r.send(`{"id":2}`)
	r.driver.Stop(time.Hour)
	equal(t, "tail", r.end().Tail, []string{`{"id":1}`, `{"id":2}`})
}

// One that does not look at its stdin gets TERM.
func TestStopTerminates(t *testing.T) {
	r := newHouse(t).start(t, self(t, "terminable"))
	r.hear()
	r.driver.Stop(patience)
	equal(t, "tail", r.end().Tail, []string{"TERM"})
}

// Spec 07 row 31: a wrapper and its child that both ignore TERM are killed after
// the grace, both.
func TestStopKillsTheGroup(t *testing.T) {
	w := newWitness(t)
	r := newHouse(t).start(t, self(t, "family", w.path))
	w.alive(2)
	begun := time.Now()
	r.driver.Stop(100 * time.Millisecond)
	equal(t, "error", r.end().Err, error(nil))
	w.dead()
	if took := time.Since(begun); took < 100*time.Millisecond {
		t.Errorf("killed after %s, before the grace was over", took)
	}
}

// Spec 07 row 31: a wrapper that exits before its child takes it along.
func TestExitTakesTheGroupAlong(t *testing.T) {
	w := newWitness(t)
	r := newHouse(t).start(t, self(t, "leaver", w.path))
	w.alive(1)
	r.send("{}")
	equal(t, "error", fmt.Sprint(r.end().Err), "it exited with code 3")
	w.dead()
}

// A descendant that has left the group and holds the pipes does not hold up the
// end.
func TestStrayHolderOfThePipes(t *testing.T) {
	setsid, err := exec.LookPath("setsid")
	if err != nil {
		t.Skip("setsid is not installed")
	}
	w := newWitness(t)
	h := newHouse(t)
	h.bounds.drain = 20 * time.Millisecond
	cfg := self(t, "stubborn", w.path)
	script := fmt.Sprintf(`%s %s %s & read -r _; echo $! >&2; read -r _; exit 4`, setsid, cfg.Command, w.path)
	cfg.Command, cfg.Args = "/bin/sh", []string{"-c", script}
	r := h.start(t, cfg)
	w.alive(1)
	r.send("{}")
	await(t, r.owner, "line") // read before the pipes are given up
	r.send("{}")
	end := r.end()
	if len(end.Tail) != 1 || fmt.Sprint(end.Err) != "it exited with code 4; a process it left behind holds its pipes (a server has to stay in the foreground); its stderr ends with: "+end.Tail[0] {
		t.Fatalf("ended with %v, tail %q", end.Err, end.Tail)
	}
	var stray int
	if _, err := fmt.Sscan(end.Tail[0], &stray); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(stray, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	w.dead()
}

// Spec 07 row 34: all children are ended in parallel. Each of these is told to end
// before any other has ended.
func TestStopInParallel(t *testing.T) {
	h := newHouse(t)
	const many = 6
	var all []*running
	for range many {
		cfg := self(t, "reluctant")
		cfg.Grace = time.Hour
		r := h.start(t, cfg)
		r.hear()
		all = append(all, r)
	}
	ctx, hurry := context.WithCancel(context.Background())
	defer hurry()
	stopped := make(chan error, 1)
	go func() { stopped <- h.Stop(ctx) }()
	for _, r := range all {
		said, ok := await(t, r.owner, "line").(*msg.UpstreamSaid)
		if !ok || said.Line != "TERM" {
			t.Errorf("told %+v, not of TERM", said)
		}
	}
	hurry()
	if err := await(t, stopped, "end of Stop"); !errors.Is(err, context.Canceled) {
		t.Errorf("Stop: %v", err)
	}
	for _, r := range all {
		equal(t, "error", r.end().Err, error(nil))
	}
}

// A broker that has no more time kills its children.
func TestStopInAHurry(t *testing.T) {
	h := newHouse(t)
	w := newWitness(t)
	cfg := self(t, "family", w.path)
	cfg.Grace = time.Hour
	r := h.start(t, cfg)
	w.alive(2)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := h.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Stop: %v", err)
	}
	r.end()
	w.dead()
}

// Spec 07 row 31, spec 06: after a hard kill of the broker neither a child nor a
// grandchild is left, though both ignore every signal that can be ignored and
// never look at their stdin.
func TestHardKill(t *testing.T) {
	w := newWitness(t)
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	broker := exec.Command(binary, w.path)
	broker.Env = append(os.Environ(), asChild+"=broker")
	broker.Stderr = os.Stderr
	out, err := broker.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := broker.Start(); err != nil {
		t.Fatal(err)
	}
	var group int
	line, err := bufio.NewReader(out).ReadString('\n')
	if _, scan := fmt.Sscan(line, &group); err != nil || scan != nil {
		t.Fatalf("the broker said %q (%v)", line, err)
	}
	w.alive(2)
	if err := broker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = broker.Wait() // killed, as asked
	w.dead()
	// The guard goes with them. It is reaped by somebody else.
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); syscall.Kill(-group, 0) == nil; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("group %d still has members", group)
		}
	}
}

// A command that makes a session for itself is ended as every other is, though it does
// not look at its stdin.
func TestStopSetsid(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("setsid is not installed")
	}
	r := newHouse(t).start(t, Config{Name: "s", Command: "setsid", Env: []string{"PATH=/usr/bin:/bin"}, Args: []string{"sh", "-c", `trap '' TERM; echo '{"method":"up"}'; exec sleep 1000`}})
	r.hear()
	r.driver.Stop(50 * time.Millisecond)
	end := r.end()
	equal(t, "error", end.Err, error(nil))
	equal(t, "exit", end.Exit, "killed by SIGKILL")
	if err := syscall.Kill(r.pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d: %v", r.pid, err)
	}
}

// A grace of 0 is none.
func TestStopWithoutGrace(t *testing.T) {
	h := newHouse(t)
	r := h.start(t, Config{Name: "s", Command: "/bin/sh", Args: []string{"-c", `trap 'echo TERM >&2' TERM; echo '{"method":"up"}'; read -r _; echo goodbye >&2; read -r _ <&1`}})
	r.hear()
	r.cancel()
	end := r.end()
	equal(t, "exit", end.Exit, "killed by SIGKILL")
	equal(t, "tail", end.Tail, []string(nil))
}

// A process that outlives KILL is waited for a bounded time and told, and nothing else
// waits for it.
func TestProcessThatCannotBeEnded(t *testing.T) {
	h := newHouse(t)
	h.bounds.killed = 20 * time.Millisecond
	w := newWitness(t)
	r := h.start(t, self(t, "stubborn", w.path))
	w.alive(1)
	stuck := r.driver.(*child)
	id, exited := stuck.group.id, stuck.group.exited
	stuck.group.id = 0 // no signal reaches it
	r.driver.Stop(0)
	want := fmt.Sprintf("process %d cannot be ended", r.pid)
	equal(t, "error", fmt.Sprint(r.end().Err), want)
	if !strings.Contains(h.log.String(), want) {
		t.Errorf("log: %s", h.log)
	}
	equal(t, "Stop", fmt.Sprint(h.Stop(context.Background())), want)
	h.stuck = nil // what newHouse looks at
	if err := syscall.Kill(-id, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-exited
	w.dead()
	h.unguarded(t)
}

// Without a shell children run unguarded, which is said once.
func TestWithoutGuard(t *testing.T) {
	h := newHouse(t)
	for range 2 {
		h.warnUnguarded(errors.New("no shell"))
	}
	equal(t, "warnings", strings.Count(h.log.String(), "no process guard can be started"), 1)
	cmd := exec.Command("/bin/sh", "-c", "read -r _")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var g group
	g.enter(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	g.entered(cmd, exited)
	equal(t, "group", g.id, cmd.Process.Pid)
	g.kill()
	_ = cmd.Wait() // its state tells
	close(exited)
	g.kill() // nobody is there any more
	g.release()
	equal(t, "end", exitWords(cmd.ProcessState), ended("was killed by SIGKILL"))
	_ = in.Close() // Wait has closed it
}

// The last lines are told to the owner as they come, with the driver's own number.
func TestSaid(t *testing.T) {
	r := newHouse(t).start(t, Config{Name: "s", Command: "/bin/sh", Args: []string{"-c", `read -r _; echo one >&2; echo two >&2; read -r _`}})
	r.send("{}") // what it says before it is open, start passes over
	for _, want := range []string{"one", "two"} {
		said := await(t, r.owner, "line").(*msg.UpstreamSaid)
		if said.Gen != 3 || said.Line != want {
			t.Errorf("said %+v, want %s", said, want)
		}
	}
	r.stop()
}
