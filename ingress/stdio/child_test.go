//go:build unix

package stdio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
)

// Spec 03 4.1: a message a line, both ways, in order. A message that has line
// breaks between its tokens is still one line.
func TestRelay(t *testing.T) {
	r := newHouse(t).start(t, self(t, "echo"))
	r.send("{\"jsonrpc\":\"2.0\",\n\"id\":\"brk-1\",\r\n\"method\":\"m\"}")
	equal(t, "answer", r.hear(), `{"jsonrpc":"2.0","id":"brk-1","result":{"jsonrpc":"2.0", "id":"brk-1",  "method":"m"}}`)
	const many = 500
	for n := range many {
		r.send(fmt.Sprintf(`{"id":%d}`, n))
	}
	for n := range many {
		if got, want := r.hear(), fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"id":%d}}`, n, n); got != want {
			t.Fatalf("answer %d: %s", n, got)
		}
	}
	r.stop()
	if r.driver.Send([]byte("{}"), mcp.Required) {
		t.Error("a stopped child took a frame")
	}
}

// Spec 03 4.1: no shell sees the arguments; the environment is the given one and
// no more; the process runs in its directory.
func TestPlace(t *testing.T) {
	t.Setenv("SECRET_OF_THE_BROKER", "x")
	cfg := self(t, "place", "a b", "$HOME", "*", `"`, "")
	cfg.Dir = t.TempDir()
	r := newHouse(t).start(t, cfg)
	var got struct {
		Args, Env []string
		Dir       string
	}
	if err := json.Unmarshal([]byte(r.hear()), &got); err != nil {
		t.Fatal(err)
	}
	equal(t, "args", got.Args[1:], []string{"a b", "$HOME", "*", `"`, ""})
	equal(t, "environment", got.Env, cfg.Env)
	equal(t, "directory", got.Dir, cfg.Dir)
	r.stop()
}

// Spec 07 row 32: a child that writes 256 KiB to stderr answers all the same; the
// last lines are kept, the log has a bounded number of them and a count.
func TestStderrFlood(t *testing.T) {
	h := newHouse(t)
	r := h.start(t, self(t, "flood"))
	r.send(`{"id":1}`)
	equal(t, "answer", r.hear(), `{"jsonrpc":"2.0","id":1,"result":{"id":1}}`)
	r.driver.Stop(patience)
	end := r.end()
	if len(end.Tail) != maxTail || end.Tail[maxTail-1] != "the last line" || end.Tail[0] != strings.Repeat("x", 63) {
		t.Errorf("tail of %d lines: %q", len(end.Tail), end.Tail)
	}
	shown := strings.Count(h.log.String(), `msg="[s] xxx`)
	if !strings.Contains(h.log.String(), "more lines within one second are not shown") || shown < maxSpoken || shown >= 4096 {
		t.Errorf("%d lines in the log", shown)
	}
}

// Spec 07 rows 61, 62: LF and CRLF end a line and nothing else does; a byte order
// mark, blank lines, blanks and banners cost nothing.
func TestLines(t *testing.T) {
	text := "{\"method\":\"a\u2028b\u2029c\u0085d\"}"
	r := newHouse(t).start(t, self(t, "print",
		strconv.Quote("\uFEFF{\"method\":\"first\"}\r\n\r\n\n  \t\n"),
		strconv.Quote("Server listening ...\n"),
		strconv.Quote(text+"\n"),
		strconv.Quote("{\"method\":\"e\"}\v\n{\"method\":\"f\"}\f\r\n"),
		strconv.Quote(" \t{\"method\":\"last\"} \r\n"),
	))
	for _, want := range []string{
		`{"method":"first"}`,
		"junk: Server listening ...",
		text,
		"junk: {\"method\":\"e\"}\v",
		"junk: {\"method\":\"f\"}\f",
		`{"method":"last"}`,
	} {
		equal(t, "line", r.hear(), want)
	}
	r.stop()
}

// Spec 07 row 59: a character split over many reads stays what it is.
func TestBytewise(t *testing.T) {
	const frame = `{"method":"读é🎉"}`
	r := newHouse(t).start(t, self(t, "bytewise", frame))
	equal(t, "frame", r.hear(), frame)
	r.stop()
}

