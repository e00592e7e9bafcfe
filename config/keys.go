package config

import "math"

const (
	maxCount   = math.MaxInt32
	maxMessage = 1 << 30
	maxMillis  = 366 * 24 * 3600 * 1000 // keeps every Duration far from overflow
)

// key describes one setting. The table of keys drives the file decoder, the
// environment, validation and the help text, so that they cannot disagree.
type key struct {
	name  string // dotted, as in the file
	env   string // variable, empty when there is none
	doc   string
	value value
	// lenientEnv keeps the previous value, with a warning, when the variable
	// holds a bad one (spec 01 8.3).
	lenientEnv bool
	// expands: ${NAME} in its texts is going to be expanded.
	expands bool
	// envOnly is a variable that adds to a key of the file: not a key itself.
	envOnly bool
}

// keys binds the table to the fields of c.
func (c *Config) keys() []key {
	return []key{
		{name: "port", env: "MCP_BROKER_PORT", value: port(&c.Port),
			doc: "port to listen on; 0 takes any free port"},
		{name: "host", env: "MCP_BROKER_HOST", value: text(&c.Host, checkHost),
			doc: "interface to bind; 0.0.0.0 exposes the broker to the network"},
		{name: "protocol", env: "MCP_BROKER_PROTOCOL", value: choice(&c.Protocol, ProtocolAuto, ProtocolHTTP, ProtocolHTTPS),
			doc: "auto is https when both TLS files are given; http ignores them"},
		{name: "tls.cert", env: "MCP_BROKER_TLS_CERT", value: file(&c.TLS.Cert),
			doc: "PEM certificate chain"},
		{name: "tls.key", env: "MCP_BROKER_TLS_KEY", value: file(&c.TLS.Key),
			doc: "PEM private key"},
		{name: "brokerName", value: text(&c.BrokerName, checkNotEmpty),
			doc: "name that broker_info reports"},
		{name: "providerHeartbeatIntervalMs", env: "MCP_BROKER_PROVIDER_HEARTBEAT_MS", lenientEnv: true,
			value: millis(&c.ProviderHeartbeatIntervalMs),
			doc:   "ping every provider socket this often and end one that missed a ping; 0 turns it off"},
		{name: "providerRequestTimeoutMs", env: "MCP_BROKER_PROVIDER_REQUEST_TIMEOUT_MS", lenientEnv: true,
			value: millis(&c.ProviderRequestTimeoutMs),
			doc:   "deadline for one answer of a provider; 0 turns it off"},
		{name: "providerTakeover", env: "MCP_BROKER_PROVIDER_TAKEOVER", lenientEnv: true,
			value: choice(&c.ProviderTakeover, TakeoverReject, TakeoverLiveness, TakeoverAlways),
			doc:   "who keeps a slot that a second provider asks for"},
		{name: "allowedOrigins", env: "MCP_BROKER_ALLOWED_ORIGINS", value: &originsValue{&c.AllowedOrigins},
			doc: "browser origins that pass, compared verbatim; none by default"},
		{name: "checkUpgradeOrigins", env: "MCP_BROKER_CHECK_UPGRADE_ORIGINS", value: boolean(&c.CheckUpgradeOrigins),
			doc: "apply allowedOrigins to WebSocket upgrades too"},
		{name: "paths.provider", env: "MCP_BROKER_PROVIDER_PATH", value: text(&c.Paths.Provider, checkPath),
			doc: "prefix of dedicated provider URLs"},
		{name: "paths.providers", env: "MCP_BROKER_PROVIDERS_PATH", value: text(&c.Paths.Providers, checkPath),
			doc: "path of the multiplexed provider URL"},
		{name: "paths.client", env: "MCP_BROKER_CLIENT_PATH", value: text(&c.Paths.Client, checkRoot),
			doc: "prefix of raw WebSocket client URLs"},
		{name: "paths.mcp", env: "MCP_BROKER_MCP_PATH", value: text(&c.Paths.MCP, checkSuffix),
			doc: "suffix of Streamable HTTP URLs, one segment"},
		{name: "paths.sse", env: "MCP_BROKER_SSE_PATH", value: text(&c.Paths.SSE, checkSuffix),
			doc: "suffix of legacy SSE URLs, one segment"},
		{name: "paths.messages", env: "MCP_BROKER_MESSAGES_PATH", value: text(&c.Paths.Messages, checkSuffix),
			doc: "suffix of legacy SSE post URLs, one segment"},
		{name: "paths.healthz", env: "MCP_BROKER_HEALTHZ_PATH", value: text(&c.Paths.Healthz, checkBeside),
			doc: "answers 200 while the process lives; empty turns it off"},
		{name: "paths.readyz", env: "MCP_BROKER_READYZ_PATH", value: text(&c.Paths.Readyz, checkBeside),
			doc: "answers 200 while the broker serves, 503 while it starts or stops; empty turns it off"},
		{name: "paths.llms", env: "MCP_BROKER_LLMS_PATH", value: text(&c.Paths.LLMs, checkBeside),
			doc: "the guide as one text for agents; empty turns it off"},
		{name: "locale", env: "MCP_BROKER_LOCALE", value: text(&c.Locale, checkAny),
			doc: "language of what _broker says, such as fr or zh-CN; English without one"},
		{name: "aggregateResources", env: "MCP_BROKER_AGGREGATE_RESOURCES", value: boolean(&c.AggregateResources),
			doc: "serve resources on _all too, under URIs that name their slot"},
		{name: "serverRequests", env: "MCP_BROKER_SERVER_REQUESTS",
			value: choice(&c.ServerRequests, ServerRequestsRefuse, ServerRequestsRelay),
			doc:   "refuse requests that providers open, or relay them to the client whose call is in flight"},
		{name: "resourceSubscriptions.maxSubscriptionsPerClient", env: "MCP_BROKER_MAX_SUBSCRIPTIONS_PER_CLIENT", lenientEnv: true,
			value: integer(&c.ResourceSubscriptions.MaxSubscriptionsPerClient, 1, maxCount),
			doc:   "resources one session watches"},
		{name: "resourceSubscriptions.maxSubscriptionsPerSlot", env: "MCP_BROKER_MAX_SUBSCRIPTIONS_PER_SLOT", lenientEnv: true,
			value: integer(&c.ResourceSubscriptions.MaxSubscriptionsPerSlot, 1, maxCount),
			doc:   "resources all sessions of one slot watch"},
		{name: "resourceSubscriptions.maxResourceUriLength", env: "MCP_BROKER_MAX_RESOURCE_URI_LENGTH", lenientEnv: true,
			value: integer(&c.ResourceSubscriptions.MaxResourceURILength, 1, maxCount),
			doc:   "UTF-16 units of the URI of one watched resource"},
		{name: "stdioProvider", env: "MCP_BROKER_STDIO_PROVIDER", value: text(&c.StdioProvider, checkAny),
			doc: "bridge standard input and output to this slot, _all for an MCP host"},
		{name: "stdioExitOnEnd", env: "MCP_BROKER_STDIO_EXIT_ON_END", value: boolean(&c.StdioExitOnEnd),
			doc: "stop when the host of the bridge closes standard input"},
		{name: "www.open", env: "MCP_BROKER_OPEN", value: &openValue{&c.WWW.Open},
			doc: "open a mounted page in a browser after the start: true, or a path or URL of this broker"},
		{name: "www.mounts", value: &mountsValue{&c.WWW.Mounts},
			doc: "directories whose files are served"},
		{name: "www.mounts", env: "MCP_BROKER_WWW_DIR", envOnly: true, value: &mountAt{&c.WWW.Mounts, "/"},
			doc: "serve the files of this directory at /"},
		{name: "www.mounts", env: "MCP_BROKER_BUNDLE_DIR", envOnly: true, value: &mountAt{&c.WWW.Mounts, "/bundle"},
			doc: "serve the files of this directory at /bundle"},
		{name: "sessionIdleTimeoutMs", env: "MCP_BROKER_SESSION_IDLE_TIMEOUT_MS", value: millis(&c.SessionIdleTimeoutMs),
			doc: "end a client session without traffic; 0 is never"},
		{name: "maxSessionsPerSlot", env: "MCP_BROKER_MAX_SESSIONS_PER_SLOT", value: integer(&c.MaxSessionsPerSlot, 1, maxCount),
			doc: "client sessions of one slot"},
		{name: "maxSlots", env: "MCP_BROKER_MAX_SLOTS", value: integer(&c.MaxSlots, 1, maxCount),
			doc: "slots kept in memory"},
		{name: "maxMessageBytes", env: "MCP_BROKER_MAX_MESSAGE_BYTES", value: integer(&c.MaxMessageBytes, 1024, maxMessage),
			doc: "bytes of one message in either direction"},
		{name: "maxPendingPerSlot", env: "MCP_BROKER_MAX_PENDING_PER_SLOT", value: integer(&c.MaxPendingPerSlot, 1, maxCount),
			doc: "unanswered requests of one slot"},
		{name: "maxPendingPerSession", env: "MCP_BROKER_MAX_PENDING_PER_SESSION", value: integer(&c.MaxPendingPerSession, 1, maxCount),
			doc: "unanswered requests of one session"},
		{name: "keepAliveIntervalMs", env: "MCP_BROKER_KEEP_ALIVE_INTERVAL_MS", value: millis(&c.KeepAliveIntervalMs),
			doc: "comment on an idle event stream this often; 0 turns it off"},
		{name: "strictHttp", env: "MCP_BROKER_STRICT_HTTP", value: boolean(&c.StrictHTTP),
			doc: "check Content-Type and Accept of Streamable HTTP requests"},
		{name: "logFormat", env: "MCP_BROKER_LOG_FORMAT", value: choice(&c.LogFormat, LogText, LogJSON),
			doc: "lines for people or JSON for machines"},
	}
}

// keys binds the table of one slot. Zero values stand for the broker-wide
// setting, so their checks pass.
func (s *Slot) keys() []key {
	return append([]key{
		{name: "initialize", value: optional(choice(&s.Initialize, InitializeCache, InitializeRelay), s.Initialize == ""),
			doc: "answer later clients from the first one's initialize, or relay each"},
		{name: "maxMessageBytes", value: optional(integer(&s.MaxMessageBytes, 1024, maxMessage), s.MaxMessageBytes == 0),
			doc: "bytes of one message in either direction"},
		{name: "serverRequests",
			value: optional(choice(&s.ServerRequests, ServerRequestsRefuse, ServerRequestsRelay), s.ServerRequests == ""),
			doc:   "refuse requests that the provider opens, or relay them"},
	}, s.HealthCheck.keys(1)...)
}
