package mcpbroker

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/wire"
	"mcpbroker/reserved/aggregate"
	"mcpbroker/reserved/diagnosis"
	"mcpbroker/reserved/guide"
	"mcpbroker/reserved/introspection"
)

// serveAll starts the server of _all.
func (b *Broker) serveAll(run *running) {
	if b.withoutAggregate {
		return
	}
	run.aggregate = aggregate.Start(run.sys, run.registry, aggregate.Config{
		Version: b.version, Resources: b.config.AggregateResources,
		MaxSessions: b.config.MaxSessionsPerSlot, NextSession: run.nextSession, Trace: rt.FreshTraceparent,
		RequestTimeout: b.config.ProviderRequestTimeoutMs.Duration(),
	})
	run.hold(wire.SlotAggregate, run.aggregate)
}

// introspect starts the server of _broker.
func (b *Broker) introspect(run *running) error {
	if b.withoutIntrospection {
		return nil
	}
	server, err := introspection.Start(run.sys, run.registry, introspection.Config{
		Identity:      b.identify(run),
		Configuration: b.configuration,
		Aggregate:     !b.withoutAggregate,
		Guide:         func(topic string) (string, bool) { return guide.Page(topic, b.guideConfig(run)) },
		Topics:        topics(),
		Diagnose: func(ctx context.Context, slots []msg.SlotInfo, slot string) []byte {
			return diagnosis.Diagnose(b.facts(ctx, run, slots), slot).JSON()
		},
		Instances: run.upstreams.Instances, Restart: run.upstreams.Restart,
		Locale: b.config.Locale, Grammars: b.grammars(),
		MaxSessions:               b.config.MaxSessionsPerSlot,
		MaxPending:                b.config.MaxPendingPerSlot,
		MaxSubscriptionsPerClient: b.config.ResourceSubscriptions.MaxSubscriptionsPerClient,
		MaxSubscriptionsPerSlot:   b.config.ResourceSubscriptions.MaxSubscriptionsPerSlot,
		MaxURILength:              b.config.ResourceSubscriptions.MaxResourceURILength,
	})
	if err != nil {
		return fmt.Errorf("start the slot %s: %w", wire.SlotBroker, err)
	}
	run.introspection = server
	run.announceInstances(b.config.Watches())
	run.hold(wire.SlotBroker, server)
	return nil
}

// announceInstances tells _broker whether there are upstreams to be asked about.
func (run *running) announceInstances(have bool) {
	if run.introspection != nil {
		run.introspection.Send(&introspection.HaveInstances{Have: have})
	}
}

// hold gives a server its slot and lists it as the server describes itself, so
// that whoever asks right after the start is not told that it is away.
func (run *running) hold(slot string, server *rt.Ref) {
	run.registry.Send(&msg.HoldReserved{Slot: slot, Ref: server})
	ctx, cancel := context.WithTimeout(context.Background(), readyPatience)
	defer cancel()
	reply := make(chan msg.SlotInfo, 1)
	server.Send(&msg.DescribeSlot{Slot: slot, Reply: reply})
	// A server that is silent reports itself later.
	if info, err := receive(ctx, reply, "describe "+slot); err == nil {
		run.registry.Send(&msg.SlotChanged{Info: info})
	}
}

func (b *Broker) identify(run *running) introspection.Identity {
	c := b.config
	return introspection.Identity{
		Name: c.BrokerName, Version: b.version, StartedAt: run.since,
		Host: c.Host, Port: run.port(), TLS: c.Scheme() == "https",
		Paths: b.paths(),
	}
}

// paths are those in effect for a slot; the packages that speak of them have the
// same type each, for none of them imports another.
func (b *Broker) paths() introspection.Paths {
	p := b.config.Paths
	return introspection.Paths{
		Provider: p.Provider, Providers: p.Providers, Client: p.Client, MCP: p.MCP, SSE: p.SSE, Messages: p.Messages,
	}
}

func topics() []introspection.Topic {
	var list []introspection.Topic
	for _, t := range guide.Topics() {
		list = append(list, introspection.Topic{Topic: t.Topic, Title: t.Title, Summary: t.Summary})
	}
	return list
}

func (b *Broker) guideConfig(run *running) guide.Config {
	c := b.config
	return guide.Config{
		Name: c.BrokerName, Version: b.version, Scheme: c.Scheme(), Authority: b.authority(run),
		Paths: guide.Paths(b.paths()),
	}
}

