package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"
)

// followInterval is the time between two questions for new lines.
const followInterval = time.Second

// follower prints the lines of an upstream as they come, by asking again and again.
type follower struct {
	*remote
	poll  time.Duration
	seen  []string // of the last answer
	begun bool
	away  bool
}

// follow survives a restart of the broker. One that cannot be asked even once, or that
// does not know the upstream, is an error.
func (r *remote) follow(ctx context.Context) error {
	f := &follower{remote: r, poll: r.poll}
	if f.poll == 0 {
		f.poll = followInterval
	}
	for {
		err := f.session(ctx)
		var failed cli.ExitCoder
		switch {
		case ctx.Err() != nil:
			return nil
		case f.begun && errors.Is(err, errSessionGone):
		case !f.begun || !errors.As(err, &failed):
			return err
		case !f.away:
			f.away = true
			fmt.Fprintln(r.stderr, safeText(err.Error()))
		}
		if !pause(ctx, f.poll) {
			return nil
		}
	}
}

// session asks within one MCP session until it fails.
func (f *follower) session(ctx context.Context) error {
	opening, opened := f.bounded(ctx)
	c, err := f.connect(opening, f.at, brokerSlot)
	opened()
	if err != nil {
		return err
	}
	defer c.close()
	for {
		if err := f.ask(ctx, c); err != nil {
			return err
		}
		if !pause(ctx, f.poll) {
			return ctx.Err()
		}
	}
}

func (f *follower) ask(ctx context.Context, c *client) error {
	ctx, cancel := f.bounded(ctx)
	defer cancel()
	i, _, err := c.instance(ctx, f.args[0])
	if err != nil {
		return err
	}
	lines := news(f.seen, i.Stderr)
	switch {
	case !f.begun && i.remoteServer():
		f.notStarted(&i)
	case !f.begun:
		lines = lines[max(0, len(lines)-f.cli.Int("lines")):]
	}
	f.seen, f.begun, f.away = i.Stderr, true, false
	printLines(f.stdout, "", lines)
	return nil
}

// news is what has come behind the lines seen before. The broker keeps the last ones
// only, so it is the shortest end of now in front of which stands an end of before.
func news(before, now []string) []string {
	for n := range now {
		known := now[:len(now)-n]
		if len(known) <= len(before) && slices.Equal(known, before[len(before)-len(known):]) {
			return now[len(now)-n:]
		}
	}
	return now
}
