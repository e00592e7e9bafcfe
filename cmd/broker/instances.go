package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"mcpbroker/actors/wire"
)

// instanceInfo is an upstream as _broker describes it.
type instanceInfo struct {
	Name          string  `json:"name"`
	Kind          string  `json:"kind"`
	Target        string  `json:"target"`
	Aggregate     bool    `json:"aggregate"`
	Isolated      bool    `json:"isolated"`
	Verdict       string  `json:"verdict"`
	Explanation   string  `json:"explanation"`
	Check         string  `json:"check"`
	PID           *int    `json:"pid"`
	UpSince       *string `json:"upSince"`
	UpForMs       *int64  `json:"upForMs"`
	Restarts      int     `json:"restarts"`
	Sessions      int     `json:"sessions"`
	AttemptCount  int     `json:"attemptCount"`
	LastAttemptAt *string `json:"lastAttemptAt"`
	NextRetryAt   *string `json:"nextRetryAt"`
	NextRetryInMs *int64  `json:"nextRetryInMs"`
	Error         *string `json:"error"`
	GaveUp        bool    `json:"gaveUp"`

	Events []struct {
		At   string `json:"at"`
		Text string `json:"text"`
	} `json:"events"`
	Stderr []string `json:"stderr"`
}

// remoteServer: it is no child, so that the broker has nothing it wrote.
func (i *instanceInfo) remoteServer() bool { return i.Kind != "stdio" && i.Kind != "bundle" }

func milliseconds(n *int64) string {
	if n == nil {
		return "-"
	}
	return age(time.Duration(*n) * time.Millisecond)
}

func orDash(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

// instanceList is the answer of instances_list.
type instanceList struct {
	Count     int            `json:"count"`
	Instances []instanceInfo `json:"instances"`
}

// errNoUpstreams: the broker offers its tools about upstreams only while it has
// some.
var errNoUpstreams error = &refusedError{text: "The broker keeps no upstreams: its configuration has no stdioUpstreams, mcpServers or mcpbBundles"}

func noUpstreams(err error) error {
	var refused *refusedError
	if errors.As(err, &refused) && refused.code == wire.CodeInvalidParams {
		return errNoUpstreams
	}
	return err
}

func (c *client) instances(ctx context.Context) (list instanceList, raw json.RawMessage, err error) {
	raw, err = c.inquire(ctx, "instances_list", nil, &list)
	return list, raw, noUpstreams(err)
}

func (c *client) instance(ctx context.Context, name string) (i instanceInfo, raw json.RawMessage, err error) {
	raw, err = c.inquire(ctx, "instance_status", map[string]any{"name": name}, &i)
	return i, raw, noUpstreams(err)
}

func (p *program) instancesCommand(name, usage string) *cli.Command {
	return p.remoteCommand(&cli.Command{
		Name:  name,
		Usage: usage,
		Description: "Asks instances_list of _broker. An upstream is a provider that the broker itself starts or dials.\n" +
			"live says that it answers tools/list, healthy that a real call passed.",
	}, 0, 0, "", func(ctx context.Context, r *remote) error {
		return r.with(ctx, brokerSlot, r.listInstances)
	})
}

func (r *remote) listInstances(ctx context.Context, c *client) error {
	list, raw, err := c.instances(ctx)
	if errors.Is(err, errNoUpstreams) {
		raw, err = json.RawMessage(`{"count":0,"instances":[]}`), nil
	}
	switch {
	case err != nil:
		return err
	case r.json:
		return printJSON(r.stdout, raw)
	case len(list.Instances) == 0:
		fmt.Fprintln(r.stderr, errNoUpstreams)
	}
	t := table{{"INSTANCE", "KIND", "VERDICT", "UP", "RESTARTS", "ATTEMPT", "NEXT RETRY"}}
	for _, i := range list.Instances {
		t.add(i.Name, i.Kind, i.Verdict, milliseconds(i.UpForMs), strconv.Itoa(i.Restarts), strconv.Itoa(i.AttemptCount), i.nextRetry())
	}
	t.write(r.stdout)
	return nil
}

func (i *instanceInfo) nextRetry() string {
	if i.GaveUp {
		return "given up"
	}
	if i.NextRetryInMs == nil {
		return "-"
	}
	return "in " + milliseconds(i.NextRetryInMs)
}

func (p *program) instanceCommand(name, usage string) *cli.Command {
	return p.remoteCommand(&cli.Command{
		Name:      name,
		Usage:     usage,
		ArgsUsage: "NAME",
		Description: "Asks instance_status of _broker, which --output json prints.\n" +
			"Exits 0 however the upstream is, 4 when the broker does not know it.",
		BashComplete: p.completeInstance,
	}, 1, 1, "name an upstream (see 'broker get instances')", func(ctx context.Context, r *remote) error {
		return r.with(ctx, brokerSlot, r.describeInstance)
	})
}

func (r *remote) describeInstance(ctx context.Context, c *client) error {
	i, raw, err := c.instance(ctx, r.args[0])
	switch {
	case err != nil:
		return err
	case r.json:
		return printJSON(r.stdout, raw)
	}
	printInstance(r.stdout, &i)
	return nil
}

func printInstance(w io.Writer, i *instanceInfo) {
	fmt.Fprintf(w, "instance %s\n", strconv.Quote(i.Name))
	t := table{{"  kind", i.Kind}}
	if i.Target != "" {
		t.add("  target", i.Target)
	}
	t.add("  verdict", strings.TrimSuffix(i.Verdict+": "+i.Explanation, ": "))
	t.add("  check", i.Check)
	up := "no"
	if i.UpSince != nil {
		up = fmt.Sprintf("for %s, since %s", milliseconds(i.UpForMs), *i.UpSince)
	}
	t.add("  up", up)
	if i.PID != nil {
		t.add("  process", strconv.Itoa(*i.PID))
	}
	if i.Isolated {
		t.add("  sessions", fmt.Sprintf("%d, each with a process of its own", i.Sessions))
	}
	joins := "does not join"
	if i.Aggregate {
		joins = "joins"
	}
	t.add("  _all", joins)
	t.add("  restarts", strconv.Itoa(i.Restarts))
	t.add("  failed attempts", fmt.Sprintf("%d in a row", i.AttemptCount))
	t.add("  last attempt", orDash(i.LastAttemptAt))
	next := i.nextRetry()
	if i.NextRetryAt != nil {
		next += ", at " + *i.NextRetryAt
	}
	t.add("  next retry", next)
	t.add("  error", orDash(i.Error))
	t.write(w)
	if len(i.Events) > 0 {
		fmt.Fprintf(w, "\nevents, the latest last:\n")
		for _, e := range i.Events {
			fmt.Fprintf(w, "  %s  %s\n", oneLine(e.At), oneLine(e.Text))
		}
	}
	if len(i.Stderr) > 0 {
		fmt.Fprintf(w, "\nstandard error, the last lines:\n")
		printLines(w, "  ", i.Stderr)
	}
}

func printLines(w io.Writer, indent string, lines []string) {
	for _, line := range lines {
		fmt.Fprintln(w, indent+oneLine(line))
	}
}
