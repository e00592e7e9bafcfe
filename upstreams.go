package mcpbroker

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/upstreams"
	"mcpbroker/config"
	"mcpbroker/ingress/remote"
)

// upstreamsOf turns the configuration into the set the broker keeps.
func (run *running) upstreamsOf(c *config.Config, limit func(slot string) int) []upstreams.Config {
	l := launcher{run: run, dir: baseDir(c), limit: limit}
	var set []upstreams.Config
	for _, s := range c.StdioUpstreams {
		u := upstreamOf(&s.Upstream, "stdio", maskedCommand(s.Command, s.Args), s)
		u.Grace, u.Isolated = s.GraceMs.Duration(), s.Isolation == config.IsolationSession
		u.Start = l.later(func(ctx context.Context, owner msg.Ref, gen uint64) (func(), error) { return l.child(s, owner, gen) })
		set = append(set, u)
	}
	for _, s := range c.MCPServers {
		transport := s.Transport
		if transport == "" {
			transport = remote.TransportOf(s.URL)
		}
		u := upstreamOf(&s.Upstream, transport, maskedURL(s.URL), s)
		u.Grace = remoteGrace
		u.Start = l.later(func(ctx context.Context, owner msg.Ref, gen uint64) (func(), error) {
			return l.remote(ctx, s, owner, gen)
		})
		set = append(set, u)
	}
	for _, b := range c.MCPBBundles {
		u := upstreamOf(&b.Upstream, "bundle", b.Path, b)
		u.Grace = b.GraceMs.Duration()
		u.Start = l.later(func(ctx context.Context, owner msg.Ref, gen uint64) (func(), error) {
			return l.bundle(ctx, b, owner, gen)
		})
		set = append(set, u)
	}
	for _, name := range c.Watched() {
		set = append(set, watchOf(name, c.Slot(name).HealthCheck))
	}
	return set
}

// remoteGrace is how long a remote server has to take leave.
const remoteGrace = 5 * time.Second

// watchOf watches the provider of a slot that comes by itself.
func watchOf(slot string, check config.HealthCheck) upstreams.Config {
	return upstreams.Config{
		Slot: slot, Kind: msg.KindProvider, Watch: true, Health: healthOf(check),
		Fingerprint: "watch",
	}
}

func healthOf(h config.HealthCheck) upstreams.Health {
	return upstreams.Health{
		Off: h.Off(), Tool: h.Tool, Args: h.Args, Interval: seconds(h.IntervalSeconds),
		Timeout: seconds(h.TimeoutSeconds), Threshold: h.FailureThreshold,
	}
}

// baseDir is what relative paths of the configuration start from, absolute.
func baseDir(c *config.Config) string {
	dir, err := filepath.Abs(filepath.Dir(c.File))
	if err != nil {
		return filepath.Dir(c.File)
	}
	return dir
}

// upstreamOf is what all sorts of upstreams have in common. entry is the whole
// of its settings: a reload compares it.
func upstreamOf(u *config.Upstream, kind, target string, entry any) upstreams.Config {
	return upstreams.Config{
		Slot: u.Name, Kind: kind, Target: target, Aggregate: u.Aggregate,
		Schedule: upstreams.Schedule{
			First: seconds(u.Retry.IntervalSeconds), Quick: u.Retry.Attempts, Slow: seconds(u.Retry.SlowIntervalSeconds),
		},
		MinUptime: seconds(u.MinUptimeSeconds), StartTimeout: seconds(u.StartTimeoutSeconds), MaxRestarts: u.MaxRestarts,
		Health:      healthOf(u.HealthCheck),
		Fingerprint: kind + fingerprint(entry),
	}
}

// tuned are the settings of an entry that are changed without another connection.
var tuned = [...]string{"HealthCheck", "Retry", "MinUptimeSeconds", "StartTimeoutSeconds", "MaxRestarts"}

// fingerprint is the rest of its settings.
func fingerprint(entry any) string {
	text, err := json.Marshal(entry)
	if err != nil {
		return fmt.Sprintf("%+v", entry)
	}
	var settings map[string]json.RawMessage
	if err := json.Unmarshal(text, &settings); err != nil {
		return string(text)
	}
	for _, name := range tuned {
		delete(settings, name)
	}
	text, _ = json.Marshal(settings)
	return string(text)
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// Upstreams describes the providers the broker starts or dials, by slot.
func (b *Broker) Upstreams(ctx context.Context) ([]msg.Instance, error) {
	run, err := b.serving()
	if err != nil {
		return nil, err
	}
	return run.upstreams.Instances(ctx)
}

// RestartUpstream makes the connection of one upstream again, whatever its
// schedule. It does not wait for the outcome.
func (b *Broker) RestartUpstream(ctx context.Context, slot string) error {
	run, err := b.serving()
	if err != nil {
		return err
	}
	return run.upstreams.Restart(ctx, slot)
}
