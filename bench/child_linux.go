package main

import (
	"os/exec"
	"syscall"
)

// endWithParent has the kernel kill the process if this one is killed.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