// Spec 07 row 56: answers arrive whole up to the limit. One over it costs its own
// call, wherever its id stands, and nothing of it is kept.
func TestSizes(t *testing.T) {
	const limit = 4 << 20
	for _, where := range []string{"first", "last"} {
		t.Run(where, func(t *testing.T) {
			r := newHouse(t).start(t, self(t, "sizes", where))
			for n, size := range []int{65535, 65536, 65537, 1 << 20, limit - 1, limit, limit + 1, limit + lineBlanks + 1, 5 << 20, 50 << 20, 100} {
				r.send(fmt.Sprintf(`{"id":"brk-%d","params":{"size":%d}}`, n+1, size))
				got := r.hear()
				if size <= limit {
					if len(got) != size {
						t.Errorf("%d bytes: %d came: %.100s", size, len(got), got)
					}
					continue
				}
				want := fmt.Sprintf(`{"jsonrpc":"2.0","id":"brk-%d","error":{"code":-32600,"message":"The message is larger than 4194304 bytes (maxMessageBytes)"}}`, n+1)
				equal(t, fmt.Sprint(size), got, want)
			}
			r.stop()
		})
	}
}

// An oversized line whose request cannot be told is dropped; the next ones pass.
func TestOversizedStranger(t *testing.T) {
	h := newHouse(t)
	cfg := self(t, "sizes", "nowhere")
	cfg.Limit = 1000
	r := h.start(t, cfg)
	r.send(`{"params":{"size":200000}}`)
	if got := r.hear(); !strings.HasPrefix(got, `junk: {"jsonrpc":"2.0","result":"xxx`) {
		t.Errorf("heard %.100s", got)
	}
	r.send(`{"params":{"size":100}}`)
	equal(t, "the next", len(r.hear()), 100)
	r.stop()
	if want := `[broker] StdioUpstream \"s\": a message is larger than 1000 bytes (maxMessageBytes); it is left out`; !strings.Contains(h.log.String(), want) {
		t.Errorf("log: %s", h.log)
	}
}

// Spec 07 row 29: a command that ends at once says so at once, with its exit code
// and what it wrote.
func TestEarlyEnd(t *testing.T) {
	for _, test := range []struct {
		cfg  Config
		err  string
		tail []string
		log  string
	}{
		{
			self(t, "exit", "1", "one\ntwo\n\x1b[31mthree\x1b[0m\nfour"),
			"it exited with code 1; its stderr ends with: two | three | four", []string{"one", "two", "three", "four"},
			`[broker] StdioUpstream "s": process exited with code 1`,
		},
		{self(t, "exit", "0", ""), "it exited with code 0", nil, `[broker] StdioUpstream "s": process exited with code 0`},
		{self(t, "usage"), `it exited with code 2; its standard output is not JSON-RPC: "usage: server [flags]"`, []string{"stdout: usage: server [flags]"}, `[broker] StdioUpstream "s": process exited with code 2`},
		{self(t, "killed", "9"), "it was killed by SIGKILL", nil, `[broker] StdioUpstream "s": process was killed by SIGKILL`},
		{self(t, "killed", "15"), "it was killed by SIGTERM", nil, `[broker] StdioUpstream "s": process was killed by SIGTERM`},
	} {
		t.Run(test.err, func(t *testing.T) {
			h := newHouse(t)
			end := h.start(t, test.cfg).end()
			equal(t, "error", fmt.Sprint(end.Err), test.err)
			equal(t, "tail", end.Tail, test.tail)
			if want := strconv.Quote(test.log); !strings.Contains(h.log.String(), "level=ERROR msg="+want) {
				t.Errorf("log %s\nwithout %s", h.log, want)
			}
		})
	}
}

// Spec 07 row 14: the same end is logged once, however often it comes.
func TestEqualEndsAreLoggedOnce(t *testing.T) {
	h := newHouse(t)
	for _, code := range []string{"1", "1", "2", "2", "1"} {
		h.start(t, self(t, "exit", code, "")).end()
	}
	equal(t, "lines", strings.Count(h.log.String(), "process exited"), 3)
}

