//go:build !unix

package stdio

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const pathSeparators = `/\:`

func sameVariable(a, b string) bool { return strings.EqualFold(a, b) }

// group is the child alone: there are no process groups here. A child learns of
// the broker's death from the end of its stdin.
type group struct{ child *os.Process }

func (g *group) open(func(error)) error { return nil }

func (g *group) enter(*exec.Cmd) {}

func (g *group) entered(cmd *exec.Cmd, _ <-chan struct{}) { g.child = cmd.Process }

// terminate leaves it at the end of stdin.
func (g *group) terminate() {}

func (g *group) kill() {
	if g.child != nil {
		_ = g.child.Kill()
	}
}

// left: nothing is known but the child.
func (g *group) left() bool { return false }

func (g *group) release() { *g = group{} }

// executable returns path, with the extension that makes it a program if it has
// none.
func executable(path string) (string, error) {
	candidates := []string{path}
	if filepath.Ext(path) == "" {
		candidates = []string{path + ".exe", path + ".com", path + ".cmd", path + ".bat"}
	}
	for _, candidate := range candidates {
		if info, err := os.Stat(candidate); err == nil && !info.IsDir() {
			return candidate, nil
		}
	}
	return "", fs.ErrNotExist
}

// checkArgs refuses what the interpreter of batch files would not take as text.
func checkArgs(path string, args []string) error {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".cmd", ".bat":
	default:
		return nil
	}
	for _, arg := range args {
		if strings.ContainsAny(arg, "\"&|<>^%!()\r\n") {
			return fmt.Errorf("it is a batch file, and the argument %q cannot be passed to one safely; name the program behind it instead", arg)
		}
	}
	return nil
}

func startHint(error) string { return "" }

func exitWords(state *os.ProcessState) ended {
	return ended(fmt.Sprintf("exited with code %d", state.ExitCode()))
}