// authority is host:port as a client on this machine reaches it.
func (b *Broker) authority(run *running) string {
	return net.JoinHostPort(reachable(b.config.Host), strconv.Itoa(run.port()))
}

func (run *running) port() int {
	if addr, ok := run.listener.Addr().(*net.TCPAddr); ok {
		return addr.Port
	}
	return 0
}

// grammars is the directory of local wording files, beside the configuration
// file; empty when there is none.
func (b *Broker) grammars() string {
	dir := filepath.Join(filepath.Dir(b.config.File), "grammars")
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return dir
}

// facts gathers what the diagnosis judges.
func (b *Broker) facts(ctx context.Context, run *running, slots []msg.SlotInfo) diagnosis.Facts {
	c := b.config
	facts := diagnosis.Facts{
		Now: time.Now(),
		Broker: diagnosis.Broker{
			Name: c.BrokerName, Version: b.version, StartedAt: run.since,
			Host: c.Host, Port: run.port(), Authority: b.authority(run), TLS: c.Scheme() == "https",
			Paths:     diagnosis.Paths(b.paths()),
			BoundWide: c.BoundWide(),
		},
		Aggregate:   run.members(ctx),
		Bridge:      &diagnosis.Bridge{Target: c.StdioProvider},
		Pages:       &diagnosis.Pages{OriginsConfigured: !c.AllowedOrigins.IsZero()},
		HeartbeatMs: int64(c.ProviderHeartbeatIntervalMs), RequestTimeoutMs: int64(c.ProviderRequestTimeoutMs),
		SessionIdleTimeoutMs: int64(c.SessionIdleTimeoutMs),
		Takeover:             c.ProviderTakeover,
		Configuration:        b.configurationFacts(),
		SlowReaders: map[string]diagnosis.SlowReaders{
			"Streamable HTTP": slowReaders(run.streamable.SlowReaders()), "legacy SSE": slowReaders(run.sse.SlowReaders()),
			"WebSocket": slowReaders(run.wsclients.SlowReaders()), "stdio": slowReaders(run.stdio.SlowReaders()),
		},
	}
	if instances, err := run.upstreams.Instances(ctx); err == nil {
		facts.Instances = []msg.Instance{}
		for _, i := range instances {
			if i.Kind == msg.KindProvider {
				facts.Watched = append(facts.Watched, i)
				continue
			}
			facts.Instances = append(facts.Instances, i)
		}
	}
	for _, m := range c.WWW.Mounts {
		facts.Pages.Mounts = append(facts.Pages.Mounts, m.URLPrefix)
	}
	for _, s := range slots {
		facts.Slots = append(facts.Slots, diagnosis.Slot{SlotInfo: s, Reserved: wire.Reserved(s.Name)})
	}
	return facts
}

func slowReaders(r rt.SlowReport) diagnosis.SlowReaders {
	return diagnosis.SlowReaders{Closed: r.Closed, Dropped: r.Dropped, Slot: r.Last.Slot, DroppedAt: r.Last.At}
}

// members asks _all who belongs to it; nil when it does not answer in time.
func (run *running) members(ctx context.Context) *diagnosis.Aggregate {
	if run.aggregate == nil {
		return &diagnosis.Aggregate{}
	}
	reply := make(chan []aggregate.MemberStatus, 1)
	run.aggregate.Send(&aggregate.DescribeMembers{Reply: reply})
	select {
	case members, ok := <-reply:
		if !ok {
			return nil
		}
		a := &diagnosis.Aggregate{Enabled: true}
		for _, m := range members {
			a.Members = append(a.Members, diagnosis.Member{
				Slot: m.Slot, Joined: m.Joined, Joining: m.Joining, Restarting: m.Restarting, Loop: m.Loop, Reason: m.Reason, Since: m.Since,
			})
		}
		return a
	case <-ctx.Done():
		return nil
	}
}

// unreserve stops the reserved servers.
func (run *running) unreserve(ctx context.Context) error {
	for _, server := range []*rt.Ref{run.introspection, run.aggregate} {
		if server == nil {
			continue
		}
		if err := run.sys.StopAndWait(ctx, server.PID()); err != nil {
			return err
		}
	}
	return nil
}
