//go:build unix

package scenarios

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup keeps the terminal's Ctrl-C from a child: the runner ends it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func interrupt(p *os.Process) error { return p.Signal(os.Interrupt) }
