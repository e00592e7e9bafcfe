package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbroker"
	"mcpbroker/config"
)

// reloadBench watches a file in a bubble of synctest: looks come with its clock.
type reloadBench struct {
	t       *testing.T
	file    string
	server  *fakeServer
	hangups chan os.Signal

	mu      sync.Mutex
	reload  func(context.Context, *config.Config) (mcpbroker.Reloaded, error)
	log     bytes.Buffer
	applied []string // slots of the configurations that were applied
}

// Write implements io.Writer for the log.
func (b *reloadBench) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.Write(line)
}

func (b *reloadBench) apply(cfg *config.Config) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.applied = append(b.applied, fmt.Sprintf("%q", cfg.Upstreams()))
}

// answer makes the broker answer reloads from now on.
func (b *reloadBench) answer(reload func(ctx context.Context, cfg *config.Config) (mcpbroker.Reloaded, error)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reload = reload
}

// inReloadBench runs a test beside a broker that was started with the text of a file.
// meanwhile happens before the file is watched.
func inReloadBench(t *testing.T, text string, meanwhile func(b *reloadBench), test func(b *reloadBench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &reloadBench{t: t, file: filepath.Join(t.TempDir(), "broker.toml"), server: newFakeServer(), hangups: make(chan os.Signal, 1)}
		b.server.reload = func(ctx context.Context, cfg *config.Config) (mcpbroker.Reloaded, error) {
			b.mu.Lock()
			reload := b.reload
			b.mu.Unlock()
			return reload(ctx, cfg)
		}
		b.accept()
		b.write(text)
		source := config.Source{Path: b.file}
		cfg, err := config.Load(source)
		if err != nil {
			t.Fatal(err)
		}
		meanwhile(b)
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan struct{})
		log := slog.New(&lineHandler{w: b})
		go func() {
			defer close(ended)
			new(program).reloads(ctx, log, b.server, source, cfg, b.hangups)
		}()
		synctest.Wait()
		time.Sleep(reloadPoll / 2) // between two looks
		test(b)
		end()
		<-ended
	})
}

func nothing(*reloadBench) {}

func (b *reloadBench) accept() {
	b.answer(func(_ context.Context, cfg *config.Config) (mcpbroker.Reloaded, error) {
		b.apply(cfg)
		return mcpbroker.Reloaded{}, nil
	})
}

func (b *reloadBench) refuse() {
	b.answer(func(context.Context, *config.Config) (mcpbroker.Reloaded, error) {
		return mcpbroker.Reloaded{}, errors.New("no")
	})
}

