package stdio

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// process is a command that runs, and our ends of its pipes.
type process struct {
	cmd                   *exec.Cmd
	stdin, stdout, stderr *os.File
	exited                chan struct{} // closed once cmd.ProcessState is set
}

// start starts the command in a group of its own.
func (c *child) start() (*process, error) {
	path, err := c.resolve()
	if err != nil {
		return nil, err
	}
	var ends pipes
	p := &process{exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The process is bound to the thread that starts it. Waiting takes one anyhow.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.spawn(path, &ends, p)
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // its state tells
			close(p.exited)
		}
	}()
	err = <-started
	ends.closeTheirs()
	if err != nil {
		ends.closeOurs()
		c.group.kill()
		c.group.release()
		return nil, err
	}
	return p, nil
}

// resolve finds the file to run.
func (c *child) resolve() (string, error) {
	if dir := c.cfg.Dir; dir != "" {
		info, err := os.Stat(dir)
		if err != nil {
			return "", fmt.Errorf("its directory %q cannot be used: %w", dir, cause(err))
		}
		if !info.IsDir() {
			return "", fmt.Errorf("its directory %q is not a directory", dir)
		}
	}
	path, err := lookup(c.cfg.Command, c.cfg.Dir, c.cfg.Env)
	if err != nil {
		return "", err
	}
	if err := checkArgs(path, c.cfg.Args); err != nil {
		return "", fmt.Errorf("command %q: %w", c.cfg.Command, err)
	}
	return filepath.Abs(path) // a relative one would be relative to Dir
}

func (c *child) spawn(path string, ends *pipes, p *process) error {
	if err := ends.open(); err != nil {
		return startError(c.cfg.Command, err)
	}
	if err := c.group.open(c.all.warnUnguarded); err != nil {
		return startError(c.cfg.Command, err)
	}
	p.cmd = &exec.Cmd{
		Path: path, Args: append([]string{c.cfg.Command}, c.cfg.Args...), Dir: c.cfg.Dir,
		Env:   append([]string{}, c.cfg.Env...), // nil would be the broker's own
		Stdin: ends.theirs[0], Stdout: ends.theirs[1], Stderr: ends.theirs[2],
	}
	c.group.enter(p.cmd)
	if err := p.cmd.Start(); err != nil {
		return startError(c.cfg.Command, err)
	}
	c.group.entered(p.cmd, p.exited)
	p.stdin, p.stdout, p.stderr = ends.ours[0], ends.ours[1], ends.ours[2]
	c.in = p.stdin
	return nil
}

func (p *process) close() {
	_ = p.stdin.Close()
	_ = p.stdout.Close()
	_ = p.stderr.Close()
}

// pipes are stdin, stdout and stderr of a child.
type pipes struct{ ours, theirs [3]*os.File }

func (p *pipes) open() error {
	for i := range p.ours {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		p.ours[i], p.theirs[i] = r, w
	}
	p.ours[0], p.theirs[0] = p.theirs[0], p.ours[0]
	return nil
}

func (p *pipes) closeTheirs() { closeAll(p.theirs) }
func (p *pipes) closeOurs()   { closeAll(p.ours) }

func closeAll(files [3]*os.File) {
	for _, f := range files {
		_ = f.Close() // of nil too
	}
}
