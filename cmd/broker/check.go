package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"mcpbroker/config"
)

func (p *program) checkCommand() *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "validate a configuration without starting",
		ArgsUsage: "[FILE]",
		Description: "Reports every problem of FILE, taken together with the environment as 'broker run FILE' would; without FILE\n" +
			"those of the file that 'broker run' would read here. Exits 0 when there is none, 1 otherwise.",
		Flags: []cli.Flag{outputFlag()},
		Action: func(c *cli.Context) error {
			args, err := files(c, 0, 1)
			if err != nil {
				return err
			}
			asJSON, err := wantsJSON(c)
			if err != nil {
				return err
			}
			cfg, err := config.Load(config.Source{Path: append(args, "")[0], Environ: p.environ, Files: true})
			if asJSON {
				return p.printChecked(cfg, err)
			}
			if err != nil {
				return configError(err)
			}
			for _, w := range cfg.Warnings {
				fmt.Fprintln(p.stderr, w)
			}
			text := "ok"
			if left := notStarted(cfg); left != "" {
				text += "; " + left
			}
			fmt.Fprintf(p.stdout, "%s: %s\n", configName(cfg), text)
			return nil
		},
	}
}

// configName tells where a configuration comes from.
func configName(cfg *config.Config) string {
	if cfg.File == "" {
		return "no file, the defaults and the environment"
	}
	return cfg.File
}

// notStarted names the entries that are left out, nothing if there are none.
func notStarted(cfg *config.Config) string {
	if len(cfg.Disabled) == 0 {
		return ""
	}
	return "not started (enabled = false): " + strings.Join(cfg.Disabled, ", ")
}

// checked is the outcome of check for machines.
type checked struct {
	File     string         `json:"file,omitempty"`
	OK       bool           `json:"ok"`
	Problems []checkProblem `json:"problems"`
	Warnings []string       `json:"warnings"`
	Disabled []string       `json:"disabled"`
}

type checkProblem struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
}

func (p *program) printChecked(cfg *config.Config, err error) error {
	out := checked{OK: err == nil, Problems: []checkProblem{}, Warnings: []string{}, Disabled: []string{}}
	var refused *config.Error
	var unreadable *config.FileError
	switch {
	case err == nil:
		out.File = cfg.File
		out.Warnings = append(out.Warnings, cfg.Warnings...)
		out.Disabled = append(out.Disabled, cfg.Disabled...)
	case errors.As(err, &refused):
		for _, one := range refused.Problems {
			out.Problems = append(out.Problems, checkProblem{one.File, one.Line, one.Column, one.Message})
		}
	case errors.As(err, &unreadable):
		out.Problems = append(out.Problems, checkProblem{File: unreadable.Path, Message: unreadable.Detail})
	default:
		out.Problems = append(out.Problems, checkProblem{Message: err.Error()})
	}
	if err := printJSON(p.stdout, encode(out)); err != nil || out.OK {
		return err
	}
	return errReported
}

// configError gives a refused configuration its exit code, and a file that
// cannot be read the prefix operators look for (spec 03 5.1).
func configError(err error) error {
	var unreadable *config.FileError
	if errors.As(err, &unreadable) {
		return cli.Exit("[mcp-broker] "+err.Error(), 1)
	}
	return cli.Exit(err.Error(), 1)
}