// Spec 07 rows 26, 89: a start that fails is told, and names what was looked for
// and where.
func TestFailedStarts(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := dir + "/" + name
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain := write("plain", "x", 0o644)
	noInterpreter := write("nointerpreter", "#!/does/not/exist\n", 0o755)
	noHead := write("nohead", "echo\n", 0o755)
	path := []string{"PATH=" + dir + ":/does/not/exist"}
	for _, test := range []struct{ cfg, want any }{
		{Config{Command: "npx", Env: path}, `command "npx" was not found in PATH (` + dir + ":/does/not/exist)"},
		{Config{Command: "npx"}, `command "npx" was not found: the PATH of its environment is empty`},
		{Config{Command: "plain", Env: path}, `command "plain" was not found in PATH (` + dir + `:/does/not/exist); it cannot be ` + plain + ": the file is not marked executable"},
		{Config{Command: "sh -c true", Env: []string{"PATH=/bin"}}, `command "sh -c true" was not found in PATH (/bin); "sh" was: put what follows it into args`},
		{Config{Command: "/does/not/exist"}, `command "/does/not/exist" does not exist`},
		{Config{Command: plain}, `command "` + plain + `" cannot be run: the file is not marked executable`},
		{Config{Command: dir}, `command "` + dir + `" cannot be run: is a directory`},
		{Config{Command: noInterpreter}, `command "` + noInterpreter + `" could not be started: no such file or directory (the interpreter its first line names does not exist)`},
		{Config{Command: noHead}, `command "` + noHead + `" could not be started: exec format error (a script has to begin with #!)`},
		{Config{Command: "/bin/sh", Dir: dir + "/nowhere"}, `its directory "` + dir + `/nowhere" cannot be used: no such file or directory`},
		{Config{Command: "/bin/sh", Dir: plain}, `its directory "` + plain + `" is not a directory`},
		{Config{}, "its command is empty"},
	} {
		h := newHouse(t)
		cfg := test.cfg.(Config)
		cfg.Name = "s"
		owner := make(inbox, room)
		h.Start(cfg, owner, 3)
		end, ok := await(t, owner, "end").(*msg.UpstreamEnded)
		if !ok {
			t.Fatalf("%v: opened", cfg)
		}
		equal(t, "error", fmt.Sprint(end.Err), test.want)
		if want := strconv.Quote(`[broker] StdioUpstream "s": process error, ` + fmt.Sprint(test.want)); !strings.Contains(h.log.String(), want) {
			t.Errorf("log %s\nwithout %s", h.log, want)
		}
	}
	equal(t, "EAGAIN", startError("x", os.NewSyscallError("fork", syscall.EAGAIN)).Error(),
		`command "x" could not be started: resource temporarily unavailable (the limit of processes is reached)`)
}

// A relative command is found from the working directory of the child, by path
// and by PATH.
func TestRelativeCommand(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(dir+"/bin", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/bin/server", []byte("#!/bin/sh\necho '{\"method\":\"up\"}'; read -r _\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	h := newHouse(t)
	for _, cfg := range []Config{
		{Command: "./bin/server", Dir: dir},
		{Command: "server", Dir: dir, Env: []string{"PATH=:/does/not/exist:bin"}},
	} {
		cfg.Grace = patience
		r := h.start(t, cfg)
		equal(t, "frame", r.hear(), `{"method":"up"}`)
		r.stop()
	}
}

// Spec 07 row 26: without handles a start fails, and only it.
func TestNoHandles(t *testing.T) {
	h := newHouse(t)
	r := h.start(t, self(t, "echo"))
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	none := before
	none.Cur = 3
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	owner := make(inbox, room)
	h.Start(Config{Command: "/bin/sh"}, owner, 3)
	end := await(t, owner, "end")
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	equal(t, "error", fmt.Sprint(end.(*msg.UpstreamEnded).Err), `command "/bin/sh" could not be started: too many open files`)
	r.send(`{"id":1}`)
	equal(t, "answer", r.hear(), `{"jsonrpc":"2.0","id":1,"result":{"id":1}}`)
	r.stop()
}

// A child that does not read its stdin is ended: when too much waits for it, or
// one write makes no headway.
func TestDeafChild(t *testing.T) {
	for _, test := range []struct {
		name   string
		bounds bounds
		want   string
	}{
		{"overrun", bounds{outbox: 1 << 20, stalled: time.Hour, killed: patience, drain: patience}, "it was ended because it does not read its stdin: 1048576 bytes wait for it"},
		{"stalled", bounds{outbox: 1 << 30, stalled: 50 * time.Millisecond, killed: patience, drain: patience}, "it was ended because it has not read its stdin for 50ms"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			h.bounds = test.bounds
			r := h.start(t, self(t, "deaf"))
			r.hear()
			frame := []byte(`"` + strings.Repeat("x", 100<<10) + `"`)
			for range 30 { // up to ten of them may be under way already
				if !r.driver.Send(frame, mcp.Required) {
					break
				}
			}
			equal(t, "error", fmt.Sprint(r.end().Err), test.want)
		})
	}
}

