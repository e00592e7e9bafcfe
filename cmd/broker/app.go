package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"mcpbroker/config"
)

// program is everything the commands take from the process around them.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	environ        []string
	version        string
	newServer      serverFactory
	browse         func(page string) error // opens a page in a browser
	// signals returns the channel that SIGINT and SIGTERM arrive on, and a
	// function that ends their delivery.
	signals  func() (<-chan os.Signal, func())
	poll     time.Duration // of watch and of logs --follow; 0 means their own
	farewell time.Duration // for the end of a session; 0 means farewellTimeout
}

func newProgram() *program {
	return &program{
		stdin:     os.Stdin,
		stdout:    os.Stdout,
		stderr:    os.Stderr,
		environ:   os.Environ(),
		version:   buildVersion(),
		newServer: newBroker,
		browse:    browse,
		signals:   stopSignals,
	}
}

func stopSignals() (<-chan os.Signal, func()) {
	// Two, so that a hurried second signal is not lost while the first is
	// being handled.
	ch := make(chan os.Signal, 2)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	return ch, func() { signal.Stop(ch) }
}

// run executes one command line and returns the exit code: 0, 1 (spec 03 5.6), or
// one of those that commands which ask a broker have besides.
func (p *program) run(ctx context.Context, args []string) int {
	err := p.app(args).RunContext(ctx, args)
	if err == nil || errors.Is(err, errDone) {
		return 0
	}
	if text := err.Error(); text != "" {
		fmt.Fprintln(p.stderr, safeText(text)) // a peer may have written it
	}
	var coded cli.ExitCoder
	if errors.As(err, &coded) {
		return coded.ExitCode()
	}
	return exitFailed
}

var (
	// errDone ends a command line early and successfully.
	errDone = errors.New("done")
	// errReported is a failure whose text is already on standard error.
	errReported = cli.Exit("", 1)
)

// app builds the commands for one command line.
func (p *program) app(args []string) *cli.App {
	app := &cli.App{
		Name:     "broker",
		HelpName: "broker",
		Usage:    "many MCP servers behind one host and one port",
		Description: "Providers connect to /provider/<slot> or share /providers, MCP clients reach a slot at /<slot>/mcp.\n" +
			"Flags override the environment, the environment overrides the file, the file overrides the defaults.",
		CustomAppHelpTemplate: cli.AppHelpTemplate + environmentHelp() + exitHelp(),
		Writer:                p.stdout,
		ErrWriter:             p.stderr,
		ExitErrHandler:        func(*cli.Context, error) {},
		EnableBashCompletion:  true,
		HideVersion:           true,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "version", Aliases: []string{"v"}, Usage: "print the version", DisableDefaultText: true},
			cli.HelpFlag,
		},
		Before: func(c *cli.Context) error {
			if !c.Bool("version") {
				return nil
			}
			p.printVersion()
			return errDone
		},
		Action: func(c *cli.Context) error {
			if name := c.Args().First(); name != "" {
				return unknownCommand(c, name)
			}
			return cli.ShowAppHelp(c)
		},
		Commands: []*cli.Command{
			p.runCommand(), p.bridgeCommand(), p.checkCommand(), p.doctorCommand(),
			p.statusCommand(), p.getCommand(), p.describeCommand(), p.logsCommand(), p.restartCommand(), p.diagnoseCommand(), p.guideCommand(),
			p.toolsCommand(), p.callCommand(), p.watchCommand(),
			p.bundleCommand(), scenarioCommand(), p.versionCommand(), p.completionCommand(), p.helpCommand(),
		},
	}
	app.OnUsageError = usageError
	app.BashComplete = completer(args)
	prepare(app.Commands, app.BashComplete, asksFlags(args))
	return app
}

// prepare gives commands what all of them have in common. The library's own
// help command is one shared value that every run changes; ours stands in.
func prepare(commands []*cli.Command, complete cli.BashCompleteFunc, asksFlags bool) {
	for _, c := range commands {
		c.HideHelpCommand = true
		if c.BashComplete == nil || asksFlags {
			c.BashComplete = complete
		}
		if c.OnUsageError == nil {
			c.OnUsageError = usageError
		}
		prepare(c.Subcommands, complete, asksFlags)
	}
}

func (p *program) helpCommand() *cli.Command {
	return &cli.Command{
		Name:      "help",
		Usage:     "explain a command",
		ArgsUsage: "[command]",
		Action: func(c *cli.Context) error {
			args := append([]string{c.App.Name}, c.Args().Slice()...)
			args = append(args, "--help")
			return p.app(args).RunContext(c.Context, args)
		},
	}
}

// environmentHelp lists the variables below the flags.
func environmentHelp() string {
	var b strings.Builder
	b.WriteString("\nENVIRONMENT (an empty variable counts as unset):\n")
	vars := append(config.EnvVars(), config.EnvVar{Name: envURL, Doc: "the broker that bridges and the commands which ask one reach"})
	width := 0
	for _, v := range vars {
		width = max(width, len(v.Name))
	}
	for _, v := range vars {
		fmt.Fprintf(&b, "   %-*s  %s", width, v.Name, v.Doc)
		if v.Default != "" {
			fmt.Fprintf(&b, " (default %s)", v.Default)
		}
		b.WriteString("\n")
	}
	return b.String()
}
