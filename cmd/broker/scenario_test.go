package main

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestScenarioList(t *testing.T) {
	b := newBench(t)
	if code := b.do("scenario", "list"); code != 0 || b.err.String() != "" {
		t.Errorf("exit code %d, standard error %q", code, b.err)
	}
	var names []string
	for line := range strings.Lines(b.out.String()) {
		name, summary, ok := strings.Cut(line, "  ")
		if !ok || strings.TrimSpace(summary) == "" {
			t.Errorf("%q has no summary", line)
		}
		names = append(names, name)
	}
	want := "aggregate-churn bundle-signed deadline device-lifecycle embedded four-transports framing-mismatch half-open-provider host-config live-not-healthy " +
		"plant provider-lifecycle reload remote-restart slot-crash slow-reader stdio-host subscription-replay takeover-modes upstream-crash upstream-no-secret"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("listed %q, want %q", got, want)
	}
	b = newBench(t)
	var list struct {
		Scenarios []struct{ Name, Summary string }
	}
	if code := b.do("scenario", "list", "-o", "json"); code != 0 || json.Unmarshal([]byte(b.out.String()), &list) != nil {
		t.Fatalf("exit code %d, %s", code, b.out)
	}
	names = nil
	for _, one := range list.Scenarios {
		if names = append(names, one.Name); one.Summary == "" {
			t.Errorf("%s has no summary", one.Name)
		}
	}
	if got := strings.Join(names, " "); got != want {
		t.Errorf("listed in JSON %q, want %q", got, want)
	}
}

// Nothing on the command line is ignored, before or after the names.
func TestScenarioRefusedCommandLines(t *testing.T) {
	const run = "See 'broker scenario run --help'.\n"
	tests := []struct{ args, want string }{
		{"", "broker scenario: name a command: run or list\nSee 'broker scenario --help'.\n"},
		{"play", "broker scenario: unknown command \"play\"; known are run and list\nSee 'broker scenario --help'.\n"},
		{"list x", "broker scenario list: unexpected argument \"x\"\nSee 'broker scenario list --help'.\n"},
		{"run", "broker scenario run: name a scenario (see 'broker scenario list') or a script file\n" + run},
		{"run --fast", "broker scenario run: name a scenario (see 'broker scenario list') or a script file\n" + run},
		{"run --prot 1 deadline", "broker scenario run: unknown flag --prot (did you mean --port?)\n" + run},
		{"run deadline --prot 1", "broker scenario run: unknown flag --prot (did you mean --port?)\n" + run},
		{"run deadline --port", "broker scenario run: --port needs a value\n" + run},
		{"run --port 70000 deadline", "broker scenario run: --port \"70000\" must be an integer from 0 to 65535\n" + run},
		{"run deadline --heartbeat 0", "broker scenario run: --heartbeat \"0\" must be an integer from 1 to 2147483647\n" + run},
		{"run deadline --heartbeat=soon slot-crash", "broker scenario run: --heartbeat \"soon\" must be an integer from 1 to 2147483647\n" + run},
		{"run gone.toml --fast", "gone.toml: the script cannot be read: no such file or directory\n"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			b := newBench(t)
			b.expect(t, b.do(append([]string{"scenario"}, strings.Fields(tt.args)...)...), 1, "", tt.want)
		})
	}
}

// Flags count on either side of the names.
func TestScenarioRun(t *testing.T) {
	writeScript := func(t *testing.T) {
		writeFile(t, "my.toml", "title = 'port ${port}, every ${heartbeat} ms'\n[[step]]\nwait = '0s'\n")
	}
	for _, args := range []string{"--port 3301 --heartbeat 700 --fast my.toml", "my.toml --port 3301 --heartbeat=700 --fast", "--port 3301 my.toml --fast --heartbeat 700"} {
		b := newBench(t)
		writeScript(t)
		if code := b.do(append([]string{"scenario", "run"}, strings.Fields(args)...)...); code != 0 || b.err.String() != "" {
			t.Errorf("%s: exit code %d, standard error %q", args, code, b.err)
		}
		if got, want := b.out.String(), "my: port 3301, every 700 ms\nPASS my (1 step, "; !strings.HasPrefix(got, want) {
			t.Errorf("%s: output %q, want %q", args, got, want)
		}
	}

	b := newBench(t)
	writeFile(t, "bad.toml", "title = 'bad'\n[[step]]\nwait = '0s'\nexpect_log = 'x'\n")
	b.expect(t, b.do("scenario", "run", "bad.toml"), 1, "", "bad.toml:4: two actions in one step: \"wait\" and \"expect_log\"\n")

	b = newBench(t)
	writeFile(t, "fails.toml", "title = 'fails'\n[[step]]\nbroker = 'start'\nembedded = true\n[[step]]\nexpect_log = 'nothing'\nwithin = '1ms'\n")
	if code := b.do("scenario", "run", "fails.toml", "--port", "0", "--fast"); code != 1 || b.err.String() != "" {
		t.Errorf("exit code %d, standard error %q", code, b.err)
	}
	if want := `step 2 (fails.toml:5): expected a log line with ["nothing"], got nothing within 1ms` + "\n"; !strings.HasSuffix(b.out.String(), want) {
		t.Errorf("output %q does not end with %q", b.out, want)
	}
}

// A reader of the narration that leaves ends the scenario in order, broker and all.
func TestScenarioEndsWithItsReader(t *testing.T) {
	ended := 0
	w := &endingWriter{w: io.Discard, end: func() { ended++ }}
	if n, err := w.Write([]byte("kept")); n != 4 || err != nil || ended != 0 {
		t.Errorf("wrote %d, %v, ended %d times", n, err, ended)
	}
	r, pipe := io.Pipe()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	w.w = pipe
	if _, err := w.Write([]byte("lost")); !errors.Is(err, io.ErrClosedPipe) || ended != 1 {
		t.Errorf("error %v, ended %d times", err, ended)
	}
}
