package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"mcpbroker/config"
)

func (p *program) checkCommand() *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "validate a configuration without starting",
		ArgsUsage: "FILE",
		Description: "Reports every problem of FILE, taken together with the environment as 'broker run FILE' would.\n" +
			"Exits 0 when there is none, 1 otherwise.",
		Action: func(c *cli.Context) error {
			args, err := files(c, 1, 1)
			if err != nil {
				return err
			}
			cfg, err := config.Load(config.Source{Path: args[0], Environ: p.environ})
			if err != nil {
				return configError(err)
			}
			for _, w := range cfg.Warnings {
				fmt.Fprintln(p.stderr, w)
			}
			fmt.Fprintf(p.stdout, "%s: ok\n", args[0])
			return nil
		},
	}
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
