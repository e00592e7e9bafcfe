package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"mcpbroker/scenarios"
)

func scenarioCommand() *cli.Command {
	return &cli.Command{
		Name:  "scenario",
		Usage: "run scripted scenarios against a real broker",
		Subcommands: []*cli.Command{
			{
				Name:      "run",
				Usage:     "run scenarios and judge them",
				ArgsUsage: "NAME|FILE.toml...",
				Description: "A name without folder and extension is a built-in scenario, see 'broker scenario list'.\n" +
					"Narration, the broker's log and a verdict go to standard output. Flags may also follow the names.\n" +
					"Exits 0 when every scenario passed, 1 otherwise; a script with mistakes is refused before anything starts.",
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "port", Usage: "let the broker listen on `PORT` instead of the script's; 0 takes any free port"},
					&cli.StringFlag{Name: "heartbeat", Usage: "ping providers every `MS` milliseconds instead of the script's interval"},
					&cli.BoolFlag{Name: "fast", Usage: "leave out the pauses for reading", DisableDefaultText: true},
				},
				Action: runScenarios,
			},
			{Name: "list", Usage: "list the built-in scenarios", Flags: []cli.Flag{outputFlag()}, Action: listScenarios},
		},
		Action: func(c *cli.Context) error {
			if name := c.Args().First(); name != "" {
				return refuse(c, fmt.Sprintf("unknown command %q; known are run and list", name))
			}
			return refuse(c, "name a command: run or list")
		},
	}
}

func listScenarios(c *cli.Context) error {
	asJSON, err := alone(c)
	if err != nil {
		return err
	}
	list := scenarios.Builtins()
	if asJSON {
		rows := make([]map[string]string, len(list))
		for i, b := range list {
			rows[i] = map[string]string{"name": b.Name, "summary": b.Summary}
		}
		return printJSON(c.App.Writer, encode(map[string]any{"scenarios": rows}))
	}
	width := 0
	for _, b := range list {
		width = max(width, len(b.Name))
	}
	for _, b := range list {
		fmt.Fprintf(c.App.Writer, "%-*s  %s\n", width, b.Name, b.Summary)
	}
	return nil
}

func runScenarios(c *cli.Context) error {
	names, err := interspersed(c)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return refuse(c, "name a scenario (see 'broker scenario list') or a script file")
	}
	options, err := scenarioOptions(c)
	if err != nil {
		return err
	}
	// Whatever ends this process early must not leave the broker of a scenario
	// behind: a closed terminal, or a pager that has seen enough.
	ctx, release := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer release()
	defer surviveBrokenPipes()()
	options.Out = &endingWriter{w: options.Out, end: release}

	err = scenarios.Run(ctx, options, names...)
	var failed *scenarios.FailedError
	switch {
	case errors.As(err, &failed) || errors.Is(err, context.Canceled):
		return errReported // by a verdict
	case err != nil:
		return cli.Exit(err.Error(), 1)
	}
	return nil
}

func scenarioOptions(c *cli.Context) (scenarios.Options, error) {
	o := scenarios.Options{Out: c.App.Writer, Fast: c.Bool("fast")}
	if c.IsSet("port") {
		port, err := strconv.Atoi(c.String("port"))
		if err != nil || port < 0 || port > 65535 {
			return o, refuse(c, fmt.Sprintf("--port %q must be an integer from 0 to 65535", c.String("port")))
		}
		o.Port, o.AnyPort = port, port == 0
	}
	if c.IsSet("heartbeat") {
		ms, err := strconv.Atoi(c.String("heartbeat"))
		if err != nil || ms < 1 || ms > math.MaxInt32 {
			return o, refuse(c, fmt.Sprintf("--heartbeat %q must be an integer from 1 to %d", c.String("heartbeat"), math.MaxInt32))
		}
		o.Heartbeat = time.Duration(ms) * time.Millisecond
	}
	return o, nil
}

// endingWriter calls end when nothing can be written any more.
type endingWriter struct {
	w   io.Writer
	end func()
}

func (e *endingWriter) Write(p []byte) (int, error) {
	n, err := e.w.Write(p)
	if err != nil {
		e.end()
	}
	return n, err
}
