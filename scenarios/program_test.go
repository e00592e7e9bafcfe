package scenarios

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/firmware/firmwaretest"
)

// prepare builds what a built-in scenario runs beside the broker, or skips it.
func prepare(t *testing.T, name string) {
	t.Helper()
	switch name {
	case "plant":
		firmwaretest.Make(t, "samples")
	case "device-lifecycle":
		firmwaretest.Require(t, "qemu-system-arm", "qemu-system-arm")
		firmwaretest.Make(t, "fw-arm")
	}
}

// A program's lines are part of the story, and are waited for in their order.
func TestProgram(t *testing.T) {
	t.Parallel()
	out := newOutput()
	file := write(t, steps(
		`program = "p"; command = ["sh", "-c", "echo one;echo two 2;echo three >&2;exec sleep 1000"]`,
		`expect_line = "p"; contains = ["two", "2"]`,
		`expect_line = "p"; contains = "three"`,
	))
	if err := Run(t.Context(), fast(out), file); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, line := range []string{"      * p: one\n", "      * p: two 2\n", "      * p: three\n"} {
		if strings.Count(out.String(), line) != 1 {
			t.Errorf("no line %q in\n%s", line, out)
		}
	}
}

// What a script about a program that goes wrong says.
func TestProgramVerdicts(t *testing.T) {
	t.Parallel()
	run := func(command string) string { return `program = "p"; command = ["sh", "-c", "` + command + `"]` }
	for _, tt := range []struct {
		name  string
		steps []string
		want  string
	}{
		{"no line", []string{run("echo one;exec sleep 1000"), `expect_line = "p"; contains = "two"; within = "500ms"`},
			`expected p: a line with ["two"], got nothing within 500ms`},
		{"the line is taken", []string{run("echo one;exec sleep 1000"), `expect_line = "p"; contains = "one"`, `expect_line = "p"; contains = "one"; within = "20ms"`},
			`expected p: a line with ["one"], got nothing within 20ms`},
		{"an end", []string{run("exit 3"), `expect_line = "p"; contains = "one"`}, `program p ended by itself: exit status 3`},
		{"a repeated call", []string{`connect = "A"; slot = "a"`, `session = "c"; slot = "a"; patient = true`, `call = "c"; tool = "whoami"; repeat = 3; text = "B"`},
			`call 1 of 3: expected the result "B", got the result "A"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out := newOutput()
			err := Run(t.Context(), fast(out), write(t, steps(tt.steps...)))
			if got := out.lines.last(); !errors.As(err, new(*FailedError)) || !strings.HasSuffix(got, tt.want) {
				t.Errorf("%v, verdict\n%s\nwant\n%s", err, got, tt.want)
			}
		})
	}
}

// A program that is not there refuses the script before anything starts.
func TestProgramMissing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := write(t, steps(
		`program = "a"; command = "no-such-program-here"; needs = "what nobody has"`,
		`program = "b"; command = "./b"; dir = "no/such/folder"`,
		`program = "c"; command = "sh"; dir = "`+dir+`"; files = "image"`,
		`program = "d"; command = "./d"; dir = "`+dir+`"`,
	))
	out := newOutput()
	err := Run(t.Context(), fast(out), file)
	here, wdErr := os.Getwd()
	if wdErr != nil {
		t.Fatal(wdErr)
	}
	want := strings.Join([]string{
		file + `:5: program "a" cannot be run here: exec: "no-such-program-here": executable file not found in $PATH; it needs what nobody has`,
		file + `:9: program "b" cannot be run here: no/such/folder is neither in ` + here + ` nor in a folder above it`,
		file + `:13: program "c" cannot be run here: stat ` + dir + `/image: no such file or directory`,
		file + `:18: program "d" cannot be run here: exec: "` + dir + `/d": stat ` + dir + `/d: no such file or directory`,
	}, "\n")
	if diff := cmp.Diff(want, fmt.Sprint(err)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if out.String() != "" {
		t.Errorf("something was started:\n%s", out)
	}
}