func (b *reloadBench) write(text string) {
	b.t.Helper()
	if err := os.WriteFile(b.file, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// looks lets the file be looked at n times.
func (b *reloadBench) looks(n int) {
	time.Sleep(time.Duration(n) * reloadPoll)
	synctest.Wait()
}

func (b *reloadBench) hangup() {
	b.hangups <- sigterm // any will do: the channel is the signal
	synctest.Wait()
}

// expect compares what was applied and logged since the last time.
func (b *reloadBench) expect(what string, applied []string, lines ...string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if diff := cmp.Diff(applied, b.applied); diff != "" {
		b.t.Errorf("%s: applied (-want +got):\n%s", what, diff)
	}
	want := ""
	for _, line := range lines {
		want += line + "\n"
	}
	if diff := cmp.Diff(want, strings.ReplaceAll(b.log.String(), b.file, "FILE")); diff != "" {
		b.t.Errorf("%s: log (-want +got):\n%s", what, diff)
	}
	var refused []string
	for line := range strings.Lines(b.log.String()) {
		if why, found := strings.CutPrefix(line, notReloadedLine); found {
			refused = append(refused, strings.TrimSuffix(why, "\n"))
		}
	}
	if diff := cmp.Diff(refused, b.server.refusals()); diff != "" {
		b.t.Errorf("%s: the broker was told (-logged +told):\n%s", what, diff)
	}
	b.applied = nil
	b.log.Reset()
}

func upstreamEntries(names ...string) string {
	var text strings.Builder
	for _, name := range names {
		fmt.Fprintf(&text, "[[stdioUpstreams]]\nname = %q\ncommand = \"c\"\n", name)
	}
	return text.String()
}

const (
	reloadedLine    = "[mcp-broker] Configuration reloaded: nothing has changed"
	notReloadedLine = "[mcp-broker] The configuration was not reloaded, the running one stays: "
	hangupLine      = "[mcp-broker] SIGHUP received, reading the configuration again"
)

// A file is applied once two looks have found the same: not while it is being written,
// not even with the size and the time it had, and only once.
func TestReloadWaitsForTheWholeFile(t *testing.T) {
	inReloadBench(t, upstreamEntries("a"), nothing, func(b *reloadBench) {
		b.looks(3)
		b.expect("unchanged", nil)
		for _, written := range []string{"[[stdio", upstreamEntries("a"), upstreamEntries("a", "b")} {
			b.write(written)
			b.looks(1)
		}
		b.expect("being written", nil)
		b.looks(3)
		b.expect("written", []string{`["a" "b"]`}, reloadedLine)

		at := time.Unix(1e9, 0)
		for _, written := range []string{upstreamEntries("a", "x"), upstreamEntries("a", "y")} {
			b.write(written)
			if err := os.Chtimes(b.file, at, at); err != nil {
				t.Fatal(err)
			}
			b.looks(1)
		}
		b.expect("of one size and time", nil)
		b.looks(1)
		b.expect("settled", []string{`["a" "y"]`}, reloadedLine)

		if err := os.Chtimes(b.file, at.Add(time.Hour), at.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		b.looks(3)
		b.expect("touched", nil)
	})
}

// What changes between the start and the first look is not missed.
func TestReloadOfAChangeDuringTheStart(t *testing.T) {
	change := func(b *reloadBench) { b.write(upstreamEntries("b")) }
	inReloadBench(t, upstreamEntries("a"), change, func(b *reloadBench) {
		b.looks(2)
		b.expect("changed", []string{`["b"]`}, reloadedLine)
	})
}

// A file that is wrong, or not there, is refused once, until it changes.
func TestReloadRefusesOnce(t *testing.T) {
	inReloadBench(t, upstreamEntries("a"), nothing, func(b *reloadBench) {
		b.write("port = 1\nhots = 2\n")
		b.looks(4)
		const typo = notReloadedLine + `FILE:2:1: unknown key "hots" (did you mean "host"?)`
		b.expect("wrong", nil, typo)
		b.hangup()
		b.expect("on SIGHUP", nil, hangupLine, typo)
		b.looks(3)
		b.expect("still wrong", nil)
		b.write("hots = 2\nprot = 3\n")
		b.hangup()
		b.expect("two problems", nil, hangupLine,
			notReloadedLine+`FILE:1:1: unknown key "hots" (did you mean "host"?); FILE:2:1: unknown key "prot" (did you mean "port"?)`)
		if err := os.Remove(b.file); err != nil {
			t.Fatal(err)
		}
		b.looks(3)
		b.expect("gone", nil, notReloadedLine+"Cannot use the config file at FILE: the file does not exist. Fix the file.")
		b.write(upstreamEntries("a"))
		b.looks(3)
		b.expect("as before", []string{`["a"]`}, reloadedLine)
		b.refuse()
		b.write(upstreamEntries("c"))
		b.looks(4)
		b.expect("refused by the broker", nil, notReloadedLine+"no")
	})
}

// A file that has lost its content does not end every upstream by itself.
func TestReloadOfAnEmptyFile(t *testing.T) {
	for _, empty := range []string{"", "# nothing\n\n"} {
		inReloadBench(t, upstreamEntries("a", "b"), nothing, func(b *reloadBench) {
			b.write(empty)
			b.looks(4)
			b.expect("by itself", nil, notReloadedLine+"FILE is empty, which would remove every upstream (a, b); SIGHUP applies it")
			b.hangup()
			b.expect("on SIGHUP", []string{"[]"}, hangupLine, reloadedLine)
			b.write(upstreamEntries("a"))
			b.looks(3)
			b.expect("filled", []string{`["a"]`}, reloadedLine)
			b.write("port = 3000\n")
			b.looks(3)
			b.expect("without upstreams, but not empty", []string{"[]"}, reloadedLine)
			b.write(empty + "#\n")
			b.looks(3)
			b.expect("nothing to lose", []string{"[]"}, reloadedLine)
		})
	}
}

// Warnings that the running configuration has given are not repeated; those of one that
// was refused do not count as given.
func TestReloadWarns(t *testing.T) {
	isolated := func(name string) string {
		return upstreamEntries(name) + "isolation = \"session\"\naggregate = true\n"
	}
	warning := func(name string) string {
		return `[mcp-broker] stdioUpstreams entry "` + name + `": isolation = "session" does not reach through _all, whose clients share one process of it; leave aggregate out to keep them apart`
	}
	inReloadBench(t, isolated("a"), nothing, func(b *reloadBench) {
		b.refuse()
		b.write(isolated("a") + isolated("b"))
		b.looks(2)
		b.expect("refused", nil, notReloadedLine+"no")
		b.accept()
		b.hangup()
		b.expect("with one more", []string{`["a" "b"]`}, hangupLine, warning("b"), reloadedLine)
		b.hangup()
		b.expect("again", []string{`["a" "b"]`}, hangupLine, reloadedLine)
		b.write(isolated("b"))
		b.looks(2)
		b.expect("with one less", []string{`["b"]`}, reloadedLine)
		b.write(isolated("b") + isolated("a"))
		b.looks(2)
		b.expect("with the first again", []string{`["b" "a"]`}, warning("a"), reloadedLine)
	})
}

// One upstream that does not end holds a reload up for a while only: the line tells what
// was applied and what is left, and a SIGHUP that came meanwhile is heard.
func TestReloadHasADeadline(t *testing.T) {
	inReloadBench(t, upstreamEntries("a", "b"), nothing, func(b *reloadBench) {
		b.answer(func(ctx context.Context, cfg *config.Config) (mcpbroker.Reloaded, error) {
			b.apply(cfg)
			done := mcpbroker.Reloaded{Stopping: []string{"b"}}
			if !slices.Contains(cfg.Upstreams(), "c") {
				done.Removed, done.Restart = []string{"b"}, []string{"port"}
			}
			<-ctx.Done()
			return done, nil
		})
		b.write(upstreamEntries("a"))
		b.looks(2)
		b.expect("under way", []string{`["a"]`})
		b.write(upstreamEntries("a", "c"))
		b.hangups <- sigterm
		time.Sleep(reloadTimeout)
		synctest.Wait()
		b.expect("given up", []string{`["a" "c"]`},
			"[mcp-broker] Configuration reloaded: removed b; restart the broker to apply port; applied, but these have not stopped yet: b", hangupLine)
		time.Sleep(reloadTimeout)
		synctest.Wait()
		b.expect("given up again", nil, "[mcp-broker] Configuration reloaded: applied, but these have not stopped yet: b")
	})
}
