package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

// guideTopics are those of broker_guide (spec 03 1.4), for completion; the broker
// judges.
func guideTopics() []string {
	return []string{"index", "publish-provider", "connect-client", "host-config", "deploy", "troubleshooting"}
}

func (p *program) guideCommand() *cli.Command {
	return p.remoteCommand(&cli.Command{
		Name:      "guide",
		Usage:     "read what a running broker says about itself",
		ArgsUsage: "[TOPIC]",
		Description: "Asks broker_guide of _broker. Topics are " + strings.Join(guideTopics(), ", ") + ".\n" +
			"Each page is Markdown and ends with the addresses of that broker.",
		BashComplete: func(c *cli.Context) {
			if !c.Args().Present() {
				fmt.Fprintln(c.App.Writer, strings.Join(guideTopics(), "\n"))
			}
		},
	}, 0, 1, "", func(ctx context.Context, r *remote) error {
		return r.with(ctx, brokerSlot, r.guide)
	})
}

func (r *remote) guide(ctx context.Context, c *client) error {
	args := map[string]any{}
	if len(r.args) > 0 {
		args["topic"] = r.args[0]
	}
	result, raw, err := c.tool(ctx, "broker_guide", args)
	switch {
	case err != nil:
		return err
	case r.json:
		return printJSON(r.stdout, raw)
	}
	_, err = fmt.Fprintln(r.stdout, strings.TrimRight(safeText(result.firstText()), "\n"))
	return err
}
