package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/urfave/cli/v2"
)

func (p *program) describeCommand() *cli.Command {
	return &cli.Command{
		Name:      "describe",
		Usage:     "tell everything about one slot or upstream of a running broker",
		ArgsUsage: "slot|instance NAME",
		Subcommands: []*cli.Command{
			p.remoteCommand(&cli.Command{
				Name:      "slot",
				Usage:     "tell everything about a slot",
				ArgsUsage: "NAME",
				Description: "Asks provider_status and broker_diagnose of _broker; --output json is provider_status.\n" +
					"Exits 0 whatever is wrong with the slot, 4 when the broker does not know it.",
				BashComplete: p.completeSlot(1),
			}, 1, 1, "name a slot (see 'broker get slots')", func(ctx context.Context, r *remote) error {
				return r.with(ctx, brokerSlot, r.describeSlot)
			}),
			p.instanceCommand("instance", "tell everything about an upstream"),
		},
		Action: func(c *cli.Context) error {
			if name := c.Args().First(); name != "" {
				return refuse(c, fmt.Sprintf("cannot describe %q; known are slot and instance", name))
			}
			return refuse(c, "name what to describe: slot NAME or instance NAME")
		},
	}
}

func (r *remote) describeSlot(ctx context.Context, c *client) error {
	var slot slotInfo
	raw, err := c.inquire(ctx, "provider_status", map[string]any{"name": r.args[0]}, &slot)
	switch {
	case err != nil:
		return err
	case r.json:
		return printJSON(r.stdout, raw)
	}
	var found report
	if _, err := c.inquire(ctx, "broker_diagnose", map[string]any{"slot": r.args[0]}, &found); err != nil {
		return err
	}
	endpoint, err := r.at.endpoint(slot.Name)
	if err != nil {
		return err
	}
	printSlot(r.stdout, endpoint, slot, found)
	return nil
}

func printSlot(w io.Writer, endpoint string, s slotInfo, found report) {
	connected := "no"
	switch {
	case s.Connecting:
		connected = "not yet: its upstream is being started, and calls wait for it"
	case s.Connected && s.ConnectedSince != nil:
		connected = fmt.Sprintf("for %s, since %s", s.connectedFor(), *s.ConnectedSince)
	}
	member := "not a member"
	if s.Aggregate {
		member = "member"
	}
	fmt.Fprintf(w, "slot %s\n", strconv.Quote(s.Name))
	t := table{{"  transport", s.transport()}}
	t.add("  connected", connected)
	t.add("  _all", member)
	t.add("  callers", fmt.Sprintf("%d over HTTP, %d over WebSocket", s.SessionCount, s.ClientCount))
	t.add("  pending", plural(s.PendingCount, "request"))
	t.add("  subscriptions", strconv.Itoa(s.SubscriptionCount))
	t.add("  clients at", endpoint)
	t.add("  problems", found.counts())
	t.write(w)
	printProblems(w, found.Problems)
}
