package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"mcpbroker/config"
)

// serveStdio connects the host that started the process, if the configuration
// names a slot for it. The channel tells that the host has gone and the process
// is to end with it (F-37); it is nil where that is not wanted.
func (p *program) serveStdio(ctx context.Context, cfg *config.Config, log *slog.Logger, b server) (<-chan struct{}, error) {
	if cfg.StdioProvider == "" {
		return nil, nil
	}
	gone, err := b.ServeStdio(ctx, cfg.StdioProvider, p.stdin, p.stdout)
	if err != nil || cfg.StdioExitOnEnd {
		return gone, err
	}
	go func() {
		<-gone
		log.Info("[mcp-broker] The stdio host has gone; the broker stays (stdioExitOnEnd)")
	}()
	return nil, nil
}

// surviveBrokenPipes makes a write to a pipe nobody reads any more an error. By
// default one on standard output or standard error ends the process on the spot,
// and whoever reads them is free to leave first.
func surviveBrokenPipes() (release func()) {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGPIPE)
	return func() { signal.Stop(ch) }
}
