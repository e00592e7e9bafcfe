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
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return refuse(c, fmt.Sprintf("unexpected argument %q", c.Args().First()))
			}
			p.printVersion()
			return nil
		},
	}
}
