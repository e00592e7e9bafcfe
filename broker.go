package mcpbroker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/registry"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/slot"
	"mcpbroker/actors/upstreams"
	"mcpbroker/actors/wire"
	"mcpbroker/config"
	"mcpbroker/egress/sse"
	"mcpbroker/egress/stdio"
	"mcpbroker/egress/streamable"
	"mcpbroker/egress/wsclient"
	"mcpbroker/ingress"
	"mcpbroker/ingress/loopback"
	"mcpbroker/ingress/remote"
	"mcpbroker/ingress/socket"
	children "mcpbroker/ingress/stdio"
	"mcpbroker/provider"
)

// Broker is one broker: a listener, its slots, and everybody connected to them.
// Its methods may be called from any goroutine.
type Broker struct {
	settings
	done    chan error
	reloads reloads

	mu    sync.Mutex
	state lifecycle
	run   *running
}

type lifecycle uint8

const (
	fresh lifecycle = iota
	started
	stopped
)

// running is what exists between Start and Stop.
type running struct {
	since       time.Time
	nextSession func() uint64

	sys        *rt.System
	registry   *rt.Ref
	listener   net.Listener
	server     *http.Server
	serving    chan struct{}
	stopped    chan struct{} // closed at the end of the stop
	providers  *ingress.Providers
	loopbacks  *loopback.Loopbacks
	streamable *streamable.Server
	sse        *sse.Server
	wsclients  *wsclient.Server
	stdio      *stdio.Server

	children  *children.Children
	remotes   *remote.Dialer
	upstreams *upstreams.Set

	// The servers of the reserved slots, which the registry got with
	// HoldReserved; nil when one is off.
	aggregate     *rt.Ref
	introspection *rt.Ref
}

