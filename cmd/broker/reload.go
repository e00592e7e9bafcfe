package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"mcpbroker"
	"mcpbroker/config"
)

const (
	// reloadPoll is how often the configuration file is looked at. It is read once it
	// was the same in two looks: editors write in pieces.
	reloadPoll = time.Second
	// reloadTimeout bounds the wait for upstreams that a reload stops. Until it is over
	// another SIGHUP waits.
	reloadTimeout = 15 * time.Second
)

// hangUps is the channel SIGHUP arrives on. Until it is called the signal ends the
// process.
func hangUps() (<-chan os.Signal, func()) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	return hangups, func() { signal.Stop(hangups) }
}

// reloader applies a changed configuration file to a running broker. A file that is
// wrong is refused, and the running configuration stays.
type reloader struct {
	log     *slog.Logger
	broker  server
	source  config.Source
	running *config.Config // applied last
	seen    stamp          // at the last look
	judged  digest         // of what was applied or refused last
}

// digest is the SHA-256 of a file, zero for one that is not there.
type digest = [sha256.Size]byte

// stamp tells one state of a file from another.
type stamp struct {
	size    int64
	changed time.Time
	content digest
}

// stampOf is zero for a file that cannot be read: an editor may be replacing it.
func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	text, err := config.ReadRegular(path, config.MaxFileBytes)
	if err != nil {
		return stamp{}
	}
	return stamp{info.Size(), info.ModTime(), sha256.Sum256(text)}
}

// reloads reloads on SIGHUP, and when the file changes, until ctx ends.
func (p *program) reloads(ctx context.Context, log *slog.Logger, b server, src config.Source, running *config.Config, hangups <-chan os.Signal) {
	src.Again = true
	r := &reloader{log: log, broker: b, source: src, running: running, judged: running.Digest}
	ticker := time.NewTicker(reloadPoll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
			log.Info("[mcp-broker] SIGHUP received, reading the configuration again")
			r.reload(ctx)
		case <-ticker.C:
			if src.Path != "" {
				r.look(ctx)
			}
		}
	}
}

// reload does what an operator asks for.
func (r *reloader) reload(ctx context.Context) {
	r.seen = stampOf(r.source.Path)
	r.judged = r.seen.content
	cfg, err := config.Load(r.source)
	if err != nil {
		r.refuse(err)
		return
	}
	r.judged = cfg.Digest
	r.apply(ctx, cfg)
}

// look reloads a file that has changed and settled. Nobody has asked for that, so a file
// that has lost its content is not taken for the wish to end every upstream.
func (r *reloader) look(ctx context.Context) {
	now := stampOf(r.source.Path)
	settled := now == r.seen
	r.seen = now
	if !settled || now.content == r.judged {
		return
	}
	cfg, err := config.Load(r.source)
	if err == nil && cfg.Digest != now.content {
		return // it goes on changing
	}
	r.judged = now.content
	switch upstreams := r.running.Upstreams(); {
	case err != nil:
		r.refuse(err)
	case cfg.Blank && len(upstreams) > 0:
		r.refuse(fmt.Errorf("%s is empty, which would remove every upstream (%s); SIGHUP applies it", cfg.File, strings.Join(upstreams, ", ")))
	default:
		r.apply(ctx, cfg)
	}
}

func (r *reloader) refuse(err error) {
	r.broker.ReloadRefused(err)
	problems := strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ") // one line, however many there are
	r.log.Error("[mcp-broker] The configuration was not reloaded, the running one stays: " + problems)
}

// apply makes a configuration the running one, and warns of what is new in it.
func (r *reloader) apply(ctx context.Context, cfg *config.Config) {
	ctx, cancel := context.WithTimeout(ctx, reloadTimeout)
	defer cancel()
	done, err := r.broker.Reload(ctx, cfg)
	if err != nil {
		r.refuse(err)
		return
	}
	for _, w := range cfg.Warnings {
		if !slices.Contains(r.running.Warnings, w) {
			r.log.Warn(w)
		}
	}
	r.running = cfg
	level := slog.LevelInfo
	if len(done.Stopping) > 0 {
		level = slog.LevelWarn
	}
	r.log.Log(ctx, level, "[mcp-broker] Configuration reloaded: "+outcome(done))
}

func outcome(done mcpbroker.Reloaded) string {
	var parts []string
	for _, part := range []struct {
		what  string
		names []string
	}{
		{"added ", done.Added}, {"removed ", done.Removed}, {"changed ", done.Changed}, {"restart the broker to apply ", done.Restart},
		{"applied, but these have not stopped yet: ", done.Stopping},
	} {
		if len(part.names) > 0 {
			parts = append(parts, part.what+strings.Join(part.names, ", "))
		}
	}
	if len(parts) == 0 {
		return "nothing has changed"
	}
	return strings.Join(parts, "; ")
}
