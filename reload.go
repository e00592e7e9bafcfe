package mcpbroker

import (
	"context"
	"errors"
	"fmt"

	"mcpbroker/actors/upstreams"
	"mcpbroker/config"
)

// Reloaded is what a new configuration came to. Slots are those of upstreams.
type Reloaded struct {
	Added, Removed, Changed []string
	// Restart names the other settings that differ: they take effect at the next
	// start.
	Restart []string
	// Stopping are slots whose old connection had not ended when the context did. A
	// changed one is started again once it has.
	Stopping []string
}

// Reload makes the upstreams of a running broker those of c. Upstreams whose
// settings are the same go on as if nothing had happened, calls in flight
// included. What has to stop finishes its calls for 5 s at most, is stopped in order,
// and waited for until ctx ends: the changes are in effect then, too, and Stopping
// tells what is left. A configuration that is wrong changes nothing, and neither does a
// Reload that returns an error.
func (b *Broker) Reload(ctx context.Context, c *config.Config) (Reloaded, error) {
	run, err := b.serving()
	if err != nil {
		return Reloaded{}, err
	}
	own := *c // Validate puts values into their usual form
	if err := own.Validate(); err != nil {
		return Reloaded{}, fmt.Errorf("reload the configuration: %w", err)
	}
	changes, err := run.upstreams.Apply(ctx, run.upstreamsOf(&own, b.limit))
	unfinished := new(upstreams.UnfinishedError)
	if err != nil && !errors.As(err, &unfinished) {
		return Reloaded{}, fmt.Errorf("reload the configuration: %w", err)
	}
	run.announceInstances(own.Watches())
	restart := b.config.Differences(&own)
	b.reloads.applied(restart)
	return Reloaded{
		Added: changes.Added, Removed: changes.Removed, Changed: changes.Changed,
		Restart: restart, Stopping: unfinished.Stopping,
	}, nil
}
