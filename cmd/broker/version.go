package main

import (
	"fmt"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

// release is set by the linker (-X main.release=1.2.3).
var release string

// buildVersion falls back to what the toolchain recorded.
func buildVersion() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

func (p *program) printVersion() { fmt.Fprintf(p.stdout, "mcp-broker %s\n", p.version) }

func (p *program) versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the version",
		Flags: []cli.Flag{outputFlag()},
		Action: func(c *cli.Context) error {
			asJSON, err := alone(c)
			switch {
			case err != nil:
				return err
			case asJSON:
				return printJSON(p.stdout, encode(map[string]string{"name": "mcp-broker", "version": p.version}))
			}
			p.printVersion()
			return nil
		},
	}
}

// alone is for commands that take no argument, and --output at most.
func alone(c *cli.Context) (asJSON bool, err error) {
	args, err := interspersed(c)
	switch {
	case err != nil:
		return false, err
	case len(args) > 0:
		return false, refuse(c, fmt.Sprintf("unexpected argument %q", args[0]))
	}
	return wantsJSON(c)
}
