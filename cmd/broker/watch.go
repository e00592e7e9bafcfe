package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/urfave/cli/v2"
)

const (
	watchedURI     = "broker://providers"
	pollInterval   = 2 * time.Second  // without updates, for counters on a terminal, and between two attempts
	checkInterval  = 30 * time.Second // with updates: a proxy may hold them back
	streamPatience = 5 * time.Second  // for the head of the event stream
)

func (p *program) watchCommand() *cli.Command {
	return p.remoteCommand(&cli.Command{
		Name:  "watch",
		Usage: "follow the slots of a running broker",
		Description: "A live table on a terminal, else one line for each change. With --output json each line is the whole\n" +
			"list, as 'broker get slots' prints it, at the start and after each change.\n" +
			"Follows " + watchedURI + " on _broker, and asks every 2 s where that is not possible. Survives a restart of\n" +
			"the broker. Ends with SIGINT or SIGTERM, and exits 0 then. --timeout bounds each question.",
	}, 0, 0, "", func(ctx context.Context, r *remote) error { return r.watch(ctx) })
}

// view shows the list of slots whenever it was read.
type view interface {
	show(list inventory, raw json.RawMessage) error
	lost(err error) error // the broker is away
}

func (r *remote) newView() view {
	switch {
	case r.json:
		return &jsonView{w: r.stdout, log: r.stderr}
	case isTerminal(r.stdout) && r.getenv("TERM") != "dumb":
		return &tableView{w: r.stdout, base: r.at.base, now: time.Now}
	}
	return &lineView{w: r.stdout, now: time.Now}
}

// errStreamEnded: the event stream has ended, the broker need not have.
var errStreamEnded = errors.New("the event stream has ended")

// watch follows the broker through its restarts. One that cannot be read even once
// is an error.
func (r *remote) watch(ctx context.Context) error {
	w := &watcher{remote: r, view: r.newView(), poll: r.poll}
	if w.poll == 0 {
		w.poll = pollInterval
	}
	away := false
	for {
		err := w.session(ctx)
		var failed cli.ExitCoder
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errStreamEnded), errors.Is(err, errSessionGone):
			away = false
		case !w.shown || !errors.As(err, &failed):
			return err
		case !away:
			away = true
			if err := w.view.lost(err); err != nil {
				return err
			}
		}
		if !pause(ctx, w.poll) {
			return nil
		}
	}
}

// pause is false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

type watcher struct {
	*remote
	view  view
	poll  time.Duration
	shown bool
}

// session follows the broker for one MCP session.
func (w *watcher) session(ctx context.Context) error {
	opening, opened := w.bounded(ctx)
	c, err := w.connect(opening, w.at, brokerSlot)
	opened()
	if err != nil {
		return err
	}
	defer c.close()
	streaming, stop := context.WithCancel(ctx)
	changed := make(chan struct{}, 1)
	ended, err := w.subscribe(streaming, stop, c, changed)
	defer func() {
		stop()
		if ended != nil {
			<-ended
		}
	}()
	every := checkInterval
	if _, live := w.view.(*tableView); err != nil || live {
		every = w.poll
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if err := w.read(ctx, c); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ticker.C:
		case <-ended:
			return errStreamEnded
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// subscribe opens the event stream, which stop ends, and asks for the updates.
func (w *watcher) subscribe(ctx context.Context, stop func(), c *client, changed chan<- struct{}) (<-chan error, error) {
	patience := time.AfterFunc(streamPatience, stop)
	ended, err := c.listen(ctx, func(method string, _ json.RawMessage) {
		if method != "notifications/resources/updated" {
			return
		}
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return nil, err
	}
	patience.Stop()
	bounded, cancel := w.bounded(ctx)
	defer cancel()
	_, err = c.request(bounded, "resources/subscribe", map[string]any{"uri": watchedURI})
	return ended, err
}

func (w *watcher) read(ctx context.Context, c *client) error {
	ctx, cancel := w.bounded(ctx)
	defer cancel()
	list, raw, err := c.inventory(ctx)
	if err != nil {
		return err
	}
	w.shown = true
	return w.view.show(list, raw)
}