// New checks the settings and returns a broker that is not listening yet.
func New(opts ...Option) (*Broker, error) {
	s := settings{config: config.Default(), version: "dev"}
	for _, opt := range opts {
		opt(&s)
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if err := s.config.Validate(); err != nil {
		return nil, fmt.Errorf("configure the broker: %w", err)
	}
	return &Broker{settings: s, done: make(chan error, 1)}, nil
}

// ErrStarted is returned by a second Start.
var ErrStarted = errors.New("the broker has been started before")

// Start listens and serves until Stop. It returns once clients and providers can
// connect; an address that cannot be had is a *ListenError.
func (b *Broker) Start(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != fresh {
		return ErrStarted
	}
	listener, err := b.listen(ctx)
	if err != nil {
		return err
	}
	run := b.assemble(listener)
	go b.serve(run)
	b.serveAll(run) // before anybody could join it: hosts ask for it first
	if _, err := run.upstreams.Apply(ctx, run.upstreamsOf(b.config, b.limit)); err != nil {
		return errors.Join(err, run.stop(ctx))
	}
	if err := b.introspect(run); err != nil {
		// A broker that cannot explain itself serves all other slots.
		b.log.Error(fmt.Sprintf("[broker] embedded broker server failed to start: %v", err))
	}
	b.run = run
	b.state = started
	return nil
}

func (b *Broker) serve(run *running) {
	defer close(run.serving)
	if err := run.server.Serve(run.listener); !errors.Is(err, http.ErrServerClosed) {
		b.log.Error(fmt.Sprintf("[broker] http/websocket server error: %v", err))
		b.done <- fmt.Errorf("serve: %w", err)
	}
}

// assemble wires the actors, the provider side and the client side together.
func (b *Broker) assemble(listener net.Listener) *running {
	c := b.config
	sys := rt.NewSystem(b.log, b.tap)
	var ids, sessions atomic.Uint64
	relays := func(name string) bool { return c.Relays(name) }
	identity := b.identity()
	slots := func(name string) slot.Config {
		return slot.Config{
			RequestTimeout:    c.ProviderRequestTimeoutMs.Duration(),
			HeartbeatInterval: c.ProviderHeartbeatIntervalMs.Duration(),
			Takeover:          slot.Takeover(c.ProviderTakeover),
			RelayInitialize:   c.Slot(name).Initialize == config.InitializeRelay,
			RelayRequests:     relays(name),
			MaxPending:        c.MaxPendingPerSlot,
			MaxSessions:       c.MaxSessionsPerSlot,

			MaxSubscriptionsPerClient: c.ResourceSubscriptions.MaxSubscriptionsPerClient,
			MaxSubscriptionsPerSlot:   c.ResourceSubscriptions.MaxSubscriptionsPerSlot,
			MaxURILength:              c.ResourceSubscriptions.MaxResourceURILength,

			Identity: identity,
			NextID:   func() uint64 { return ids.Add(1) },
		}
	}
	reg := registry.Start(sys, registry.Config{MaxSlots: c.MaxSlots}, slots)
	limit := b.limit
	nextSession := func() uint64 { return sessions.Add(1) }
	run := &running{
		since: time.Now(), nextSession: nextSession,
		sys: sys, registry: reg, listener: listener, serving: make(chan struct{}), stopped: make(chan struct{}),
		providers: ingress.NewProviders(sys, reg, socket.Config{
			Heartbeat: c.ProviderHeartbeatIntervalMs.Duration(),
			Provider:  c.Paths.Provider, Providers: c.Paths.Providers,
		}, limit),
		loopbacks: loopback.New(sys, reg, limit),
		streamable: streamable.New(sys, reg, streamable.Config{
			Origins: c.AllowedOrigins, Limit: limit, Strict: c.StrictHTTP,
			KeepAlive:   c.KeepAliveIntervalMs.Duration(),
			MaxPending:  c.MaxPendingPerSession,
			IdleTimeout: c.SessionIdleTimeoutMs.Duration(),
			Relays:      relays,
			NextSession: nextSession,
			Trace:       rt.FreshTraceparent,
		}),
		sse: sse.New(sys, reg, sse.Config{
			Origins: c.AllowedOrigins, Limit: limit,
			Messages:    strings.Trim(c.Paths.Messages, "/"),
			KeepAlive:   c.KeepAliveIntervalMs.Duration(),
			MaxPending:  c.MaxPendingPerSession,
			Relays:      relays,
			NextSession: nextSession,
			Trace:       rt.FreshTraceparent,
		}),
		wsclients: wsclient.New(sys, reg, wsclient.Config{
			Limit: limit, KeepAlive: c.KeepAliveIntervalMs.Duration(),
			MaxPending:  c.MaxPendingPerSession,
			Relays:      relays,
			NextSession: nextSession,
			Trace:       rt.FreshTraceparent,
		}),
		stdio: stdio.New(sys, reg, stdio.Config{
			Limit: limit, Relays: relays,
			MaxPending:  c.MaxPendingPerSession,
			NextSession: nextSession,
			Trace:       rt.FreshTraceparent,
		}),
	}
	run.children = children.New(sys)
	run.remotes = remote.New(sys, remote.Options{UserAgent: "mcpbroker/" + b.version})
	run.upstreams = upstreams.Start(sys, reg, identity, nextSession, slots)
	run.server = b.httpServer(run)
	return run
}

func (b *Broker) limit(slot string) int { return b.config.Slot(slot).MaxMessageBytes }

// serving returns what runs between Start and Stop.
func (b *Broker) serving() (*running, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != started {
		return nil, rt.ErrStopped
	}
	return b.run, nil
}

// identity is the clientInfo of an initialize of the broker's own.
func (b *Broker) identity() string {
	info := wire.AppendString([]byte(`{"name":`), b.config.BrokerName)
	info = wire.AppendString(append(info, `,"version":`...), b.version)
	return string(append(info, '}'))
}

// Done delivers the error that ended the server while it was running.
func (b *Broker) Done() <-chan error { return b.done }

// Addr is the address the broker listens on, nil before Start.
func (b *Broker) Addr() net.Addr {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.run == nil {
		return nil
	}
	return b.run.listener.Addr()
}

// AttachLoopback implements provider.Attacher: a provider in this process holds
// the slot.
func (b *Broker) AttachLoopback(slot string, aggregate *bool, peer provider.Peer) (provider.Port, error) {
	b.mu.Lock()
	run, state := b.run, b.state
	b.mu.Unlock()
	if state != started {
		return nil, rt.ErrStopped
	}
	ctx, cancel := context.WithTimeout(context.Background(), goodbyeTimeout)
	defer cancel()
	port, err := run.loopbacks.Attach(ctx, slot, aggregate != nil && *aggregate, peer)
	if err != nil {
		return nil, err
	}
	return port, nil
}

// Slots lists the slots in the order they were created, with the state each last
// reported.
func (b *Broker) Slots(ctx context.Context) ([]msg.SlotInfo, error) {
	reply := make(chan []msg.SlotInfo, 1)
	if err := b.ask(&msg.ListInventory{Reply: reply}); err != nil {
		return nil, err
	}
	return receive(ctx, reply, "list the slots")
}

// ErrUnknownSlot is returned for a slot nobody has referred to.
var ErrUnknownSlot = errors.New("no such slot")

// Slot describes one slot as it is now.
func (b *Broker) Slot(ctx context.Context, name string) (msg.SlotInfo, error) {
	reply := make(chan msg.SlotInfo, 1)
	if err := b.ask(&msg.DescribeSlot{Slot: name, Reply: reply}); err != nil {
		return msg.SlotInfo{}, err
	}
	return receive(ctx, reply, fmt.Sprintf("describe slot %q", name))
}

func (b *Broker) ask(question any) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != started {
		return rt.ErrStopped
	}
	b.run.registry.Send(question)
	return nil
}

func receive[T any](ctx context.Context, reply <-chan T, what string) (T, error) {
	select {
	case value, ok := <-reply:
		if !ok {
			return value, fmt.Errorf("%s: %w", what, ErrUnknownSlot)
		}
		return value, nil
	case <-ctx.Done():
		var zero T
		return zero, fmt.Errorf("%s: %w", what, ctx.Err())
	}
}
