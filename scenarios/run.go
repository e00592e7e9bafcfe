package scenarios

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mcpbroker/internal/freeport"
)

//go:embed *.toml
var builtin embed.FS

// Options of a run. The zero value runs scripts as they are written, at a pace
// people can follow, with this program as the broker.
type Options struct {
	// Out receives narration, log and verdicts. Nil means os.Stdout.
	Out io.Writer
	// Broker is the path of the broker binary. Empty means os.Executable().
	Broker string
	// Port replaces the script's port, 1 to 65535. 0 keeps it.
	Port int
	// AnyPort takes a free port instead; Port is then ignored.
	AnyPort bool
	// Heartbeat replaces the script's heartbeat interval; it is rounded down to
	// milliseconds. 0 keeps the script's.
	Heartbeat time.Duration
	// Pace is the pause after each line of narration. 0 means 1.5 s.
	Pace time.Duration
	// Fast leaves these pauses out. What a script waits for is waited for.
	Fast bool

	patience time.Duration // for what a step expects, unless it says otherwise; 0 means defaultPatience
}

const defaultPace = 1500 * time.Millisecond

func (o Options) pace() time.Duration {
	switch {
	case o.Fast:
		return 0
	case o.Pace == 0:
		return defaultPace
	}
	return o.Pace
}

// FailedError names the scenarios that did not go as scripted. Their verdicts
// have been written to Options.Out.
type FailedError struct{ Names []string }

func (e *FailedError) Error() string { return "scenario failed: " + strings.Join(e.Names, ", ") }

// Builtin is a script that comes with the broker.
type Builtin struct{ Name, Summary string }

// Builtins lists the built-in scripts by name.
func Builtins() []Builtin {
	files, _ := fs.Glob(builtin, "*.toml")
	var list []Builtin
	for _, file := range files {
		name := strings.TrimSuffix(file, ".toml")
		text, _ := builtin.ReadFile(file)
		if s, _ := parse(file, name, string(text), nil); s != nil {
			list = append(list, Builtin{name, s.summary})
		}
	}
	return list
}

// Run carries out scripts one after the other. A name without folder and
// extension is a built-in script, any other name a file.
//
// Mistakes in any of the scripts refuse all of them before anything starts, as a
// *RefusedError. A scenario that goes otherwise than scripted ends with a verdict
// that says where; the others still run, and the error is a *FailedError. When
// ctx ends the present scenario is given up and the error is the cause. In every
// case nothing is left behind: no process, goroutine or file.
func Run(ctx context.Context, o Options, names ...string) error {
	if o.Out == nil {
		o.Out = os.Stdout
	}
	if o.Broker == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find the broker binary: %w", err)
		}
		o.Broker = self
	}
	set, release, err := o.variables()
	if err != nil {
		return err
	}
	defer release()
	scripts, err := load(ctx, o, set, names)
	if err != nil {
		return err
	}
	var failed []string
	for _, s := range scripts {
		if !runOne(ctx, o, s) {
			failed = append(failed, s.name)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if failed != nil {
		return &FailedError{failed}
	}
	return nil
}

// runOne writes everything about one scenario and reports whether it passed.
func runOne(ctx context.Context, o Options, s *script) bool {
	out := newPrinter(o.Out)
	out.heading("%s: %s", s.name, s.title)
	err := runScript(ctx, s, o, out)
	seconds := out.took.Seconds()
	switch {
	case err == nil:
		if s.teaches != "" {
			out.verdict("%s", s.teaches)
		}
		plural := "s"
		if len(s.steps) == 1 {
			plural = ""
		}
		out.verdict("PASS %s (%d step%s, %.1f s)", s.name, len(s.steps), plural, seconds)
	case ctx.Err() != nil:
		out.verdict("STOP %s (after %.1f s): %v", s.name, seconds, context.Cause(ctx))
	default:
		out.verdict("FAIL %s (after %.1f s): %v", s.name, seconds, err)
	}
	return err == nil
}

// variables are those the options set. A port of the runner's choice is the scenario's
// own until release.
func (o Options) variables() (set map[string]any, release func(), err error) {
	set, release = map[string]any{"broker": o.Broker}, func() {}
	switch {
	case o.AnyPort:
		var port int
		if port, release, err = freeport.Reserve(2); err != nil {
			return nil, nil, err
		}
		set["port"] = int64(port)
	case o.Port != 0:
		set["port"] = int64(o.Port)
	}
	if o.Heartbeat != 0 {
		set["heartbeat"] = o.Heartbeat.Milliseconds()
	}
	return set, release, nil
}

// load reads and checks all scripts.
func load(ctx context.Context, o Options, set map[string]any, names []string) ([]*script, error) {
	var scripts []*script
	var problems []Problem
	for _, name := range names {
		file, text, err := source(name)
		if err != nil {
			problems = append(problems, Problem{File: name, Message: err.Error()})
			continue
		}
		s, found := parse(file, strings.TrimSuffix(filepath.Base(file), ".toml"), text, set)
		if len(found) == 0 {
			if found, err = checkConfigs(ctx, o.Broker, s); err != nil {
				return nil, err
			}
			found = append(found, missingPrograms(s)...)
		}
		problems = append(problems, found...)
		scripts = append(scripts, s)
	}
	if len(problems) > 0 {
		return nil, &RefusedError{problems}
	}
	return scripts, nil
}

// source returns the text of a built-in script or of a file.
func source(name string) (file, text string, err error) {
	if path.Ext(name) == "" && !strings.ContainsAny(name, `/\`) {
		data, err := builtin.ReadFile(name + ".toml")
		if err != nil {
			var known []string
			for _, b := range Builtins() {
				known = append(known, b.Name)
			}
			return "", "", fmt.Errorf("no built-in scenario has this name (known: %s); a file is named with its extension, %s.toml",
				strings.Join(known, ", "), name)
		}
		return name + ".toml", string(data), nil
	}
	data, err := os.ReadFile(name)
	var cause *fs.PathError
	if errors.As(err, &cause) {
		err = cause.Err
	}
	if err != nil {
		return "", "", fmt.Errorf("the script cannot be read: %w", err)
	}
	return name, string(data), nil
}

// checkConfigs lets the broker judge the configurations of a script.
func checkConfigs(ctx context.Context, binary string, s *script) (problems []Problem, err error) {
	if len(s.configs) == 0 {
		return nil, nil
	}
	dir, err := os.MkdirTemp("", "scenario-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the broker's configuration: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "broker.toml")
	for _, c := range s.configs {
		if err := writeConfig(file, s.port, s.beat, c.table); err != nil {
			return nil, err
		}
		found, err := checkConfig(ctx, binary, file)
		if err != nil {
			return nil, err
		}
		for _, text := range found {
			problem := Problem{s.file, c.line, "config: " + text}
			if !slices.Contains(problems, problem) {
				problems = append(problems, problem)
			}
		}
	}
	return problems, nil
}