// Spec 06: the end of stdout is the end.
func TestClosedStdout(t *testing.T) {
	h := newHouse(t)
	h.bounds.exit = 10 * time.Millisecond
	equal(t, "error", fmt.Sprint(h.start(t, self(t, "mute")).end().Err), "it closed its stdout")
}

// Frames wait in the child until the slot is known, and no more of them are read
// than have credit; a slot that handles none makes the child wait, not the broker
// collect.
func TestBackPressure(t *testing.T) {
	h := newHouse(t)
	owner, slot := make(inbox, room), make(inbox, room)
	lines := strings.Repeat("{\"method\":\"n\"}\n", 3*framesInFlight)
	h.Start(self(t, "print", strconv.Quote(lines)), owner, 3)
	driver := await(t, owner, "start").(*msg.UpstreamOpened).Driver
	driver.Attach(slot, slotGen)
	driver.Attach(nil, 0) // the first counts
	var first []*msg.ProviderFrame
	for range framesInFlight {
		first = append(first, await(t, slot, "frame").(*msg.ProviderFrame))
	}
	select {
	case m := <-slot:
		t.Errorf("%+v came without credit", m)
	case <-time.After(50 * time.Millisecond): // time to post more than was allowed
	}
	for _, m := range first {
		m.Credit.Give()
	}
	for range 2 * framesInFlight {
		await(t, slot, "frame").(*msg.ProviderFrame).Credit.Give()
	}
	driver.Stop(patience)
	await(t, owner, "end")
}

// What a child says just before it exits still arrives, before the end is told.
func TestLastWordsArrive(t *testing.T) {
	r := newHouse(t).start(t, Config{
		Name: "s", Command: "/bin/sh", Args: []string{"-c", `i=0; while [ $i -lt 300 ]; do echo "{\"method\":\"n$i\"}"; i=$((i+1)); done; exit 5`},
	})
	for n := range 300 {
		equal(t, "frame", r.hear(), fmt.Sprintf(`{"method":"n%d"}`, n))
	}
	equal(t, "error", fmt.Sprint(r.end().Err), "it exited with code 5")
}

// cancel gives a start up; the end is told all the same, once. A broker that stops
// starts nothing.
func TestCancel(t *testing.T) {
	h := newHouse(t)
	for range 20 {
		owner := make(inbox, room)
		cancel := h.Start(self(t, "echo"), owner, 3)
		cancel()
		cancel()
		m := await(t, owner, "end")
		if _, opened := m.(*msg.UpstreamOpened); opened {
			m = await(t, owner, "end")
		}
		if end, ok := m.(*msg.UpstreamEnded); !ok || end.Err != nil {
			t.Errorf("ended with %+v", m)
		}
	}
	if err := h.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	owner := make(inbox, room)
	h.Start(self(t, "echo"), owner, 4)()
	if end, ok := (<-owner).(*msg.UpstreamEnded); !ok || end.Gen != 4 || !errors.Is(end.Err, rt.ErrStopped) {
		t.Errorf("after Stop: %+v", end)
	}
}

// The child has a session of its own, so that it has no terminal: the keys of the
// broker's do not reach it, and touching it stops nobody. The guard has another one.
func TestSession(t *testing.T) {
	r := newHouse(t).start(t, self(t, "echo"))
	id, err := syscall.Getpgid(r.pid)
	if err != nil || id != r.pid {
		t.Errorf("group %d, child %d (%v)", id, r.pid, err)
	}
	for _, child := range childrenOf(t, os.Getpid()) {
		var pid, parent, group, session, terminal int
		var state string
		name, rest, _ := strings.Cut(child, ") ")
		if _, err := fmt.Sscan(name, &pid); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscan(rest, &state, &parent, &group, &session, &terminal); err != nil {
			t.Fatal(err)
		}
		equal(t, child, []int{group, session, terminal}, []int{pid, pid, 0})
	}
	r.stop()
}
