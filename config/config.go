package config

import (
	"crypto/sha256"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Values of [Config.Protocol].
const (
	ProtocolAuto  = "auto"
	ProtocolHTTP  = "http"
	ProtocolHTTPS = "https"
)

// Values of [Config.ProviderTakeover] (spec 01 2.5).
const (
	TakeoverReject   = "reject"
	TakeoverLiveness = "liveness"
	TakeoverAlways   = "always"
)

// Values of [Slot.Initialize].
const (
	InitializeCache = "cache"
	InitializeRelay = "relay"
)

// Values of [Config.ServerRequests].
const (
	ServerRequestsRefuse = "refuse"
	ServerRequestsRelay  = "relay"
)

// Values of [Config.LogFormat].
const (
	LogText = "text"
	LogJSON = "json"
)

// Milliseconds is a length of time as configuration files spell it.
type Milliseconds int64

// Duration converts m for use with package time.
func (m Milliseconds) Duration() time.Duration { return time.Duration(m) * time.Millisecond }

// Config is the whole configuration of a broker. The zero value is not usable:
// start from [Default] or [Load]. Keys, types, defaults and environment
// variables are those of spec 03 5.3.
type Config struct {
	// Port to listen on, 0 to 65535; 0 takes any free port. Default 3000.
	Port int `toml:"port" json:"port"`
	// Host is the interface to bind, a name or an address without brackets.
	// Default 127.0.0.1.
	Host string `toml:"host" json:"host"`
	// Protocol is auto, http or https; auto means https when both TLS files
	// are given. http ignores them. Default auto.
	Protocol string `toml:"protocol" json:"protocol"`
	TLS      TLS    `toml:"tls" json:"tls"`
	// BrokerName is what broker_info reports as the broker's name.
	// Default mcp-broker.
	BrokerName string `toml:"brokerName" json:"brokerName"`

	// ProviderHeartbeatIntervalMs is the time between two pings to a provider
	// socket, 0 for none. Default 30000.
	ProviderHeartbeatIntervalMs Milliseconds `toml:"providerHeartbeatIntervalMs" json:"providerHeartbeatIntervalMs"`
	// ProviderRequestTimeoutMs is the deadline for one answer of a provider,
	// 0 for none. Default 60000.
	ProviderRequestTimeoutMs Milliseconds `toml:"providerRequestTimeoutMs" json:"providerRequestTimeoutMs"`
	// ProviderTakeover is reject, liveness or always. Default liveness.
	ProviderTakeover string `toml:"providerTakeover" json:"providerTakeover"`

	// AllowedOrigins says which Origin headers pass. The zero value allows none.
	AllowedOrigins Origins `toml:"allowedOrigins" json:"allowedOrigins"`
	// CheckUpgradeOrigins applies AllowedOrigins to WebSocket upgrades too, of
	// clients and of providers (F-44). Default false.
	CheckUpgradeOrigins bool  `toml:"checkUpgradeOrigins" json:"checkUpgradeOrigins"`
	Paths               Paths `toml:"paths" json:"paths"`

	// Locale chooses the language of what _broker says, such as "fr" or
	// "zh-CN". Default none, which is English.
	Locale string `toml:"locale" json:"locale,omitempty"`
	// AggregateResources lets _all serve resources beside tools and prompts,
	// under URIs that name their slot. Default false.
	AggregateResources bool `toml:"aggregateResources" json:"aggregateResources"`

	// ServerRequests says what becomes of requests that providers open: refuse
	// answers them with -32601, relay puts them to the one client whose call is
	// in flight. Default refuse.
	ServerRequests        string                `toml:"serverRequests" json:"serverRequests"`
	ResourceSubscriptions ResourceSubscriptions `toml:"resourceSubscriptions" json:"resourceSubscriptions"`

	// StdioProvider is the slot that standard input and output are bridged to,
	// empty for none (spec 03 5.8). Default none.
	StdioProvider string `toml:"stdioProvider" json:"stdioProvider,omitempty"`
	// StdioExitOnEnd ends the process when the host of the bridge closes
	// standard input (F-37). Default true.
	StdioExitOnEnd bool `toml:"stdioExitOnEnd" json:"stdioExitOnEnd"`

	WWW WWW `toml:"www" json:"www"`

	// SessionIdleTimeoutMs ends a session without traffic, 0 for never.
	// Default 0.
	SessionIdleTimeoutMs Milliseconds `toml:"sessionIdleTimeoutMs" json:"sessionIdleTimeoutMs"`
	// MaxSessionsPerSlot bounds the client sessions of one slot. Default 10000.
	MaxSessionsPerSlot int `toml:"maxSessionsPerSlot" json:"maxSessionsPerSlot"`
	// MaxSlots bounds the slots kept in memory. Default 10000.
	MaxSlots int `toml:"maxSlots" json:"maxSlots"`
	// MaxMessageBytes bounds one message in either direction, 1024 to 1 GiB.
	// Default 4194304.
	MaxMessageBytes int `toml:"maxMessageBytes" json:"maxMessageBytes"`
	// MaxPendingPerSlot bounds the unanswered requests of one slot.
	// Default 1024.
	MaxPendingPerSlot int `toml:"maxPendingPerSlot" json:"maxPendingPerSlot"`
	// MaxPendingPerSession bounds the unanswered requests of one session.
	// Default 64.
	MaxPendingPerSession int `toml:"maxPendingPerSession" json:"maxPendingPerSession"`
	// KeepAliveIntervalMs is the time between two comments on an idle event
	// stream, 0 for none. Default 15000.
	KeepAliveIntervalMs Milliseconds `toml:"keepAliveIntervalMs" json:"keepAliveIntervalMs"`
	// StrictHTTP checks Content-Type and Accept of Streamable HTTP requests
	// (F-30). Default false.
	StrictHTTP bool `toml:"strictHttp" json:"strictHttp"`
	// LogFormat is text or json. Default text.
	LogFormat string `toml:"logFormat" json:"logFormat"`

	// StdioUpstreams, MCPServers and MCPBBundles are the providers the broker
	// starts or dials itself.
	StdioUpstreams []StdioUpstream `toml:"stdioUpstreams" json:"stdioUpstreams,omitempty"`
	MCPServers     []MCPServer     `toml:"mcpServers" json:"mcpServers,omitempty"`
	MCPBBundles    []MCPBBundle    `toml:"mcpbBundles" json:"mcpbBundles,omitempty"`

	// Disabled names the slots of entries with enabled = false, which [Load] and
	// Validate take out of the lists.
	Disabled []string `toml:"-" json:"-"`

	// Slots holds what single slots do differently, by slot name. Read it
	// through [Config.Slot], which fills in the broker-wide values.
	Slots map[string]Slot `toml:"slots" json:"slots,omitempty"`

	// File is the configuration file that was read, empty without one.
	File string `toml:"-" json:"-"`
	// Digest is the SHA-256 of what [Load] read from File, zero without a file.
	Digest [sha256.Size]byte `toml:"-" json:"-"`
	// Blank: File sets nothing. It is empty, or all comments.
	Blank bool `toml:"-" json:"-"`
	// Warnings are whole lines to show to the operator. They never stop the
	// broker.
	Warnings []string `toml:"-" json:"-"`
}

// Paths are the URL paths of the listener (spec 01 0.4 and 1.6). All begin
// with a slash; MCP, SSE and Messages are one segment long.
type Paths struct {
	Provider  string `toml:"provider" json:"provider"`
	Providers string `toml:"providers" json:"providers"`
	Client    string `toml:"client" json:"client"`
	MCP       string `toml:"mcp" json:"mcp"`
	SSE       string `toml:"sse" json:"sse"`
	Messages  string `toml:"messages" json:"messages"`
	// Healthz, Readyz and LLMs are served beside the slots, empty for not at all.
	Healthz string `toml:"healthz" json:"healthz"`
	Readyz  string `toml:"readyz" json:"readyz"`
	LLMs    string `toml:"llms" json:"llms"`
}

// ResourceSubscriptions bounds resources/subscribe (spec 01 4.5).
type ResourceSubscriptions struct {
	// MaxSubscriptionsPerClient bounds the URIs one session watches. Default 64.
	MaxSubscriptionsPerClient int `toml:"maxSubscriptionsPerClient" json:"maxSubscriptionsPerClient"`
	// MaxSubscriptionsPerSlot bounds those of all sessions of a slot together.
	// Default 1024.
	MaxSubscriptionsPerSlot int `toml:"maxSubscriptionsPerSlot" json:"maxSubscriptionsPerSlot"`
	// MaxResourceURILength bounds one URI, in UTF-16 units. Default 2048.
	MaxResourceURILength int `toml:"maxResourceUriLength" json:"maxResourceUriLength"`
}

// Slot holds settings of one slot. A zero field means the broker-wide value.
type Slot struct {
	// Initialize is cache (the first client's initialize is relayed, later
	// clients get the same answer) or relay. Default cache.
	Initialize string `toml:"initialize" json:"initialize,omitempty"`
	// MaxMessageBytes replaces [Config.MaxMessageBytes] for this slot.
	MaxMessageBytes int `toml:"maxMessageBytes" json:"maxMessageBytes,omitempty"`
	// ServerRequests replaces [Config.ServerRequests] for this slot.
	ServerRequests string `toml:"serverRequests" json:"serverRequests,omitempty"`
	// HealthCheck watches whatever provider holds the slot. The zero value does
	// not. The slot of an upstream has its check there.
	HealthCheck HealthCheck `toml:"healthCheck" json:"healthCheck,omitzero"`
}

// Default returns the configuration in effect without file, environment and
// flags.
func Default() *Config {
	return &Config{
		Port:                        3000,
		Host:                        "127.0.0.1",
		Protocol:                    ProtocolAuto,
		BrokerName:                  "mcp-broker",
		ProviderHeartbeatIntervalMs: 30_000,
		ProviderRequestTimeoutMs:    60_000,
		ProviderTakeover:            TakeoverLiveness,
		Paths: Paths{
			Provider:  "/provider",
			Providers: "/providers",
			Client:    "/",
			MCP:       "/mcp",
			SSE:       "/sse",
			Messages:  "/messages",
			Healthz:   "/healthz",
			Readyz:    "/readyz",
			LLMs:      "/llms.txt",
		},
		ServerRequests: ServerRequestsRefuse,
		ResourceSubscriptions: ResourceSubscriptions{
			MaxSubscriptionsPerClient: 64,
			MaxSubscriptionsPerSlot:   1024,
			MaxResourceURILength:      2048,
		},
		StdioExitOnEnd:       true,
		MaxSessionsPerSlot:   10_000,
		MaxSlots:             10_000,
		MaxMessageBytes:      4 << 20,
		MaxPendingPerSlot:    1024,
		MaxPendingPerSession: 64,
		KeepAliveIntervalMs:  15_000,
		LogFormat:            LogText,
	}
}

// Scheme is the URL scheme of the listener, http or https.
func (c *Config) Scheme() string {
	if c.Protocol == ProtocolHTTPS || c.Protocol == ProtocolAuto && c.TLS.Cert != "" && c.TLS.Key != "" {
		return ProtocolHTTPS
	}
	return ProtocolHTTP
}

// BoundWide reports a listener that others than this machine can reach.
func (c *Config) BoundWide() bool {
	if addr, err := netip.ParseAddr(c.Host); err == nil {
		return !addr.Unmap().IsLoopback()
	}
	return !strings.EqualFold(c.Host, "localhost")
}

// Slot returns the settings in effect for the slot called name.
func (c *Config) Slot(name string) Slot {
	s := c.Slots[name]
	if s.Initialize == "" {
		s.Initialize = InitializeCache
	}
	if s.MaxMessageBytes == 0 {
		s.MaxMessageBytes = c.MaxMessageBytes
	}
	if s.ServerRequests == "" {
		s.ServerRequests = c.ServerRequests
	}
	s.HealthCheck = s.HealthCheck.withDefaults()
	return s
}

// Relays reports whether requests of a slot's provider are put to clients. Those
// of _all may be asked by any slot that relays.
func (c *Config) Relays(name string) bool {
	if c.Slot(name).ServerRequests == ServerRequestsRelay {
		return true
	}
	if name != "_all" {
		return false
	}
	for _, s := range c.Slots {
		if s.ServerRequests == ServerRequestsRelay {
			return true
		}
	}
	return false
}

// Validate reports everything wrong with a configuration made by hand, as an
// [*Error]. [Load] has validated what it returns.
func (c *Config) Validate() error {
	c.dropDisabled()
	var found []Problem
	add := func(name string, err error) {
		if err != nil {
			found = append(found, Problem{Message: label(name) + " " + err.Error()})
		}
	}
	for _, k := range c.keys() {
		add(k.name, k.value.check())
	}
	for _, name := range sortedNames(c.Slots) {
		s := c.Slots[name]
		full := "slots." + strconv.Quote(name)
		add(full, checkSlotName(name))
		for _, k := range s.keys() {
			add(full+"."+k.name, k.value.check())
		}
	}
	for _, f := range c.conflicts() {
		add(f.names[0], f.err)
	}
	found = append(found, c.upstreamProblems()...)
	return asError(found)
}
