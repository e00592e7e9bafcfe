package main

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// F-37: the process ends with its stdio host, unless it is told not to.
func TestStdioHostEnds(t *testing.T) {
	b := newBench(t)
	b.environ = []string{"MCP_BROKER_STDIO_PROVIDER=_all"}
	wait := b.start(t)
	close(b.server.hostGone)
	if code := wait(); code != 0 || b.out.String() != "" || b.server.bridged != "_all" {
		t.Errorf("exit code %d, standard output %q, bridged to %q", code, b.out, b.server.bridged)
	}
	if !strings.HasSuffix(b.err.String(), "[mcp-broker] The stdio host has gone, stopping\n") {
		t.Errorf("standard error ends in %q", b.err)
	}
	if want := "  stdio host           slot _all "; !strings.Contains(b.err.String(), want) {
		t.Errorf("no banner row %q in %q", want, b.err)
	}

	b = newBench(t)
	b.environ = []string{"MCP_BROKER_STDIO_PROVIDER=_all", "MCP_BROKER_STDIO_EXIT_ON_END=false"}
	wait = b.start(t)
	close(b.server.hostGone)
	for !strings.Contains(b.err.String(), "[mcp-broker] The stdio host has gone; the broker stays (stdioExitOnEnd)\n") {
		<-b.err.changed
	}
	b.signal <- os.Interrupt
	if code := wait(); code != 0 || !strings.HasSuffix(b.err.String(), "SIGINT received, stopping\n") {
		t.Errorf("exit code %d, standard error %q", code, b.err)
	}
}

// Without a slot there is no bridge; an empty variable counts as unset.
func TestNoStdioHost(t *testing.T) {
	b := newBench(t)
	b.environ = []string{"MCP_BROKER_STDIO_PROVIDER="}
	wait := b.start(t)
	b.signal <- os.Interrupt
	if code := wait(); code != 0 || b.server.bridged != "" {
		t.Errorf("exit code %d, bridged to %q", code, b.server.bridged)
	}
}

// A bridge that cannot be made is a start that fails.
func TestStdioHostRefused(t *testing.T) {
	b := newBench(t)
	b.environ = []string{"MCP_BROKER_STDIO_PROVIDER=s"}
	b.server.refusal = errors.New("no room")
	if code := b.do("run"); code != 1 || !strings.Contains(b.err.String(), "[mcp-broker] Cannot start: no room\n") {
		t.Errorf("exit code %d, standard error %q", code, b.err)
	}
}
