package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/urfave/cli/v2"
)

// restartResult is the answer of instance_restart.
type restartResult struct {
	Outcome  string       `json:"outcome"`
	Message  string       `json:"message"`
	Instance instanceInfo `json:"instance"`
}

// Outcomes of a restart; that of an upstream with one process for each session is
// not followed.
const (
	restartUp    = "up"
	restartAsked = "asked"
	restartFails = "failed"
)

func (p *program) restartCommand() *cli.Command {
	return p.remoteCommand(&cli.Command{
		Name:      "restart",
		Usage:     "make the connection of an upstream again, whatever its schedule",
		ArgsUsage: "NAME",
		Description: "Asks instance_restart of _broker, which waits up to 15 s for what comes of it.\n" +
			"Exits 0 when the upstream is up again: it answered initialize and its first check. Exits 1 when it\n" +
			"failed, 4 when that is not decided yet, or when the broker does not know it.",
		BashComplete: p.completeInstance,
	}, 1, 1, "name an upstream (see 'broker get instances')", func(ctx context.Context, r *remote) error {
		return r.with(ctx, brokerSlot, r.restart)
	})
}

func (r *remote) restart(ctx context.Context, c *client) error {
	answer, _, err := c.try(ctx, "instance_restart", map[string]any{"name": r.args[0]})
	if err != nil {
		return noUpstreams(err)
	}
	var result restartResult
	if err := json.Unmarshal(answer.Structured, &result); err != nil || result.Outcome == "" {
		return &refusedError{text: answer.firstText()}
	}
	if r.json {
		if err := printJSON(r.stdout, answer.Structured); err != nil {
			return err
		}
	}
	switch result.Outcome {
	case restartUp, restartAsked:
		if !r.json {
			fmt.Fprintln(r.stdout, safeText(result.Message))
		}
		return nil
	case restartFails:
		if !r.json {
			printLines(r.stderr, "", result.Instance.Stderr)
		}
		return cli.Exit(safeText(result.Message), exitFailed)
	}
	return &refusedError{text: safeText(result.Message)}
}
