package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

// brokerInfo is the answer of broker_info (spec 03 1.4).
type brokerInfo struct {
	Name          string  `json:"name"`
	Version       string  `json:"version"`
	StartedAt     *string `json:"startedAt"`
	UptimeSeconds int64   `json:"uptimeSeconds"`
	Host          string  `json:"host"`
	Port          int     `json:"port"`
	TLS           bool    `json:"tls"`

	Configuration *struct {
		File       *string `json:"file"`
		LastReload *struct {
			At      string `json:"at"`
			Applied bool   `json:"applied"`
		} `json:"lastReload"`
		NeedsRestart []string `json:"needsRestart"`
	} `json:"configuration"`
}

// configured tells which file the broker was configured from, and what became of its
// last change; empty where that is not known.
func (i *brokerInfo) configured() string {
	c := i.Configuration
	if c == nil {
		return ""
	}
	text := "no file"
	if c.File != nil {
		text = oneLine(*c.File)
	}
	switch last := c.LastReload; {
	case last == nil:
	case last.Applied:
		text += ", last change applied at " + oneLine(last.At)
	default:
		text += ", last change REFUSED at " + oneLine(last.At) + "; see 'broker diagnose'"
	}
	if len(c.NeedsRestart) > 0 {
		text += "; a restart is needed for " + oneLine(strings.Join(c.NeedsRestart, ", "))
	}
	return text
}

func (i *brokerInfo) uptime() string { return age(time.Duration(i.UptimeSeconds) * time.Second) }

func (p *program) statusCommand() *cli.Command {
	return p.remoteCommand(&cli.Command{
		Name:  "status",
		Usage: "tell whether a broker runs, and how it is",
		Description: "Asks broker_info and broker_diagnose of _broker; --output json is broker_info.\n" +
			"Exits 0 when a broker answers, 3 when none does.",
	}, 0, 0, "", func(ctx context.Context, r *remote) error {
		return r.with(ctx, brokerSlot, r.status)
	})
}

func (r *remote) status(ctx context.Context, c *client) error {
	var info brokerInfo
	raw, err := c.inquire(ctx, "broker_info", nil, &info)
	switch {
	case err != nil:
		return err
	case r.json:
		return printJSON(r.stdout, raw)
	}
	var found report
	if _, err := c.inquire(ctx, "broker_diagnose", nil, &found); err != nil {
		return err
	}
	printStatus(r.stdout, r.at.base, info, found)
	return nil
}

func printStatus(w io.Writer, base string, info brokerInfo, found report) {
	s := found.Summary
	bound, secure := info.Host+", port "+strconv.Itoa(info.Port), "no TLS"
	if info.TLS {
		secure = "TLS"
	}
	fmt.Fprintf(w, "%s %s at %s, up %s\n", oneLine(info.Name), oneLine(info.Version), base, info.uptime())
	t := table{{"  bound", bound + ", " + secure}}
	if text := info.configured(); text != "" {
		t.add("  configuration", text)
	}
	slots := fmt.Sprintf("%d, %d connected", s.Slots, s.Connected)
	if s.NeverServed > 0 {
		slots += fmt.Sprintf(", %d named by clients only", s.NeverServed)
	}
	t.add("  slots", slots)
	t.add("  providers", fmt.Sprintf("%d of %d connected", s.ConnectedProviderSlots, s.ProviderSlots))
	t.add("  callers", fmt.Sprintf("%d over HTTP, %d over WebSocket", s.Sessions, s.Clients))
	t.add("  pending", plural(s.PendingRequests, "request"))
	problems := found.counts()
	if len(found.Problems) > 0 {
		problems += "; see 'broker diagnose'"
	}
	t.add("  problems", problems)
	t.write(w)
}
