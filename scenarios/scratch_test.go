package scenarios

import (
	"errors"
	"strings"
	"testing"
)

// Files, commands and programs share a folder of the script's own.
func TestScratch(t *testing.T) {
	t.Parallel()
	out := newOutput()
	file := write(t, steps(
		`file = "a/b"; text = "one\n"`,
		`file = "c"; base64 = ["dHd", "vCg=="]`,
		`run = ["sh", "-c", "cat a/b c;exit 3"]; code = 3; contains = ["one", "two"]`,
		`program = "p"; command = ["sh", "-c", "cat c;exec sleep 1000"]; scratch = true`,
		`expect_line = "p"; contains = "two"`,
		`kill = "p"`,
		`program = "p"; command = ["sh", "-c", "cat a/b;exec sleep 1000"]; scratch = true`,
		`expect_line = "p"; contains = "one"`,
		`run = ["sh", "-c", "echo $$", "$${X}", "${next_port}-${port}"]`,
	))
	if err := Run(t.Context(), fast(out), file); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, line := range []string{"      * one\n", "      * two\n", "      * p: two\n", "      * p: one\n"} {
		if strings.Count(out.String(), line) != 1 {
			t.Errorf("no line %q in\n%s", line, out)
		}
	}
}

// What a script says that works with files and processes and goes wrong.
func TestScratchVerdicts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, step, want string }{
		{"exit code", `run = ["sh", "-c", "exit 4"]`, `expected exit code 0 of sh, got 4`},
		{"output", `run = ["echo", "one"]; contains = "two"`, `expected output of echo with ["two"], got one`},
		{"no end", `run = ["sleep", "1000"]; within = "50ms"`, `expected the end of sleep, got nothing within 50ms`},
		{"no command", `run = ["no-such-command"]`, `run no-such-command: exec: "no-such-command": executable file not found in $PATH`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out := newOutput()
			err := Run(t.Context(), fast(out), write(t, steps(tt.step)))
			if got := strings.TrimSpace(out.lines.last()); !errors.As(err, new(*FailedError)) || !strings.HasSuffix(got, tt.want) {
				t.Errorf("%v, verdict\n%s\nwant\n%s", err, got, tt.want)
			}
		})
	}
}
