package scenarios

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// Every built-in scenario passes against the real broker.
func TestBuiltins(t *testing.T) {
	list := Builtins()
	if len(list) != 21 {
		t.Errorf("%d built-in scenarios, want 21", len(list))
	}
	for _, b := range list {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			prepare(t, b.Name)
			if b.Summary == "" {
				t.Error("no summary")
			}
			out := newOutput()
			if err := Run(t.Context(), fast(out), b.Name); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if verdict := out.lines.last(); !strings.HasPrefix(verdict, "PASS "+b.Name+" (") {
				t.Errorf("verdict %q", verdict)
			}
		})
	}
}

// spec 03 7.3: what the lifecycle shows, in this order, log and narration
// interleaved.
func TestLifecycleTranscript(t *testing.T) {
	t.Parallel()
	out := newOutput()
	if err := Run(t.Context(), fast(out), "provider-lifecycle"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rest := out.String()
	for _, want := range []string{
		"provider-lifecycle: the life of a provider socket\n",
		"   1. The broker starts on port ",
		"      * A: open\n",
		"      * B: open\n",
		"      * B: closed 1008 \"Slot already held by a live provider; call provider_status on _broker. Slot: \\\"lifecycle-demo\\\"\"\n",
		"      * A: closed 1000\n",
		"      * B: open\n",
		"closed 1006\n",
		"closed 1006\n",
		"      | [mcp-broker] ",
		"      * M: open\n",
		"      * B: open\n",
		"      * B: closed 1000\n",
		"PASS provider-lifecycle (",
	} {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Fatalf("no %q after what came before it in\n%s", want, out)
		}
		rest = after
	}
	const connect = `      | [broker] ws connect path="/provider/lifecycle-demo" role=dedicated-provider slot="lifecycle-demo"` + "\n"
	if n := strings.Count(out.String(), connect); n != 4 {
		t.Errorf("%d connect lines of the slot, want 4", n)
	}
}

var listening = regexp.MustCompile(`started on http://localhost:(\d+) `)

// expectFreed checks that nobody listens on the port a broker reported.
func expectFreed(t *testing.T, out *output) {
	t.Helper()
	m := listening.FindStringSubmatch(out.String())
	if m == nil {
		t.Fatalf("no broker has started:\n%s", out)
	}
	conn, err := net.Dial("tcp", "127.0.0.1:"+m[1])
	if err == nil {
		_ = conn.Close()
		t.Errorf("a broker still listens on port %s", m[1])
	}
}

// The command of the built program: exit codes, Ctrl-C, nothing left behind.
func TestCommand(t *testing.T) {
	t.Parallel()
	start := func(out *output, args ...string) *exec.Cmd {
		t.Helper()
		cmd := exec.Command(brokerBinary, append([]string{"scenario", "run"}, args...)...)
		cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir(), "MCP_BROKER_PORT=1", "MCP_BROKER_CONFIG=/nowhere")
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	tempFiles := func(cmd *exec.Cmd) []os.DirEntry {
		for _, v := range cmd.Env {
			if dir, ok := strings.CutPrefix(v, "TMPDIR="); ok {
				entries, err := os.ReadDir(dir)
				if err != nil {
					t.Fatal(err)
				}
				if len(entries) > 0 {
					return entries
				}
			}
		}
		return nil
	}

	out := newOutput()
	cmd := start(out, "--port", "0", "provider-lifecycle", "--heartbeat", "8000", "--fast")
	if err := cmd.Wait(); err != nil || !strings.HasPrefix(out.lines.last(), "PASS provider-lifecycle (") {
		t.Errorf("%v:\n%s", err, out)
	}
	expectFreed(t, out)

	out = newOutput()
	cmd = start(out, "half-open-provider", "--port", "0", "--heartbeat", "60000", "--fast")
	out.wait(t, "A hangs")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.HasPrefix(out.lines.last(), "STOP half-open-provider (after ") {
		t.Errorf("%v:\n%s", err, out)
	}
	expectFreed(t, out)
	if left := tempFiles(cmd); left != nil {
		t.Errorf("files left behind: %v", left)
	}
}

// Ending ctx gives the scenario up, and the ones after it.
func TestInterrupted(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	out := newOutput()
	o := fast(out)
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("enough")
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, o, "deadline", "slot-crash")
	}()
	out.wait(t, "A receives a call and stays silent.")
	cancel(stopped)
	if err := <-done; !errors.Is(err, stopped) {
		t.Errorf("Run returned %v", err)
	}
	verdict := out.lines.last()
	if !strings.HasPrefix(verdict, "STOP deadline (after ") || !strings.HasSuffix(verdict, ": enough") {
		t.Errorf("verdict %q", verdict)
	}
	expectFreed(t, out)
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("files left behind: %v %v", left, err)
	}
}
