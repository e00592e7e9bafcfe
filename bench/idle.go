package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coder/websocket"
)

// idleRow measures the memory of one kind of peer that is connected and silent.
type idleRow struct {
	name   string
	target float64 // KiB each, at most
	// hold opens n peers at a broker, numbered from first. release fails if the
	// broker gave one of them up in the meantime.
	hold func(ctx context.Context, base string, first, n int) (release func() error, err error)
}

func idleRows() []idleRow {
	return []idleRow{
		{"idle provider socket", 18, holdSockets},
		{"idle HTTP session", 4, holdSessions},
	}
}

// growth is the resident memory of a broker, in bytes, without and with the peers.
type growth struct {
	Before int64 `json:"before"`
	After  int64 `json:"after"`
}

// heldBefore is how many peers are there from the start, so that what a broker
// sets up for the first of a kind is not counted.
const heldBefore = 16

// growth measures a fresh broker.
func (b *bench) growth(ctx context.Context, row idleRow) (g growth, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f, err := b.startBroker(ctx)
	defer func() { err = errors.Join(err, f.stop()) }()
	if err != nil {
		return g, err
	}
	broker := f[0]
	releaseFirst, err := row.hold(ctx, broker.url, 0, heldBefore)
	if err != nil {
		return g, err
	}
	if g.Before, err = b.settle(ctx, broker); err != nil {
		return g, err
	}
	release, err := row.hold(ctx, broker.url, heldBefore, b.idle)
	if err != nil {
		return g, err
	}
	if g.After, err = b.settle(ctx, broker); err != nil {
		return g, err
	}
	return g, errors.Join(release(), releaseFirst())
}

// settle returns the resident memory of a broker that has served calls for a
// window and whose memory then stood still for one and a half, or moved for
// fifteen. An idle broker gives back what a burst has left behind: without the
// wait, the growth would be that as much as what the peers hold.
func (b *bench) settle(ctx context.Context, broker *child) (int64, error) {
	r, err := b.load(ctx, callRow{size: 64, sessions: heldBefore}, clientURL(broker.url), broker.pid())
	if err != nil {
		return 0, err
	}
	if r.Wrong+r.Errors > 0 {
		return 0, fmt.Errorf("load on an idle broker: %s", r.Problem)
	}
	return stillMemory(ctx, broker.pid(), b.window*3/2)
}

// stillMemory waits until the resident memory of a process stands still for a
// while, or ten times that, and returns it.
func stillMemory(ctx context.Context, pid int, quiet time.Duration) (int64, error) {
	const noise = 64 << 10
	var still int64
	since := time.Now()
	giveUp := since.Add(10 * quiet)
	for {
		now, err := residentMemory(pid)
		if err != nil {
			return 0, err
		}
		if max(now-still, still-now) > noise {
			still, since = now, time.Now()
		}
		if time.Since(since) >= quiet || time.Now().After(giveUp) {
			return now, nil
		}
		if err := pause(ctx, quiet/20); err != nil {
			return 0, fmt.Errorf("wait for memory to settle: %w", err)
		}
	}
}

// holdSockets gives each socket a slot of its own.
func holdSockets(ctx context.Context, base string, first, n int) (func() error, error) {
	conns, alive := make([]*websocket.Conn, n), make([]context.Context, n)
	err := parallel(n, func(i int) (err error) {
		if conns[i], err = dialProvider(ctx, providerURL(base, fmt.Sprintf("idle-%d", first+i))); err == nil {
			alive[i] = conns[i].CloseRead(ctx)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("hold provider sockets: %w", err)
	}
	return func() error {
		return parallel(n, func(i int) error {
			if alive[i].Err() != nil {
				return errors.New("the broker closed an idle provider socket")
			}
			return conns[i].CloseNow()
		})
	}, nil
}

// holdSessions closes the connections over which it opened the sessions: a
// session outlives them, and keep-alive is a cost of the HTTP server.
func holdSessions(ctx context.Context, base string, _, n int) (func() error, error) {
	client := newClient(heldBefore)
	sessions, err := openSessions(ctx, client, clientURL(base), n)
	if err != nil {
		return nil, err
	}
	client.CloseIdleConnections()
	return func() error { return closeSessions(ctx, sessions) }, nil
}
