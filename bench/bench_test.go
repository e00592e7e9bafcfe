package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestMain plays the roles: the program under test starts this binary again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && roles()[os.Args[1]] != nil {
		main()
	}
	os.Exit(m.Run())
}

// Every row is produced and no answer is wrong. The figures of so short a run mean nothing.
func TestWholeProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs a broker")
	}
	t.Setenv("GORACE", "atexit_sleep_ms=0") // else every child of a race build takes a second to end
	var stdout, stderr bytes.Buffer
	for _, seconds := range []string{"0.2", "1", "5"} { // a busy machine needs longer for one call
		stdout.Reset()
		stderr.Reset()
		code := run(t.Context(), []string{"-runs=1", "-seconds=" + seconds, "-idle=50", "-json"}, &stdout, &stderr)
		if code == 0 {
			break
		}
		if !strings.Contains(stderr.String(), errNoCall.Error()) {
			t.Fatalf("exit code %d, standard error:\n%s", code, &stderr)
		}
	}
	var r report
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, c := range r.Calls {
		rows = append(rows, c.Name)
		if c.Wrong != 0 || c.Errors != 0 || len(c.Pairs) != 1 || c.Pairs[0].Broker.Calls == 0 || c.Pairs[0].Bare.Calls == 0 {
			t.Errorf("%s: %+v", c.Name, c)
		}
	}
	for _, c := range r.Costs {
		rows = append(rows, c.Name)
	}
	want := []string{
		"64 B x 1", "64 B x 16", "64 B x 256", "4 KiB x 16", "256 KiB x 16",
		"broker CPU per call, 64 B x 16", "memory per idle provider socket", "memory per idle HTTP session",
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	for _, row := range want {
		if !strings.Contains(r.markdown(), "\n| "+row+" |") {
			t.Errorf("no line for %s in\n%s", row, r.markdown())
		}
	}
}

func TestArguments(t *testing.T) {
	tests := []struct {
		args string
		code int
		want string
	}{
		{"-h", 0, "Usage of bench:\n"},
		{"-runs 0", 2, "bench: -runs must be from 1 to 1000, -idle from 1 to 9000\n"},
		{"-idle 9001", 2, "bench: -runs must be from 1 to 1000, -idle from 1 to 9000\n"},
		{"-seconds 0.01", 2, "bench: -seconds must be from 0.05 to 60\n"},
		{"-only nothing", 2, "bench: -only nothing matches no row\n"},
		{"-only [", 2, "invalid value \"[\" for flag -only: error parsing regexp: missing closing ]: `[`\n"},
		{"-pin 0", 2, "invalid value \"0\" for flag -pin: want none or two lists of CPUs such as 0/1\n"},
		{"-json now", 2, "bench: unexpected argument \"now\"\n"},
		{"load {", 1, "bench: load: unexpected end of JSON input\n"},
	}
	for _, tt := range tests {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), strings.Fields(tt.args), &stdout, &stderr)
		if code != tt.code || !strings.HasPrefix(stderr.String(), tt.want) || stdout.Len() > 0 {
			t.Errorf("%s: exit code %d, standard error %q, standard output %q", tt.args, code, &stderr, &stdout)
		}
	}
}

func TestPinning(t *testing.T) {
	for text, want := range map[string]string{"none": "broker run", "0/1-3": "taskset -c 0 broker run"} {
		var p pinning
		if err := p.set(text); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(pinned(p.servers, "broker", "run"), " "); got != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}

func TestMarkdown(t *testing.T) {
	result := func(calls int, cpu time.Duration) *loadResult {
		return &loadResult{Calls: calls, Elapsed: 2 * time.Second, CPU: cpu, P50: time.Millisecond, P99: 4 * time.Millisecond}
	}
	r := &report{Measured: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), Machine: "a machine", Runs: 3, Window: 2 * time.Second, Idle: 10, Pin: "0/1"}
	wrong := result(600, 60*time.Millisecond)
	wrong.Wrong = 2
	r.addCalls(callRow{name: "64 B x 16", ratio: 0.45, cpu: 0.15}, []pair{
		{result(400, 80*time.Millisecond), result(1000, 0)},
		{wrong, result(1000, 0)},
		{result(400, 80*time.Millisecond), result(800, 0)},
	})
	r.addIdle(idleRow{name: "idle HTTP session", target: 4}, []growth{{1000 << 10, 1050 << 10}, {1000 << 10, 1030 << 10}, {1010 << 10, 1090 << 10}})
	want := `Measured on 2030-01-02 03:04 UTC: a machine, runs 3, window 2s, idle peers 10, pinned to CPUs 0/1.

| payload x sessions | broker calls/s | bare calls/s | ratio | min..max | broker CPU ms/call | p50 ms | p99 ms | wrong | target | result |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|
| 64 B x 16 | 200 | 500 | 0.50 | 0.40..0.60 | 0.200 | 1.00 | 4.00 | 2 | >= 0.45 | met |

| cost | median | min..max | memory before -> after, KiB | target | result |
|---|--:|--:|--:|--:|---|
| broker CPU per call, 64 B x 16 | 0.2 ms | 0.1..0.2 |  | <= 0.15 ms | missed by 0.05 ms |
| memory per idle HTTP session | 5 KiB | 3..8 | 1000 -> 1050 | <= 4 KiB | missed by 1 KiB |
`
	if diff := cmp.Diff(want, r.markdown()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	faults := r.faults()
	if faults == nil || faults.Error() != "64 B x 16, run 2, broker: 2 wrong answers, 0 failed calls: " {
		t.Errorf("faults: %v", faults)
	}
}
