package scenarios

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The actions below work in the scratch folder, where the broker's configuration
// is. It is removed at the end.

type fileAction struct {
	Name   string `step:"file,required"`
	Text   string `step:"text"`
	Base64 words  `step:"base64"`

	data []byte // set by check
}

func (a *fileAction) check(c *checker) {
	if !filepath.IsLocal(filepath.FromSlash(a.Name)) {
		c.fail("file", "%q is not the name of a file in the scratch folder", a.Name)
	}
	if (a.Text == "") == (a.Base64 == nil) {
		c.fail("file", `a file needs either "text" or "base64"`)
	}
	a.data = []byte(a.Text)
	if a.Base64 != nil {
		var err error
		if a.data, err = base64.StdEncoding.DecodeString(strings.Join(a.Base64, "")); err != nil {
			c.fail("base64", `"base64" is not base64: %v`, err)
		}
	}
}

func (a *fileAction) run(r *runner) error {
	path := filepath.Join(r.dir, filepath.FromSlash(a.Name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write a file of the script: %w", err)
	}
	if err := replaceFile(path, a.data); err != nil {
		return fmt.Errorf("write a file of the script: %w", err)
	}
	return nil
}

// replaceFile writes a file that somebody may be reading: they find the old text or the
// new one, whole.
func replaceFile(path string, data []byte) error {
	const suffix = ".new"
	if err := os.WriteFile(path+suffix, data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+suffix, path)
}

type runAction struct {
	Command  words `step:"run,required"`
	Code     int   `step:"code"`
	Contains words `step:"contains"`
	Within   span  `step:"within"`
}

func (a *runAction) check(*checker) {}

func (a *runAction) run(r *runner) error {
	ctx, cancel := r.within(a.Within)
	defer cancel()
	path, err := exec.LookPath(a.Command[0])
	if err != nil {
		return fmt.Errorf("run %s: %w", a.Command[0], err)
	}
	out, err := runIn(ctx, r.dir, path, a.Command[1:])
	for line := range strings.Lines(out) {
		r.out.event(strings.TrimRight(line, "\r\n"))
	}
	name := filepath.Base(a.Command[0])
	var exit *exec.ExitError
	code := 0
	switch {
	case errors.As(err, &exit) && ctx.Err() == nil:
		code = exit.ExitCode()
	case ctx.Err() != nil:
		return missed(ctx, "the end of "+name)
	case err != nil:
		return fmt.Errorf("run %s: %w", name, err)
	}
	if code != a.Code {
		return unmet(fmt.Sprintf("exit code %d of %s", a.Code, name), fmt.Sprint(code))
	}
	if !containsAll(out, a.Contains) {
		return unmet(fmt.Sprintf("output of %s with %q", name, a.Contains), strings.TrimSpace(out))
	}
	return nil
}

// runIn runs a command to its end and returns what it wrote.
func runIn(ctx context.Context, dir, path string, args []string) (string, error) {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, cleanEnviron(), outputDelay
	ownGroup(cmd)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
