package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/urfave/cli/v2"
)

// defaultLines is how many lines of standard error a broker keeps.
const defaultLines = 50

func (p *program) logsCommand() *cli.Command {
	return p.remoteCommand(&cli.Command{
		Name:      "logs",
		Usage:     "print the last lines an upstream wrote to standard error",
		ArgsUsage: "NAME",
		Description: "Asks instance_status of _broker, which --output json prints. A broker keeps the last 50 lines, also of\n" +
			"processes that have ended, and none of what it does not start. Lines of standard output that are no JSON-RPC\n" +
			"are among them as 'stdout: ...'.\n" +
			"With --follow it asks every second and prints what has come, also after a restart of the broker. Of more than\n" +
			"50 lines in a second the first are lost. Ends with SIGINT or SIGTERM, and exits 0 then.",
		BashComplete: p.completeInstance,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "lines", Usage: "print the last `N`", Value: defaultLines},
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on with the lines that come", DisableDefaultText: true},
		},
	}, 1, 1, "name an upstream (see 'broker get instances')", func(ctx context.Context, r *remote) error {
		switch {
		case r.cli.Int("lines") < 1:
			return refuse(r.cli, "--lines must be 1 or more")
		case r.cli.Bool("follow") && r.json:
			return refuse(r.cli, "--follow prints text only: leave --output json out")
		case r.cli.Bool("follow"):
			return r.follow(ctx)
		}
		return r.with(ctx, brokerSlot, r.logs)
	})
}

func (r *remote) logs(ctx context.Context, c *client) error {
	i, raw, err := c.instance(ctx, r.args[0])
	switch {
	case err != nil:
		return err
	case r.json:
		return printJSON(r.stdout, raw)
	case i.remoteServer():
		r.notStarted(&i)
	case len(i.Stderr) == 0:
		fmt.Fprintf(r.stderr, "%s has written nothing to standard error.\n", strconv.Quote(i.Name))
	}
	printLines(r.stdout, "", i.Stderr[max(0, len(i.Stderr)-r.cli.Int("lines")):])
	return nil
}

// notStarted explains why there are no lines.
func (r *remote) notStarted(i *instanceInfo) {
	fmt.Fprintf(r.stderr, "%s is not started by the broker: what it writes is not here. 'broker describe instance' has its events.\n", strconv.Quote(i.Name))
}
