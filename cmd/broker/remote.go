package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"mcpbroker/actors/wire"
)

// defaultTimeout bounds a command that asks a broker.
const defaultTimeout = 30 * time.Second

// brokerSlot is where a broker answers questions about itself (spec 03 1).
const brokerSlot = "_broker"

// remote is one command line that asks a running broker.
type remote struct {
	*program
	cli     *cli.Context
	args    []string
	at      address
	json    bool
	timeout time.Duration
}

// remoteCommand completes a command that takes between least and most arguments
// and asks a broker; missing says what a command line with too few lacks.
func (p *program) remoteCommand(c *cli.Command, least, most int, missing string, action func(context.Context, *remote) error) *cli.Command {
	c.Flags = append(c.Flags, urlFlag(), outputFlag(),
		&cli.DurationFlag{Name: "timeout", Usage: "give up after `DURATION`, such as 90s or 5m", Value: defaultTimeout})
	c.Action = func(ctx *cli.Context) error {
		args, err := interspersed(ctx)
		if err != nil {
			return err
		}
		switch {
		case len(args) < least:
			return refuse(ctx, missing)
		case len(args) > most:
			return refuse(ctx, fmt.Sprintf("unexpected argument %q", args[most]))
		}
		r, err := p.remote(ctx, args)
		if err != nil {
			return err
		}
		running, release := p.interruptible(ctx.Context)
		defer release()
		return action(running, r)
	}
	return c
}

func (p *program) remote(c *cli.Context, args []string) (*remote, error) {
	r := &remote{program: p, cli: c, args: args, timeout: c.Duration("timeout")}
	if r.timeout <= 0 {
		return nil, refuse(c, "--timeout must be more than 0s")
	}
	var err error
	if r.json, err = wantsJSON(c); err != nil {
		return nil, err
	}
	if r.at, err = p.address(c.String("url")); err != nil {
		return nil, refuse(c, err.Error())
	}
	return r, nil
}

func outputFlag() cli.Flag {
	return &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FORMAT` of standard output: text or json", Value: "text"}
}

func wantsJSON(c *cli.Context) (bool, error) {
	switch format := c.String("output"); format {
	case "json":
		return true, nil
	case "text":
		return false, nil
	default:
		return false, refuse(c, fmt.Sprintf("--output %q must be text or json", format))
	}
}

// interruptible returns a context that SIGINT and SIGTERM end.
func (p *program) interruptible(parent context.Context) (context.Context, func()) {
	signals, release := p.signals()
	ctx, cancel := context.WithCancelCause(parent)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-signals:
			cancel(errInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil); <-ended; release() }
}

// with opens a session with a slot for the time of fn.
func (r *remote) with(ctx context.Context, slot string, fn func(context.Context, *client) error) error {
	ctx, cancel := r.bounded(ctx)
	defer cancel()
	c, err := r.connect(ctx, r.at, slot)
	var refused *refusedError
	switch {
	case errors.As(err, &refused) && refused.text == wire.NotConnected(slot).Message:
		return advise(err, refused.code, "'broker get slots' lists the slots there are.")
	case err != nil:
		return err
	}
	defer c.close()
	return fn(ctx, c)
}

func (r *remote) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, r.timeout, &lateError{r.timeout})
}

// toolResult is the answer to a tools/call.
type toolResult struct {
	Content    []contentBlock  `json:"content"`
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool            `json:"isError"`
}

// firstText is what a tool says in words.
func (t *toolResult) firstText() string {
	i := slices.IndexFunc(t.Content, func(b contentBlock) bool { return b.Type == "text" })
	if i < 0 {
		return ""
	}
	return t.Content[i].Text
}

// tool calls a tool of _broker. One that fails is an error.
func (c *client) tool(ctx context.Context, name string, args map[string]any) (result toolResult, raw json.RawMessage, err error) {
	result, raw, err = c.try(ctx, name, args)
	if err == nil && result.IsError {
		return result, nil, &refusedError{text: result.firstText()}
	}
	return result, raw, err
}

// try calls a tool, which may report that it failed.
func (c *client) try(ctx context.Context, name string, args map[string]any) (result toolResult, raw json.RawMessage, err error) {
	if args == nil {
		args = map[string]any{}
	}
	raw, err = c.request(ctx, "tools/call", map[string]any{"name": name, "arguments": args})
	if err != nil {
		return result, nil, err
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return result, nil, &refusedError{text: fmt.Sprintf("The answer of %s is no tool result: %v", name, err)}
	}
	return result, raw, nil
}

// inquire calls a tool of _broker for its structured content, and decodes that.
func (c *client) inquire(ctx context.Context, name string, args map[string]any, into any) (json.RawMessage, error) {
	result, _, err := c.tool(ctx, name, args)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(result.Structured, into); err != nil {
		return nil, &refusedError{text: fmt.Sprintf("The answer of %s cannot be read: %v", name, err)}
	}
	return result.Structured, nil
}
