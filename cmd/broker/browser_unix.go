//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// detach keeps the Ctrl+C that stops the broker from ending the browser.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
