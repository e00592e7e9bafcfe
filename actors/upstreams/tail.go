package upstreams

import (
	"fmt"
	"strings"

	"mcpbroker/actors/wire"
)

// tail is the last lines of what processes wrote, oldest first. Its slices are
// replaced, never changed in place: a step that fails must find the old ones.
type tail struct {
	past  []string // of former processes
	lines []string // of the present one
	over  string   // follows those, once there is another process
	stray string   // the first line on stdout of one that has not answered initialize yet
}

// all is the last lines of all processes.
func (t *tail) all() []string { return last(t.past, t.lines...) }

// say adds a line of the present process.
func (t *tail) say(line string, stray bool) {
	if len(line) > maxTailBytes {
		line = line[:maxTailBytes]
	}
	if stray && t.stray == "" {
		t.stray = strings.TrimPrefix(line, "stdout: ")
	}
	t.lines = last(t.lines, line)
}

// end takes what a process wrote from its driver, which knows the lines of a flood
// that were not told.
func (t *tail) end(lines []string, pid int, exit string) {
	if len(lines) > 0 {
		t.lines = last(nil, lines...)
	}
	if len(t.lines) == 0 {
		return
	}
	t.past, t.lines = t.all(), nil
	t.over = "--- process"
	if pid != 0 {
		t.over += fmt.Sprintf(" %d", pid)
	}
	t.over += " ended"
	if exit != "" {
		t.over += ": " + exit
	}
	t.over += " ---"
}

// begin is the start of another process.
func (t *tail) begin() {
	if t.over != "" {
		t.past = last(t.past, t.over)
	}
	t.over, t.stray = "", ""
}

// last is the last lines of former and more, as many as are remembered.
func last(former []string, more ...string) []string {
	joined := append(append([]string(nil), former...), more...)
	return joined[max(0, len(joined)-maxTail):]
}

// quoteStray is why there is no answer to initialize, with what was said instead.
func (s *State) quoteStray(err error) error {
	if s.phase != handshaking || s.tail.stray == "" {
		return err
	}
	return fmt.Errorf("%w; its standard output is not JSON-RPC: %s", err, wire.AppendString(nil, s.tail.stray))
}

// excerpt quotes the beginning of what the upstream said, without its secrets.
func (s *State) excerpt(said []byte) string {
	const window = 8 << 10 // far more than is quoted
	said = said[:min(len(said), window)]
	if s.mask != nil {
		said = []byte(s.mask(string(said)))
	}
	return wire.Excerpt(said)
}
