package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"mcpbroker/config"
)

// finding is the outcome of one check of doctor.
type finding struct {
	Check  string `json:"check"`
	Status string `json:"status"`
	Text   string `json:"text"`
	Fix    string `json:"fix,omitempty"`
}

// Statuses of a finding.
const (
	statusOK   = "ok"
	statusWarn = "warn"
	statusFail = "fail"
)

// findings are in the order of the checks.
type findings []finding

func (f *findings) ok(check, text string) { *f = append(*f, finding{check, statusOK, text, ""}) }
func (f *findings) warn(check, text, fix string) {
	*f = append(*f, finding{check, statusWarn, text, fix})
}
func (f *findings) fail(check, text, fix string) {
	*f = append(*f, finding{check, statusFail, text, fix})
}

func (p *program) doctorCommand() *cli.Command {
	return &cli.Command{
		Name:      "doctor",
		Usage:     "check what a broker needs here, without one",
		ArgsUsage: "[broker.toml]",
		Description: "Checks the configuration that 'broker run' would read, whether its address is free or who holds it,\n" +
			"certificate and key, the browser origins, what upstreams need to start, and the commands that MCP hosts start.\n" +
			"With --url also whether the way to a running broker lets event streams and WebSockets through, as proxies may not.\n" +
			"Exits 0, or 1 when a check failed; a warning does not count.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "url", Usage: "check the way to the broker at `URL`, too"},
			outputFlag(),
		},
		Action: p.doctor,
	}
}

func (p *program) doctor(c *cli.Context) error {
	args, err := interspersed(c)
	switch {
	case err != nil:
		return err
	case len(args) > 1:
		return refuse(c, fmt.Sprintf("unexpected argument %q", args[1]))
	}
	asJSON, err := wantsJSON(c)
	if err != nil {
		return err
	}
	var proxied address
	if url := c.String("url"); url != "" {
		if proxied, err = (address{base: url, mcp: "/mcp"}).checked(); err != nil {
			return refuse(c, err.Error())
		}
	}
	ctx, release := p.interruptible(c.Context)
	defer release()
	found := p.examine(ctx, append(args, "")[0], proxied)
	if ctx.Err() != nil {
		return errInterrupted
	}
	if asJSON {
		if err := printJSON(p.stdout, encode(map[string]any{"checks": found})); err != nil {
			return err
		}
	} else {
		found.print(p)
	}
	for _, f := range found {
		if f.Status == statusFail {
			return errReported
		}
	}
	return nil
}

// examine makes all the checks there are a configuration and an address for.
func (p *program) examine(ctx context.Context, file string, proxied address) findings {
	var found findings
	cfg, err := config.Load(config.Source{Path: file, Environ: p.environ})
	if err != nil {
		found.brokenConfig(err)
	} else {
		found.config(cfg)
		p.checkAddress(ctx, &found, cfg)
		found.tls(cfg, time.Now())
		found.origins(cfg)
		found.upstreams(ctx, cfg)
	}
	found.commands()
	if proxied.base != "" {
		p.checkProxy(ctx, &found, proxied)
	}
	return found
}

func (f *findings) brokenConfig(err error) {
	const check, fix = "configuration", "correct it; 'broker check FILE' validates it again. The checks that need it were left out."
	var refused *config.Error
	if !errors.As(err, &refused) {
		f.fail(check, err.Error(), fix)
		return
	}
	for _, problem := range refused.Problems {
		f.fail(check, problem.String(), fix)
	}
}

// originsWarning begins the warnings that the check of the origins is about.
const originsWarning = "[mcp-broker] allowedOrigins "

func (f *findings) config(cfg *config.Config) {
	const check = "configuration"
	f.ok(check, configName(cfg))
	for _, w := range cfg.Warnings {
		if !strings.HasPrefix(w, originsWarning) {
			f.warn(check, strings.TrimPrefix(w, "[mcp-broker] "), "")
		}
	}
}

func (f findings) print(p *program) {
	width := 0
	for _, one := range f {
		width = max(width, len(one.Check))
	}
	for _, one := range f {
		fmt.Fprintf(p.stdout, "%-4s  %-*s  %s\n", one.Status, width, one.Check, oneLine(one.Text))
		if one.Fix != "" {
			fmt.Fprintf(p.stdout, "%*s%s\n", width+8, "", oneLine(one.Fix))
		}
	}
}
