package mcpbroker

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Stop says goodbye to everybody and ends the broker: no new connections, no new
// requests; calls in flight, whatever transport they came by, may finish for 5 s or
// until ctx ends; then sessions are closed and providers are told with 1001 (spec 01
// 5.12). It takes 9 s at most. It is idempotent, and fine before Start.
func (b *Broker) Stop(ctx context.Context) error {
	b.mu.Lock()
	run, stop := b.run, b.state == started
	b.state = stopped
	b.mu.Unlock() // Addr and URL answer while the broker stops
	switch {
	case run == nil:
		return nil
	case !stop:
		<-run.stopped
		return nil
	}
	defer close(run.stopped)
	return run.stop(ctx)
}

// How long a stop waits: for the calls in flight, for the goodbyes behind them, and
// from its beginning for the upstreams, which is less than the command line waits.
const (
	drainTimeout     = 5 * time.Second
	goodbyeTimeout   = 2 * time.Second
	upstreamsTimeout = 9 * time.Second
)

// stop ends the clients first: until all have their answers, or drainTimeout is
// over, providers and upstreams are there to give them.
func (run *running) stop(ctx context.Context) error {
	anyway := context.WithoutCancel(ctx)
	upstreams, cancel := context.WithTimeout(anyway, upstreamsTimeout)
	defer cancel()
	closing, giveUp := context.WithCancel(anyway)
	defer giveUp()
	closed := make(chan error, 1)
	go func() { closed <- run.server.Shutdown(closing) }() // takes no new connections from here on
	<-run.serving

	err := run.endSessions(ctx)

	goodbye, cancel := context.WithTimeout(anyway, goodbyeTimeout)
	defer cancel()
	err = errors.Join(err, together(
		func() error { run.stdio.Stop(); return nil },
		func() error { run.wsclients.Stop(goodbye); return nil },
		func() error { _ = run.providers.Stop(goodbye); return nil }, // who does not answer the close frame is cut
		func() error { _ = run.loopbacks.Stop(goodbye); return nil },
		func() error { return run.stopUpstreams(upstreams) },
		func() error {
			defer context.AfterFunc(goodbye, giveUp)()
			return run.cut(<-closed)
		},
	))
	err = errors.Join(err, run.unreserve(anyway), run.sys.StopAndWait(anyway, run.registry.PID()))
	run.sys.Close()
	return err
}

// cut is told how the shutdown of the HTTP server ended: where it was given up, the
// connections that have not become idle are closed.
func (run *running) cut(err error) error {
	if errors.Is(err, context.Canceled) {
		return run.server.Close()
	}
	return err
}

// endSessions lets the calls in flight finish, on all transports within one bound.
func (run *running) endSessions(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	end := func(server interface{ EndSessions(context.Context) error }) func() error {
		return func() error { return server.EndSessions(ctx) }
	}
	return together(end(run.streamable), end(run.sse), end(run.wsclients), end(run.stdio))
}

// stopUpstreams ends all upstreams in parallel, each within its grace.
func (run *running) stopUpstreams(ctx context.Context) error {
	return errors.Join(run.upstreams.Stop(ctx), run.children.Stop(ctx), run.remotes.Stop(ctx))
}

// together runs all of them at once and returns when the last has.
func together(jobs ...func() error) error {
	errs := make([]error, len(jobs))
	var all sync.WaitGroup
	for i, job := range jobs {
		all.Go(func() { errs[i] = job() })
	}
	all.Wait()
	return errors.Join(errs...)
}
