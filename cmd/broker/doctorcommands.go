package main

import (
	"fmt"
	"os"
	"os/exec"
)

// commands checks what the entries of MCP hosts start: this program as broker, and
// npx for hosts that reach the broker through mcp-remote.
func (f *findings) commands() {
	own, err := os.Executable()
	if err != nil {
		own = "broker"
	}
	f.ownCommand(own)
	if path, err := exec.LookPath("npx"); err == nil {
		f.ok("npx", path)
		return
	}
	f.ok("npx", "not on the PATH; only hosts that go through mcp-remote need it")
}

func (f *findings) ownCommand(own string) {
	const check = "PATH"
	path, err := exec.LookPath("broker")
	if err != nil {
		f.warn(check, "broker is not on the PATH: a host with \"command\": \"broker\" cannot start it",
			fmt.Sprintf("give hosts the whole path, \"command\": %q, or put its directory on the PATH", own))
		return
	}
	if !sameFile(path, own) {
		f.warn(check, fmt.Sprintf("hosts with \"command\": \"broker\" start %s, which is not this program", path),
			fmt.Sprintf("give hosts the whole path, \"command\": %q, if this one is meant", own))
		return
	}
	f.ok(check, path+" is this program; a desktop host may have a shorter PATH and need the whole path")
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}
