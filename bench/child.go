package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Bounds of a child's start and of its orderly end; after the latter it is killed.
const (
	startTimeout = time.Minute
	stopTimeout  = 30 * time.Second
)

// announce tells the parent, in the form of the broker's own log, that a role
// can be reached.
func announce(stderr io.Writer, url string) {
	_ = json.NewEncoder(stderr).Encode(map[string]string{"url": url})
}

// child is a running process that announced its URL.
type child struct {
	name   string
	url    string
	cmd    *exec.Cmd
	log    *childLog
	cancel context.CancelFunc
	exited chan struct{}
}

// startChild runs a command until stop, and returns once it announced its URL.
func startChild(ctx context.Context, name, dir string, argv []string) (*child, error) {
	ctx, cancel := context.WithCancel(ctx)
	c := &child{name: name, cancel: cancel, exited: make(chan struct{}), log: &childLog{url: make(chan string, 1)}}
	c.cmd = command(ctx, argv)
	c.cmd.Dir, c.cmd.Stderr = dir, c.log
	if err := c.cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		defer close(c.exited)
		_ = c.cmd.Wait()
	}()
	select {
	case c.url = <-c.log.url:
		return c, nil
	case <-c.exited:
		return nil, errors.Join(fmt.Errorf("start %s: it ended", name), c.stop())
	case <-time.After(startTimeout):
		return nil, errors.Join(fmt.Errorf("start %s: not ready within %s", name, startTimeout), c.stop())
	}
}

// command is a process that ends with SIGTERM when ctx does, and with this
// process in any case.
func command(ctx context.Context, argv []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopTimeout
	cmd.Env = environment()
	endWithParent(cmd)
	return cmd
}

// environment is that of this process without what configures a broker.
func environment() []string {
	var kept []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "MCP_BROKER_") && !strings.HasPrefix(variable, "OTEL_") {
			kept = append(kept, variable)
		}
	}
	return kept
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// stop ends the process and reports one that did not end in order.
func (c *child) stop() error {
	c.cancel()
	<-c.exited
	if c.cmd.ProcessState.Success() {
		return nil
	}
	return fmt.Errorf("%s ended with %s; its last words:\n%s", c.name, c.cmd.ProcessState, c.log.last())
}

// childLog reads the standard error of a child: the first JSON line with a
// member "url" is its announcement, the last lines are kept for error messages.
type childLog struct {
	url chan string // capacity 1

	mu    sync.Mutex
	found bool
	text  []byte
}

const keptLog = 4 << 10

func (l *childLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := bytes.LastIndexByte(l.text, '\n') + 1
	l.text = append(l.text, p...)
	if !l.found {
		l.find(l.text[seen:])
	}
	if excess := len(l.text) - keptLog; excess > 0 {
		l.text = append(l.text[:0], l.text[excess:]...)
	}
	return len(p), nil
}

func (l *childLog) find(text []byte) {
	for line := range bytes.Lines(text) {
		var announcement struct{ URL string }
		complete := bytes.HasSuffix(line, []byte("\n"))
		if complete && json.Unmarshal(line, &announcement) == nil && announcement.URL != "" {
			l.found = true
			l.url <- announcement.URL
			return
		}
	}
}

func (l *childLog) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

// fleet is the children of one row.
type fleet []*child

// stop ends them, last started first.
func (f fleet) stop() error {
	var errs []error
	for i := len(f) - 1; i >= 0; i-- {
		errs = append(errs, f[i].stop())
	}
	return errors.Join(errs...)
}
