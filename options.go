package mcpbroker

import (
	"log/slog"
	"time"

	"mcpbroker/actors/rt"
	"mcpbroker/config"
)

// Option changes one setting of a broker. Options are named after the
// configuration keys and applied in order.
type Option func(*settings)

type settings struct {
	config  *config.Config
	log     *slog.Logger
	version string
	tap     rt.Tap

	withoutIntrospection bool
	withoutAggregate     bool
}

// WithConfig replaces the whole configuration; options after it change it.
func WithConfig(c *config.Config) Option {
	return func(s *settings) {
		own := *c
		s.config = &own
	}
}

// WithLogger sets where the broker logs. Default: nowhere.
func WithLogger(log *slog.Logger) Option { return func(s *settings) { s.log = log } }

// WithVersion sets the version the broker reports. Default "dev".
func WithVersion(version string) Option { return func(s *settings) { s.version = version } }

// WithTap shows every message to tap before its actor handles it, on the actor's
// goroutine. It is for tracing and for making an actor fail: a panic in tap is a
// panic in the actor.
func WithTap(tap func(actor string, message any)) Option {
	return func(s *settings) {
		s.tap = func(self *rt.PID, message any) { tap(self.Id, message) }
	}
}

// WithIntrospection serves the slot _broker, through which a broker explains
// itself. Default true.
func WithIntrospection(serve bool) Option {
	return func(s *settings) { s.withoutIntrospection = !serve }
}

// WithAggregate serves the slot _all, which unites the providers that joined it.
// Default true.
func WithAggregate(serve bool) Option {
	return func(s *settings) { s.withoutAggregate = !serve }
}

func set(change func(*config.Config)) Option {
	return func(s *settings) { change(s.config) }
}

// WithHost sets the interface to bind. Default 127.0.0.1.
func WithHost(host string) Option { return set(func(c *config.Config) { c.Host = host }) }

// WithPort sets the port, 0 for any free one. Default 3000.
func WithPort(port int) Option { return set(func(c *config.Config) { c.Port = port }) }

// WithTLS serves HTTPS and WSS with these PEM files.
func WithTLS(cert, key string) Option {
	return set(func(c *config.Config) { c.TLS = config.TLS{Cert: cert, Key: key} })
}

// WithPaths sets the URL paths.
func WithPaths(paths config.Paths) Option { return set(func(c *config.Config) { c.Paths = paths }) }

// WithProviderHeartbeatInterval sets the time between pings to provider sockets,
// 0 for none. Default 30 s.
func WithProviderHeartbeatInterval(d time.Duration) Option {
	return set(func(c *config.Config) { c.ProviderHeartbeatIntervalMs = config.Milliseconds(d.Milliseconds()) })
}

// WithProviderRequestTimeout sets the deadline of one answer, 0 for none.
// Default 60 s.
func WithProviderRequestTimeout(d time.Duration) Option {
	return set(func(c *config.Config) { c.ProviderRequestTimeoutMs = config.Milliseconds(d.Milliseconds()) })
}

// WithProviderTakeover sets the rule for a claim on a held slot: reject,
// liveness or always. Default liveness.
func WithProviderTakeover(mode string) Option {
	return set(func(c *config.Config) { c.ProviderTakeover = mode })
}

// WithAllowedOrigins sets the Origin headers that pass. Default: none.
func WithAllowedOrigins(origins ...string) Option {
	return set(func(c *config.Config) { c.AllowedOrigins = config.Origins{List: origins} })
}

// WithCheckUpgradeOrigins applies the allowed origins to WebSocket upgrades too,
// of clients and of providers. Default false.
func WithCheckUpgradeOrigins(check bool) Option {
	return set(func(c *config.Config) { c.CheckUpgradeOrigins = check })
}

// WithServerRequests says what becomes of requests that providers open: refuse,
// or relay to the client whose call is in flight. Default refuse.
func WithServerRequests(mode string) Option {
	return set(func(c *config.Config) { c.ServerRequests = mode })
}

// WithResourceSubscriptions bounds resources/subscribe. Default 64 for a client,
// 1024 for a slot, and 2048 UTF-16 units for a URI.
func WithResourceSubscriptions(limits config.ResourceSubscriptions) Option {
	return set(func(c *config.Config) { c.ResourceSubscriptions = limits })
}

// WithMounts serves the files of directories. One that does not exist when the
// broker starts is skipped with a warning. Default: none.
func WithMounts(mounts ...config.Mount) Option {
	return set(func(c *config.Config) { c.WWW.Mounts = mounts })
}

// WithSessionIdleTimeout ends client sessions without traffic, 0 for never.
// Default 0.
func WithSessionIdleTimeout(d time.Duration) Option {
	return set(func(c *config.Config) { c.SessionIdleTimeoutMs = config.Milliseconds(d.Milliseconds()) })
}

// WithMaxMessageBytes bounds one message in either direction. Default 4 MiB.
func WithMaxMessageBytes(n int) Option {
	return set(func(c *config.Config) { c.MaxMessageBytes = n })
}

// WithSlot sets what one slot does differently.
func WithSlot(name string, slot config.Slot) Option {
	return set(func(c *config.Config) {
		slots := map[string]config.Slot{name: slot}
		for n, s := range c.Slots {
			if n != name {
				slots[n] = s
			}
		}
		c.Slots = slots
	})
}
