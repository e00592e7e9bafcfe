package scenarios

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// program is a process beside the broker, a device for instance. It never
// outlives the script.
type program struct {
	child *child
	lines feed[string]
}

// startProgram runs a command in a folder; unexpected is called if it ends by
// itself.
func startProgram(id, dir, path string, args []string, show func(string), unexpected func(error)) (*program, error) {
	p := &program{}
	out := &lineWriter{line: func(s string) { p.lines.add(s); show(id + ": " + s) }}
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, cleanEnviron(), out, out
	c, err := launch(cmd, false, out.flush, func(error) {
		unexpected(fmt.Errorf("program %s ended by itself: %s", id, cmd.ProcessState))
	})
	if err != nil {
		return nil, fmt.Errorf("start program %s: %w", id, err)
	}
	p.child = c
	return p, nil
}

// expect takes lines up to one that contains every one of parts.
func (p *program) expect(ctx context.Context, parts []string) error {
	for {
		line, err := p.lines.take(ctx)
		if err != nil || containsAll(line, parts) {
			return err
		}
	}
}

// upwards finds a path that does not begin at the root in the working folder or,
// failing that, in the nearest folder above it: anywhere in a checkout its paths
// are the same.
func upwards(path string) (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find %s: %w", path, err)
	}
	if filepath.IsAbs(path) {
		_, err := os.Stat(path)
		return path, err
	}
	for dir := here; ; dir = filepath.Dir(dir) {
		full := filepath.Join(dir, path)
		if _, err := os.Stat(full); err == nil {
			return full, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is neither in %s nor in a folder above it", path, here)
		}
	}
}

// lookUp finds a program: by its path from a folder, or by its name in PATH.
func lookUp(dir, name string) (string, error) {
	if strings.ContainsRune(name, '/') && !filepath.IsAbs(name) {
		name = filepath.Join(dir, filepath.FromSlash(name))
	}
	return exec.LookPath(name)
}
