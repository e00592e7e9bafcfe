package scenarios

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os/exec"
	"time"
)

// stdioLink is a host: it talks to a process it has started, newline-delimited
// JSON-RPC on standard input and output.
type stdioLink struct {
	process *child
	own     bool // the process is a bridge of this session; else it is the broker
	done    chan struct{}
}

// startBridge runs the binary as a bridge from standard input and output to the
// broker at url. What it has to say besides is shown.
func startBridge(binary, slot, url string, show func(string)) (*stdioLink, error) {
	cmd := exec.Command(binary, "bridge", "--url", url, "--wait", "0s", "--", slot)
	cmd.Env = cleanEnviron()
	stderr := &lineWriter{line: show}
	cmd.Stderr = stderr
	process, err := launch(cmd, true, stderr.flush, func(error) {})
	if err != nil {
		return nil, err
	}
	return &stdioLink{process: process, own: true}, nil
}

func (l *stdioLink) open(_, _ context.Context, c *client) error {
	if !l.process.pipes.taken.CompareAndSwap(false, true) {
		return errors.New("another session has the process's standard input and output")
	}
	l.done = make(chan struct{})
	go func() {
		defer close(l.done)
		defer c.ended()
		defer l.process.pipes.out.Close()
		for lines := bufio.NewReader(l.process.pipes.out); ; {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			c.take(bytes.TrimSpace(line))
		}
	}()
	return nil
}

// send may block for good if the process does not read: the pipe ends with it.
func (l *stdioLink) send(_ context.Context, _ *client, _ string, message []byte) error {
	_, err := l.process.pipes.in.Write(append(message, '\n'))
	return err
}

func (l *stdioLink) listen(context.Context, context.Context, *client) error { return nil }

// close ends the standard input, with which the process has to end.
func (l *stdioLink) close(ctx context.Context) error {
	err := l.process.endInput(ctx)
	<-l.done
	return err
}

func (l *stdioLink) cut() {
	if l.own {
		l.process.kill()
	} else {
		_ = l.process.pipes.out.SetReadDeadline(time.Now()) // the broker lives on
	}
	if l.done != nil {
		<-l.done
	}
}
