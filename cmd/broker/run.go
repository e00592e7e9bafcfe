package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"mcpbroker"
	"mcpbroker/config"
	"mcpbroker/provider"
)

// stopTimeout bounds an orderly stop.
const stopTimeout = 10 * time.Second

// server is the part of mcpbroker.Broker that run uses.
type server interface {
	provider.Attacher
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	Reload(ctx context.Context, c *config.Config) (mcpbroker.Reloaded, error)
	ReloadRefused(err error)
	ServeStdio(ctx context.Context, slot string, in io.Reader, out io.Writer) (<-chan struct{}, error)
	URL() string
	Done() <-chan error
}

type serverFactory func(cfg *config.Config, log *slog.Logger, version string) (server, error)

func newBroker(cfg *config.Config, log *slog.Logger, version string) (server, error) {
	return mcpbroker.New(mcpbroker.WithConfig(cfg), mcpbroker.WithLogger(log), mcpbroker.WithVersion(version))
}

// runFlags are the flags that set keys of the configuration.
func runFlags() map[string]string {
	return map[string]string{
		"port": "port", "host": "host", "heartbeat": "providerHeartbeatIntervalMs", "log-format": "logFormat",
	}
}

func (p *program) runCommand() *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "start the broker",
		ArgsUsage: "[broker.toml]",
		Description: "Reads the file named, else the one MCP_BROKER_CONFIG names, else ./broker.toml or\n" +
			"./.mcp-broker/config.json if there is one, else starts with the defaults.\n" +
			"SIGINT and SIGTERM stop it in order; another signal does not wait, the same one from half a second on.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "port", Usage: "listen on `PORT`; 0 takes any free port"},
			&cli.StringFlag{Name: "host", Usage: "bind `HOST`"},
			&cli.StringFlag{Name: "heartbeat", Usage: "ping provider sockets every `MS` milliseconds; 0 turns it off"},
			&cli.StringFlag{Name: "log-format", Usage: "`FORMAT` of log lines: text or json"},
			&cli.BoolFlag{Name: "demo", Usage: "publish a provider with the tools echo and clock in slot demo", DisableDefaultText: true},
		},
		Action: p.runBroker,
	}
}

func (p *program) runBroker(c *cli.Context) error {
	cfg, err := p.loadConfig(c)
	if err != nil {
		return err
	}
	if cfg.StdioProvider != "" {
		defer surviveBrokenPipes()() // up to the last line of the log
	}
	lines := newLogQueue(p.stderr, cfg.LogFormat)
	defer lines.flush(flushPatience)
	return p.writingTo(lines).runConfigured(c, cfg, newLogger(lines))
}

// writingTo is the program with a queue in the place of its standard error, so that
// what it writes besides the log keeps its place in the order of lines.
func (p *program) writingTo(lines *logQueue) *program {
	queued := *p
	queued.stderr = lines.above()
	return &queued
}

func (p *program) runConfigured(c *cli.Context, cfg *config.Config, log *slog.Logger) error {
	for _, w := range cfg.Warnings {
		log.Warn(w)
	}
	if text := notStarted(cfg); text != "" {
		log.Info("[mcp-broker] Upstreams " + text)
	}
	signals, release := p.signals()
	defer release()
	hangups, release := hangUps()
	defer release()

	b, err := p.newServer(cfg, log, p.version)
	if err != nil {
		return p.cannotStart(cfg, err)
	}
	if err := b.Start(c.Context); err != nil {
		return p.cannotStart(cfg, err)
	}
	running, end := context.WithCancel(c.Context)
	defer end()
	go trimMemory(running, os.Getenv("GOGC") == "")
	stopDemo := func() {}
	if c.Bool("demo") {
		if stopDemo, err = startDemo(c.Context, b, log, p.version); err != nil {
			p.stop(log, b, signals, arrival{})
			return p.cannotStart(cfg, fmt.Errorf("the demo provider was refused: %w", err))
		}
	}
	p.printBanner(log, cfg, b.URL())
	if w := exposure(cfg); w != "" {
		log.Warn(w)
	}
	p.openPage(cfg, log, b.URL())
	hostGone, err := p.serveStdio(c.Context, cfg, log, b)
	if err != nil {
		p.stop(log, b, signals, arrival{})
		stopDemo()
		return p.cannotStart(cfg, err)
	}
	if src, err := p.configSource(c); err == nil {
		src.Path, src.Again = cfg.File, true
		go p.reloads(running, log, b, src, cfg, hangups)
	}
	return p.serve(log, b, signals, hostGone, stopDemo)
}

