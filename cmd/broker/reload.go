package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"mcpbroker/config"
)

// reloadPoll is how often the configuration file is looked at. It is read once it
// has not changed between two looks: editors write in pieces.
const reloadPoll = time.Second

// reloads applies a changed configuration file, on SIGHUP or by itself, until ctx
// ends. A file that is wrong is refused, and the running configuration stays.
func (p *program) reloads(ctx context.Context, log *slog.Logger, b server, src config.Source) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	ticker := time.NewTicker(reloadPoll)
	defer ticker.Stop()
	applied := stampOf(src.Path)
	seen := applied
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
			log.Info("[mcp-broker] SIGHUP received, reading the configuration again")
			applied = stampOf(src.Path)
			seen = applied
			reload(ctx, log, b, src)
		case <-ticker.C:
			now := stampOf(src.Path)
			if now == seen && now != applied {
				applied = now
				reload(ctx, log, b, src)
			}
			seen = now
		}
	}
}

// stamp tells one state of a file from another.
type stamp struct {
	size    int64
	changed time.Time
}

// stampOf is zero for a file that is not there: an editor may be replacing it.
func stampOf(path string) stamp {
	if path == "" {
		return stamp{}
	}
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{info.Size(), info.ModTime()}
}

func reload(ctx context.Context, log *slog.Logger, b server, src config.Source) {
	cfg, err := config.Load(src)
	if err != nil {
		log.Error(fmt.Sprintf("[mcp-broker] The configuration was not reloaded, the running one stays: %v", err))
		return
	}
	done, err := b.Reload(ctx, cfg)
	if err != nil {
		log.Error(fmt.Sprintf("[mcp-broker] The configuration was not reloaded, the running one stays: %v", err))
		return
	}
	var parts []string
	for _, part := range []struct {
		what  string
		names []string
	}{
		{"added", done.Added}, {"removed", done.Removed}, {"changed", done.Changed}, {"restart the broker to apply", done.Restart},
	} {
		if len(part.names) > 0 {
			parts = append(parts, part.what+" "+strings.Join(part.names, ", "))
		}
	}
	if len(parts) == 0 {
		parts = []string{"nothing has changed"}
	}
	log.Info("[mcp-broker] Configuration reloaded: " + strings.Join(parts, "; "))
}
