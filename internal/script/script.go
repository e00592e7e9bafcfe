// Package script runs text scripts against a state machine, for tests only.
//
// A script is a list of commands, one a line, each followed by the exact effects
// it must have, indented by two spaces:
//
//	# spec 01 4.4: a lost provider fails its calls
//	gone p1
//	  c1 <- failed #1 -32000 Provider "s" disconnected
//
// Lines that begin with "#" and empty lines are kept where they are. Words of a
// command are separated by spaces; what begins with "{", "[" or a quote runs to
// the end of the line and is one word, the command's Body.
package script

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const indent = "  "

// Command is one line of a script.
type Command struct {
	Name string
	Args []string          // words without "="
	Opts map[string]string // words of the form key=value
	Body string            // the rest of the line from the first word that begins with { [ or a quote
}

// Interpreter performs a command and returns its effects, one a line. Text for
// the reader of a failure goes through the returned lines as well.
type Interpreter func(t *testing.T, c Command) []string

// Run plays every script that matches pattern as a subtest of its own, each
// against a fresh interpreter. With update the files are rewritten to what came
// out instead of being compared.
func Run(t *testing.T, pattern string, update bool, fresh func() Interpreter) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts match %q (%v)", pattern, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) { play(t, file, update, fresh()) })
	}
}

func play(t *testing.T, file string, update bool, run Interpreter) {
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("read script: %v", err)
	}
	got := Play(t, want, run)
	if update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatalf("update script: %v", err)
		}
		return
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s (-want +got):\n%s", file, cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")))
	}
}

// Play returns text with the effects under each command replaced by those that
// run reports.
func Play(t *testing.T, text []byte, run Interpreter) []byte {
	t.Helper()
	var out bytes.Buffer
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, indent) {
			continue
		}
		out.WriteString(line + "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		for _, effect := range run(t, Parse(line)) {
			out.WriteString(indent + effect + "\n")
		}
	}
	return out.Bytes()
}

// Parse splits one command line.
func Parse(line string) Command {
	c := Command{Opts: map[string]string{}}
	rest := line
	for rest = strings.TrimLeft(rest, " "); rest != ""; rest = strings.TrimLeft(rest, " ") {
		if strings.IndexByte(`{["`, rest[0]) >= 0 && c.Name != "" {
			c.Body = rest
			return c
		}
		var word string
		word, rest, _ = strings.Cut(rest, " ")
		key, value, isOpt := strings.Cut(word, "=")
		switch {
		case c.Name == "":
			c.Name = word
		case isOpt:
			c.Opts[key] = value
		default:
			c.Args = append(c.Args, word)
		}
	}
	return c
}

// Arg returns the i-th argument, "" when there is none.
func (c Command) Arg(i int) string {
	if i < len(c.Args) {
		return c.Args[i]
	}
	return ""
}

// Has reports a bare word among the arguments.
func (c Command) Has(word string) bool {
	for _, arg := range c.Args {
		if arg == word {
			return true
		}
	}
	return false
}

// Duration returns an option, or zero where it is not given.
func (c Command) Duration(t *testing.T, key string) time.Duration {
	t.Helper()
	text, ok := c.Opts[key]
	if !ok {
		return 0
	}
	return ParseDuration(t, text)
}

// ParseDuration reads a duration or ends the test.
func ParseDuration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("script: %v", err)
	}
	return d
}

// Number returns an option, or zero where it is not given.
func (c Command) Number(t *testing.T, key string) int {
	t.Helper()
	text, ok := c.Opts[key]
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("script: option %s: %v", key, err)
	}
	return n
}