func (p *program) loadConfig(c *cli.Context) (*config.Config, error) {
	src, err := p.configSource(c)
	if err != nil {
		return nil, err
	}
	cfg, err := config.Load(src)
	var refused *config.Error
	if errors.As(err, &refused) {
		fmt.Fprintln(p.stderr, refused)
		return nil, cli.Exit(fmt.Sprintf("[mcp-broker] Cannot start: problems in the configuration: %d", len(refused.Problems)), 1)
	}
	if err != nil {
		return nil, configError(err)
	}
	return cfg, nil
}

// configSource is where the command line says the configuration comes from.
func (p *program) configSource(c *cli.Context) (src config.Source, err error) {
	args, err := files(c, 0, 1)
	if err != nil {
		return src, err
	}
	src = config.Source{Path: append(args, "")[0], Environ: p.environ}
	keys := runFlags()
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		if key, ok := keys[name]; ok && c.IsSet(name) {
			src.Flags = append(src.Flags, config.Flag{Name: "--" + name, Key: key, Value: c.String(name)})
		}
	}
	return src, nil
}

// serve waits for a signal, for the end of the stdio host, or for the broker to
// fail.
func (p *program) serve(log *slog.Logger, b server, signals <-chan os.Signal, hostGone <-chan struct{}, stopDemo func()) error {
	var failure error
	var first arrival
	select {
	case s := <-signals:
		first = arrival{s, time.Now()}
		log.Info(fmt.Sprintf("[mcp-broker] %s received, stopping", signalName(s)))
	case <-hostGone:
		log.Info("[mcp-broker] The stdio host has gone, stopping")
	case failure = <-b.Done():
	}
	// The broker first: ending the demo provider first would fail its calls
	// as a lost provider, not as a broker that stops.
	if p.stop(log, b, signals, first) {
		stopDemo()
	}
	if failure != nil {
		fmt.Fprintln(p.stderr, safeText(fmt.Sprintf("[mcp-broker] Stopped: %v", failure)))
		return errReported
	}
	return nil
}

// stop ends the broker in order and reports whether it has ended. A second
// signal or the timeout ends the waiting.
func (p *program) stop(log *slog.Logger, b server, signals <-chan os.Signal, first arrival) bool {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- b.Stop(ctx) }()
	for {
		select {
		case err := <-stopped:
			if err != nil {
				log.Error(fmt.Sprintf("[mcp-broker] Stop failed: %v", err))
			}
			return err == nil
		case s := <-signals:
			if first.echoedBy(s) {
				continue
			}
			log.Warn(fmt.Sprintf("[mcp-broker] %s received again, not waiting any longer", signalName(s)))
		case <-ctx.Done():
			log.Warn(fmt.Sprintf("[mcp-broker] not everything ended within %s", stopTimeout))
		}
		return false
	}
}

func signalName(s os.Signal) string {
	switch s {
	case os.Interrupt:
		return "SIGINT"
	case syscall.SIGTERM:
		return "SIGTERM"
	}
	return s.String()
}

// cannotStart reports a failed start (spec 03 5.6): the message, the cause,
// and where it tried to listen unless the message says so.
func (p *program) cannotStart(cfg *config.Config, err error) error {
	text := err.Error()
	fmt.Fprintf(p.stderr, "[mcp-broker] Cannot start: %s\n", text)
	if cause := errors.Unwrap(err); cause != nil && !strings.HasSuffix(text, describeCause(cause)) {
		fmt.Fprintf(p.stderr, "[mcp-broker] Underlying error: %s\n", describeCause(cause))
	}
	if !strings.Contains(text, strconv.Itoa(cfg.Port)) {
		fmt.Fprintf(p.stderr, "[mcp-broker] Configuration in effect: host=%s port=%d\n", cfg.Host, cfg.Port)
	}
	return errReported
}

func describeCause(err error) string {
	if code := errnoName(err); code != "" {
		return code + " " + err.Error()
	}
	return err.Error()
}

// errnoName is the symbolic name of the system errors a start meets.
func errnoName(err error) string {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return ""
	}
	switch errno {
	case syscall.EADDRINUSE:
		return "EADDRINUSE"
	case syscall.EACCES:
		return "EACCES"
	case syscall.EADDRNOTAVAIL:
		return "EADDRNOTAVAIL"
	case syscall.ENOENT:
		return "ENOENT"
	case syscall.EMFILE:
		return "EMFILE"
	}
	return "errno " + strconv.Itoa(int(errno))
}
