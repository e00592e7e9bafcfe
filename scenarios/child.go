package scenarios

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/BurntSushi/toml"
)

// instance is a running broker.
type instance interface {
	// stop ends it in order.
	stop(ctx context.Context) error
	// kill ends it without a word.
	kill()
	// exited is closed once it has ended.
	exited() <-chan struct{}
}

// child is a process of its own: a broker, or a bridge to one.
type child struct {
	cmd      *exec.Cmd
	pipes    *pipes // nil unless a host talks to it
	done     chan struct{}
	err      error // of Wait; valid once done is closed
	expected atomic.Bool
}

// pipes are the far ends of a process's standard input and output. Output can be
// read to its end after the process has ended.
type pipes struct {
	in, out *os.File
	taken   atomic.Bool // by a session, which closes out
}

// errEnded is a broker that ended without having been told to.
var errEnded = errors.New("the broker ended by itself")

// outputDelay bounds the wait for the rest of a process's output.
const outputDelay = 2 * time.Second

// startChild runs the binary and returns once the broker accepts connections. Its
// log goes to log line by line; unexpected is called if it ends by itself. With
// host its standard input and output are left to a session.
func startChild(ctx context.Context, binary, file string, host bool, log *feed[string], show func(string), unexpected func(error)) (*child, error) {
	out := &lineWriter{line: func(s string) { log.add(s); show(s) }}
	cmd := exec.Command(binary, "run", file)
	cmd.Dir = filepath.Dir(file)
	cmd.Env = cleanEnviron()
	cmd.Stderr = out
	if !host {
		cmd.Stdout = out
	}
	from := log.len()
	c, err := launch(cmd, host, out.flush, unexpected)
	if err != nil {
		return nil, fmt.Errorf("start the broker %s: %w", binary, err)
	}
	_, err = log.find(ctx, from, func(line string) bool {
		return strings.HasPrefix(line, "[mcp-broker] ") && strings.Contains(line, " started on ")
	})
	if err != nil {
		c.kill()
		return nil, err
	}
	return c, nil
}

// launch starts a process; flush is called once it has ended and its output has
// been taken.
func launch(cmd *exec.Cmd, host bool, flush func(), unexpected func(error)) (*child, error) {
	c := &child{cmd: cmd, done: make(chan struct{})}
	cmd.WaitDelay = outputDelay
	ownGroup(cmd)
	if err := c.start(host); err != nil {
		return nil, err
	}
	go func() {
		c.err = cmd.Wait()
		flush()
		if c.pipes != nil {
			_ = c.pipes.in.Close()
			if c.pipes.taken.CompareAndSwap(false, true) {
				_ = c.pipes.out.Close()
			}
		}
		close(c.done)
		if !c.expected.Load() {
			unexpected(fmt.Errorf("%w: %s", errEnded, cmd.ProcessState))
		}
	}()
	return c, nil
}

func (c *child) start(host bool) error {
	if !host {
		return c.cmd.Start()
	}
	inside, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer inside.Close()
	out, outside, err := os.Pipe()
	if err != nil {
		_ = in.Close()
		return err
	}
	defer outside.Close()
	c.cmd.Stdin, c.cmd.Stdout = inside, outside
	if err := c.cmd.Start(); err != nil {
		_, _ = in.Close(), out.Close()
		return err
	}
	c.pipes = &pipes{in: in, out: out}
	return nil
}

// endInput closes the standard input and waits for the process, which has to end
// with it, in order.
func (c *child) endInput(ctx context.Context) error {
	c.expected.Store(true)
	_ = c.pipes.in.Close()
	select {
	case <-c.done:
	case <-ctx.Done():
		c.kill()
		return fmt.Errorf("expected the process to end with its standard input, got %w", context.Cause(ctx))
	}
	if c.err != nil {
		return fmt.Errorf("expected the process to end in order, got %w", c.err)
	}
	return nil
}

func (c *child) exited() <-chan struct{} { return c.done }

// kill ends the process at once (SIGKILL) and waits for it.
func (c *child) kill() {
	c.expected.Store(true)
	_ = c.cmd.Process.Kill()
	<-c.done
}

// stop asks the process to stop and waits; a process that does not is killed.
func (c *child) stop(ctx context.Context) error {
	c.expected.Store(true)
	if err := interrupt(c.cmd.Process); err != nil && !errors.Is(err, os.ErrProcessDone) {
		c.kill()
		return fmt.Errorf("stop the broker: %w", err)
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		c.kill()
		return fmt.Errorf("stop the broker: %w", context.Cause(ctx))
	}
	if c.err != nil {
		return fmt.Errorf("stop the broker: %w", c.err)
	}
	return nil
}

// cleanEnviron is the environment without what would override a script's
// configuration.
func cleanEnviron() []string {
	var kept []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "MCP_BROKER_") {
			kept = append(kept, v)
		}
	}
	return kept
}

// ownKeys are set by the runner and not by scripts.
func ownKeys() []string { return []string{"port", "host", "logFormat"} }

// writeConfig writes the configuration file of a broker.
func writeConfig(file string, port int, beat time.Duration, table map[string]any) error {
	all := map[string]any{"providerHeartbeatIntervalMs": beat.Milliseconds()}
	for key, value := range table {
		all[key] = value
	}
	all["port"], all["host"], all["logFormat"] = int64(port), "127.0.0.1", "text"
	var text bytes.Buffer
	if err := toml.NewEncoder(&text).Encode(all); err != nil {
		return fmt.Errorf("write the broker's configuration: %w", err)
	}
	if err := replaceFile(file, text.Bytes()); err != nil {
		return fmt.Errorf("write the broker's configuration: %w", err)
	}
	return nil
}

// checkConfig lets the binary judge a configuration. The problems it finds come
// without its file name.
func checkConfig(ctx context.Context, binary, file string) ([]string, error) {
	cmd := exec.CommandContext(ctx, binary, "check", file)
	cmd.Dir, cmd.Env, cmd.WaitDelay = filepath.Dir(file), cleanEnviron(), outputDelay
	ownGroup(cmd)
	out, err := cmd.CombinedOutput()
	var refused *exec.ExitError
	switch {
	case err == nil:
		return nil, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case !errors.As(err, &refused):
		return nil, fmt.Errorf("run the broker %s: %w", binary, err)
	}
	place := regexp.MustCompile(`^` + regexp.QuoteMeta(file) + `:(\d+:\d+:)? *`)
	var problems []string
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); line != "" {
			problems = append(problems, place.ReplaceAllString(line, ""))
		}
	}
	if len(problems) == 0 {
		problems = []string{"the broker refuses it with exit code " + strconv.Itoa(refused.ExitCode())}
	}
	return problems, nil
}

// lineWriter splits what is written into lines.
type lineWriter struct {
	mu   sync.Mutex
	rest []byte
	line func(string)
}

// Write implements io.Writer.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest = append(w.rest, p...)
	for {
		i := bytes.IndexByte(w.rest, '\n')
		if i < 0 {
			return len(p), nil
		}
		w.line(string(bytes.TrimSuffix(w.rest[:i], []byte("\r"))))
		w.rest = w.rest[i+1:]
	}
}

// flush hands over an unfinished last line.
func (w *lineWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rest) > 0 {
		w.line(string(w.rest))
		w.rest = nil
	}
}
