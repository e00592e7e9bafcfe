package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"mcpbroker/config"
)

// interspersed returns the arguments of c, and sets the flags among them: the
// library takes flags before the first argument only. What follows "--" is an
// argument, whatever it looks like. Help, where asked for, ends the command line
// with errDone.
func interspersed(c *cli.Context) ([]string, error) {
	var args []string
	rest := c.Args().Slice()
	for len(rest) > 0 {
		if rest[0] == "--" {
			return append(args, rest[1:]...), nil
		}
		if rest[0] == "-" || !strings.HasPrefix(rest[0], "-") {
			args = append(args, rest[0])
			rest = rest[1:]
			continue
		}
		var err error
		if rest, err = leadingFlags(c, rest); err != nil {
			return nil, err
		}
	}
	return args, nil
}

// leadingFlags sets the flags that args begins with, and returns what follows
// them.
func leadingFlags(c *cli.Context, args []string) ([]string, error) {
	set := flag.NewFlagSet("", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	for _, f := range c.Command.Flags {
		if f == cli.HelpFlag {
			continue // so that Parse reports it
		}
		if err := f.Apply(set); err != nil {
			return nil, err
		}
	}
	err := set.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		cli.HelpPrinter(c.App.Writer, cli.CommandHelpTemplate, c.Command)
		return nil, errDone
	}
	if err != nil {
		return nil, usageError(c, err, true)
	}
	set.Visit(func(f *flag.Flag) {
		for _, name := range namesOf(c.Command.Flags, f.Name) {
			err = errors.Join(err, c.Set(name, f.Value.String()))
		}
	})
	rest := set.Args()
	if n := len(args) - len(rest); n > 0 && args[n-1] == "--" {
		rest = args[n-1:] // Parse takes it away
	}
	return rest, err
}

// namesOf returns all the names of the flag that has the one given.
func namesOf(flags []cli.Flag, name string) []string {
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			return f.Names()
		}
	}
	return nil
}

// files returns the arguments of a command that takes between least and most
// files.
func files(c *cli.Context, least, most int) ([]string, error) {
	args, err := interspersed(c)
	switch {
	case err != nil:
		return nil, err
	case len(args) > most:
		return nil, refuse(c, fmt.Sprintf("unexpected argument %q", args[most]))
	case len(args) < least:
		return nil, refuse(c, "a file is missing")
	case slices.Contains(args, ""):
		return nil, refuse(c, "the file name is empty")
	}
	return args, nil
}

// usageError turns what the flag parser found into one sentence.
func usageError(c *cli.Context, err error, _ bool) error {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		return refuse(c, unknownFlag(c, strings.TrimPrefix(name, "-")))
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: -"); ok {
		return refuse(c, dashed(name)+" needs a value")
	}
	text = strings.Replace(text, "invalid boolean value", "invalid value", 1)
	text = strings.Replace(text, " for flag -", " for -", 1)
	if value, rest, ok := strings.Cut(strings.TrimPrefix(text, "invalid value "), " for -"); ok {
		name, _, _ := strings.Cut(rest, ": ")
		return refuse(c, fmt.Sprintf("%s %s must be %s", dashed(name), value, kindOf(c.Command.Flags, name)))
	}
	return refuse(c, text)
}

func unknownFlag(c *cli.Context, name string) string {
	text := "unknown flag " + dashed(name)
	if isRoot := c.Command.Name == c.App.Name; isRoot && someCommandHas(c.App.Commands, name) {
		return dashed(name) + " stands behind its command"
	}
	var known []string
	for _, f := range c.Command.Flags {
		known = append(known, f.Names()...)
	}
	if near := config.Nearest(name, known); len(near) > 1 {
		text += fmt.Sprintf(" (did you mean --%s?)", near)
	}
	return text
}

func someCommandHas(commands []*cli.Command, name string) bool {
	return slices.ContainsFunc(commands, func(c *cli.Command) bool {
		return namesOf(c.Flags, name) != nil || someCommandHas(c.Subcommands, name)
	})
}

// dashed is a flag as people write it.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// kindOf says what the value of a flag has to be.
func kindOf(flags []cli.Flag, name string) string {
	for _, f := range flags {
		if !slices.Contains(f.Names(), name) {
			continue
		}
		switch f.(type) {
		case *cli.DurationFlag:
			return "a duration, such as 90s or 5m"
		case *cli.IntFlag:
			return "an integer"
		case *cli.BoolFlag:
			return "true or false"
		}
	}
	return "another value"
}

func unknownCommand(c *cli.Context, name string) error {
	var known []string
	for _, command := range c.App.Commands {
		known = append(known, command.Name)
	}
	text := fmt.Sprintf("unknown command %q", name)
	if near := config.Nearest(name, known); near != "" {
		text += fmt.Sprintf(" (did you mean %q?)", near)
	}
	return refuse(c, text)
}

// refuse ends a command line that makes no sense.
func refuse(c *cli.Context, text string) error {
	name := c.Command.HelpName
	if name == "" {
		name = c.App.HelpName
	}
	return cli.Exit(fmt.Sprintf("%s: %s\nSee '%s --help'.", name, text, name), 1)
}
