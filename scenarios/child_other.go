//go:build !unix

package scenarios

import (
	"os"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

// interrupt cannot be delivered here: the process is ended instead.
func interrupt(p *os.Process) error { return p.Kill() }
