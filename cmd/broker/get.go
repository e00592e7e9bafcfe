package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"
)

func (p *program) getCommand() *cli.Command {
	return &cli.Command{
		Name:      "get",
		Usage:     "list what a running broker has",
		ArgsUsage: "slots|instances|sessions",
		Subcommands: []*cli.Command{
			p.listCommand("slots", "list the slots: who serves them, since when, how many call", slotTable),
			p.instancesCommand("instances", "list the upstreams: how they are, since when, and when they are tried again"),
			p.listCommand("sessions", "count the callers of each slot, by the way they came", sessionTable),
		},
		Action: func(c *cli.Context) error {
			if name := c.Args().First(); name != "" {
				return refuse(c, fmt.Sprintf("cannot get %q; known are slots, instances and sessions", name))
			}
			return refuse(c, "name what to get: slots, instances or sessions")
		},
	}
}

func (p *program) listCommand(name, usage string, rows func(inventory) table) *cli.Command {
	return p.remoteCommand(&cli.Command{
		Name:  name,
		Usage: usage,
		Description: "Asks providers_list of _broker, and is one of its callers itself.\n" +
			"Callers are HTTP and WebSocket clients; hosts on standard input and output are not counted.",
	}, 0, 0, "", func(ctx context.Context, r *remote) error {
		return r.with(ctx, brokerSlot, func(ctx context.Context, c *client) error {
			list, raw, err := c.inventory(ctx)
			switch {
			case err != nil:
				return err
			case r.json:
				return printJSON(r.stdout, raw)
			}
			rows(list).write(r.stdout)
			return nil
		})
	})
}
