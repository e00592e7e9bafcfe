// Command bench measures a whole broker: calls per second against a bare server
// that relays nothing, the CPU time of a call, and the memory of idle peers.
// README.md says how to read the result.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	cancel()
	os.Exit(code)
}

// run is the program. The exit code is 0 also when a target was missed, 1 after
// an error or a wrong answer, 2 for arguments that cannot be used.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		if role, found := roles()[args[0]]; found {
			return exitCode(role(ctx, strings.Join(args[1:], " "), stdout, stderr), stderr)
		}
	}
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2
	}
	return exitCode(o.run(ctx, stdout, stderr), stderr)
}

func exitCode(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "bench: %v\n", err)
	return 1
}

// roles are what this program starts of itself, each with one argument.
func roles() map[string]func(ctx context.Context, arg string, stdout, stderr io.Writer) error {
	return map[string]func(context.Context, string, io.Writer, io.Writer) error{
		"bare": func(ctx context.Context, _ string, _, stderr io.Writer) error { return serveBare(ctx, stderr) },
		"provider": func(ctx context.Context, url string, _, stderr io.Writer) error {
			return serveProvider(ctx, url, stderr)
		},
		"load": func(ctx context.Context, spec string, stdout, _ io.Writer) error {
			var s loadSpec
			if err := json.Unmarshal([]byte(spec), &s); err != nil {
				return fmt.Errorf("load: %w", err)
			}
			result, err := s.run(ctx)
			if err != nil {
				return fmt.Errorf("load: %w", err)
			}
			return json.NewEncoder(stdout).Encode(result)
		},
	}
}

type options struct {
	runs   int
	window time.Duration
	idle   int
	only   *regexp.Regexp
	pin    pinning
	json   bool
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	o.only = regexp.MustCompile("")
	flags.IntVar(&o.runs, "runs", 5, "measurements of each row; the table holds medians")
	seconds := flags.Float64("seconds", 2, "window of one measurement, after a warm-up of a quarter of it")
	flags.IntVar(&o.idle, "idle", 1000, "idle sockets and sessions to hold")
	flags.Func("only", "measure only the rows that match this `pattern`, e.g. 'x 16$'", func(text string) (err error) {
		o.only, err = regexp.Compile(text)
		return err
	})
	flags.Func("pin", "`CPUs` as taskset takes them, of the broker and the bare server / of the others, e.g. 0/1 (default none)", o.pin.set)
	flags.BoolVar(&o.json, "json", false, "write every single measurement as JSON in place of the tables")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.window = time.Duration(*seconds * float64(time.Second))
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.runs < 1 || o.runs > 1000 || o.idle < 1 || o.idle > 9000:
		err = errors.New("-runs must be from 1 to 1000, -idle from 1 to 9000")
	case o.window < 50*time.Millisecond || o.window > time.Minute:
		err = errors.New("-seconds must be from 0.05 to 60")
	case len(o.chosenCalls())+len(o.chosenIdle()) == 0:
		err = fmt.Errorf("-only %s matches no row", o.only)
	}
	if err != nil {
		fmt.Fprintf(stderr, "bench: %v\n", err)
	}
	return o, err
}

// pinning holds processes to CPUs; the zero value does not.
type pinning struct{ servers, others string }

func (p *pinning) set(text string) error {
	if text == "none" {
		*p = pinning{}
		return nil
	}
	var found bool
	if p.servers, p.others, found = strings.Cut(text, "/"); !found || p.servers == "" || p.others == "" {
		return errors.New("want none or two lists of CPUs such as 0/1")
	}
	return nil
}

func (p pinning) String() string {
	if p == (pinning{}) {
		return ""
	}
	return p.servers + "/" + p.others
}

// pinned is a command that runs on these CPUs only, or on all of them.
func pinned(cpus string, argv ...string) []string {
	if cpus == "" {
		return argv
	}
	return append([]string{"taskset", "-c", cpus}, argv...)
}

// run measures and prints. Without an error every row was produced and no
// answer was wrong.
func (o options) run(ctx context.Context, stdout, stderr io.Writer) error {
	b, err := newBench(ctx, o, stderr)
	if err != nil {
		return err
	}
	defer b.remove()
	r, err := b.measure(ctx)
	if err != nil {
		return err
	}
	if o.json {
		encoder := json.NewEncoder(stdout)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(r)
	} else {
		_, err = io.WriteString(stdout, r.markdown())
	}
	return errors.Join(err, r.faults())
}
