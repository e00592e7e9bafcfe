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
			"A broker that is away is tried again with each message, a restarted one gets a new session.\n" +
			"Ends with standard input, SIGINT or SIGTERM. The flag may also follow the slot.",
		Flags: []cli.Flag{
			urlFlag(),
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
	log := newLogger(p.stderr, config.LogText)
	to := bridge.Config{URL: url, Log: log}
	if at.cert != "" {
		to.Client = newHTTPClient(at.cert)
	}
	if err := bridge.Run(ctx, to, p.stdin, p.stdout); err != nil {
		return cli.Exit("[mcp-broker] bridge: "+err.Error(), 1)
	}
	return nil
}
