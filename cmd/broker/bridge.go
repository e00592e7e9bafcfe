package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"mcpbroker/config"
	"mcpbroker/egress/bridge"
)

func (p *program) bridgeCommand() *cli.Command {
	return &cli.Command{
		Name:      "bridge",
		Usage:     "connect a host on standard input and output to a running broker",
		ArgsUsage: "SLOT",
		Description: "For hosts that start their MCP servers themselves. Messages are newline-delimited JSON-RPC,\n" +
			"standard output holds nothing else; what there is to say goes to standard error.\n" +
			"A broker that is away is waited for when the host opens its session, and tried again with each later\n" +
			"message; a restarted one gets a new session.\n" +
			"Ends with standard input, SIGINT or SIGTERM. Flags may also follow the slot.",
		Flags: []cli.Flag{
			urlFlag(),
			&cli.DurationFlag{Name: "wait", Usage: "let initialize wait up to `DURATION` for a broker that is away; 0s answers at once", Value: bridge.DefaultWait},
		},
		Action: p.runBridge,
	}
}

func (p *program) runBridge(c *cli.Context) error {
	args, err := interspersed(c)
	if err != nil {
		return err
	}
	switch {
	case len(args) == 0:
		return refuse(c, "name a slot")
	case len(args) > 1:
		return refuse(c, fmt.Sprintf("unexpected argument %q", args[1]))
	}
	at, err := p.address(c.String("url"))
	if err != nil {
		return refuse(c, err.Error())
	}
	url, err := at.endpoint(args[0])
	if err != nil {
		return refuse(c, err.Error())
	}
	wait := c.Duration("wait")
	switch {
	case wait < 0:
		return refuse(c, "--wait must not be less than 0s")
	case wait == 0:
		wait = -1 // to the bridge 0 is its default
	}
	signals, release := p.signals()
	defer release()
	defer surviveBrokenPipes()()
	ctx, cancel := context.WithCancel(c.Context)
	defer cancel()
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	lines := newLogQueue(p.stderr, config.LogText)
	defer lines.flush(flushPatience)
	to := bridge.Config{URL: url, Log: newLogger(lines), Wait: wait}
	if at.cert != "" {
		to.Client = newHTTPClient(at.cert)
	}
	if err := bridge.Run(ctx, to, p.stdin, p.stdout); err != nil {
		fmt.Fprintln(lines.above(), safeText("[mcp-broker] bridge: "+err.Error()))
		return errReported
	}
	return nil
}
