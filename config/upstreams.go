package config

import (
	"cmp"
	"slices"
)

// Values of [Upstream.Isolation].
const (
	IsolationShared  = "shared"  // one connection for all clients
	IsolationSession = "session" // one child process for each client session
)

// Upstream is what every provider the broker starts or dials itself has in
// common. Texts may hold ${NAME}, ${NAME:-default} and ${file:PATH}; they are
// expanded each time the upstream is started, see [Expand].
type Upstream struct {
	// Name is the slot.
	Name string
	// Aggregate joins _all. Default false for stdioUpstreams, true for the others.
	Aggregate bool
	// Disabled entries are not started. Default false; the key is enabled = true.
	Disabled bool
	// Template is an entry of upstreamTemplates to start from.
	Template string
	// Vars are names for ${NAME} of this entry alone; they win over the
	// environment.
	Vars map[string]string
	// MaxRestarts gives the upstream up after this many failed attempts in a
	// row, 0 for never. Default 0.
	MaxRestarts int
	// MinUptimeSeconds is how long an upstream has to stay up to have proved
	// itself. Default 60.
	MinUptimeSeconds int
	// StartTimeoutSeconds is the time from its start to its first answer.
	// Default 60.
	StartTimeoutSeconds int
	Retry               Retry
	HealthCheck         HealthCheck
}

// Retry is when a failed start is repeated: Attempts times after IntervalSeconds
// each, then every SlowIntervalSeconds for ever.
type Retry struct {
	IntervalSeconds     int // default 30
	Attempts            int // default 5
	SlowIntervalSeconds int // default 300
}

// HealthCheck is how a provider is watched. Without a Tool the check is tools/list.
type HealthCheck struct {
	Tool             string
	Args             string // JSON object; empty is {}
	IntervalSeconds  int    // default 30; see Off
	TimeoutSeconds   int    // default 10
	FailureThreshold int    // default 3
}

// Off reports that an upstream is not checked: intervalSeconds is 0. The zero value is
// the default, and not off.
func (h HealthCheck) Off() bool { return h.IntervalSeconds == 0 && h.TimeoutSeconds != 0 }

func (h HealthCheck) withDefaults() HealthCheck {
	h.Args = cmp.Or(h.Args, "{}")
	h.IntervalSeconds = cmp.Or(h.IntervalSeconds, 30)
	h.TimeoutSeconds = cmp.Or(h.TimeoutSeconds, 10)
	h.FailureThreshold = cmp.Or(h.FailureThreshold, 3)
	return h
}

// StdioUpstream is a child process that speaks MCP on its standard input and
// output.
type StdioUpstream struct {
	Upstream
	Command string
	Args    []string
	Env     map[string]string
	// EnvFile holds more variables, NAME=value a line; Env wins.
	EnvFile string
	// Cwd is the working directory. Default the broker's.
	Cwd string
	// InheritEnv passes variables of the broker's environment on. Default: what a
	// program needs to run (PATH, HOME, LANG and the like) and nothing else.
	InheritEnv Inherit
	// Isolation is shared or session. Default shared.
	Isolation string
	// GraceMs is the time from TERM to KILL. Default 5000.
	GraceMs Milliseconds
}

// Inherit says which variables of the broker a child gets beside the usual ones.
// Those of the broker itself (MCP_BROKER_*) are never passed on.
type Inherit struct {
	All   bool
	Names []string
}

// MCPServer is a remote MCP server.
type MCPServer struct {
	Upstream
	URL string
	// Transport is streamable-http, sse or websocket; empty is decided from the
	// URL (spec 03 4.2).
	Transport string
	Headers   map[string]string
	OAuth     OAuthClient
}

// OAuthClient gets tokens for a remote server with the client-credentials grant.
// The zero value gets none.
type OAuthClient struct {
	TokenURL     string
	ClientID     string
	ClientSecret string
	Scopes       []string
}

// IsZero reports that no token is to be got.
func (o *OAuthClient) IsZero() bool { return o.TokenURL == "" }

// MCPBBundle is a signed bundle that is unpacked and started.
type MCPBBundle struct {
	Upstream
	// Path, PublicKey and Signature are files. Without a Signature, Path with
	// ".sig" behind it is one if it exists, and the one embedded in the bundle
	// counts too.
	Path, PublicKey, Signature string
	// UserConfig answers the questions of the bundle's manifest: a string, a
	// number, a boolean or a list of them for each.
	UserConfig map[string]any
	Env        map[string]string
	InheritEnv Inherit
	GraceMs    Milliseconds
}

// Transports of [MCPServer.Transport].
var transports = []string{"streamable-http", "sse", "websocket"}

func defaultUpstream(aggregate bool) Upstream {
	return Upstream{
		Aggregate: aggregate, MinUptimeSeconds: 60, StartTimeoutSeconds: 60,
		Retry:       Retry{IntervalSeconds: 30, Attempts: 5, SlowIntervalSeconds: 300},
		HealthCheck: HealthCheck{IntervalSeconds: 30, TimeoutSeconds: 10, FailureThreshold: 3},
	}
}

// keys binds the settings all upstreams share.
func (u *Upstream) keys() []key {
	const year = 366 * 24 * 3600
	return append([]key{
		{name: "name", value: text(&u.Name, checkUpstreamName), doc: "the slot"},
		{name: "aggregate", value: boolean(&u.Aggregate), doc: "join _all"},
		{name: "enabled", value: &enabledValue{&u.Disabled}, doc: "false leaves the entry out, as if it were not there"},
		{name: "template", value: text(&u.Template, checkAny), doc: "entry of upstreamTemplates to start from"},
		{name: "vars", value: &mapValue{&u.Vars, checkVar}, doc: "names for ${NAME} of this entry alone"},
		{name: "maxRestarts", value: integer(&u.MaxRestarts, 0, maxCount), doc: "failed attempts in a row before it is given up; 0 is never"},
		{name: "minUptimeSeconds", value: optional(integer(&u.MinUptimeSeconds, 1, year), u.MinUptimeSeconds == 0), doc: "up this long, an upstream has proved itself"},
		{name: "startTimeoutSeconds", value: optional(integer(&u.StartTimeoutSeconds, 1, year), u.StartTimeoutSeconds == 0), doc: "from the start to the first answer"},
		{name: "retry.intervalSeconds", value: optional(integer(&u.Retry.IntervalSeconds, 1, year), u.Retry.IntervalSeconds == 0), doc: "before each of the first attempts"},
		{name: "retry.attempts", value: integer(&u.Retry.Attempts, 0, maxCount), doc: "how many those are"},
		{name: "retry.slowIntervalSeconds", value: optional(integer(&u.Retry.SlowIntervalSeconds, 1, year), u.Retry.SlowIntervalSeconds == 0), doc: "before each later one"},
	}, u.HealthCheck.keys(0)...)
}

// keys binds its settings. The interval is least or more: only the checks of an upstream
// can be switched off.
func (h *HealthCheck) keys(least int64) []key {
	const year = 366 * 24 * 3600
	return []key{
		{name: "healthCheck.tool", value: text(&h.Tool, checkAny), doc: "tool whose call shows that the provider works"},
		{name: "healthCheck.args", value: &jsonValue{&h.Args}, doc: "its arguments"},
		{name: "healthCheck.intervalSeconds", value: optional(integer(&h.IntervalSeconds, least, year), h.IntervalSeconds == 0), doc: "between two checks; 0 is none, for upstreams"},
		{name: "healthCheck.timeoutSeconds", value: optional(integer(&h.TimeoutSeconds, 1, year), h.TimeoutSeconds == 0), doc: "of one check"},
		{name: "healthCheck.failureThreshold", value: optional(integer(&h.FailureThreshold, 1, maxCount), h.FailureThreshold == 0), doc: "failures in a row that make it unhealthy"},
	}
}

func (s *StdioUpstream) keys() []key {
	return append(s.Upstream.keys(),
		key{name: "command", value: text(&s.Command, checkCommand), expands: true, doc: "program, found in the PATH of the child"},
		key{name: "args", value: &listValue{&s.Args}, expands: true, doc: "its arguments"},
		key{name: "env", value: &mapValue{&s.Env, checkVariable}, expands: true, doc: "its environment, beside what it inherits"},
		key{name: "envFile", value: file(&s.EnvFile), doc: "file of more variables, NAME=value a line"},
		key{name: "cwd", value: place(&s.Cwd), expands: true, doc: "its working directory"},
		key{name: "inheritEnv", value: &inheritValue{&s.InheritEnv}, doc: "true, or names of variables of the broker to pass on"},
		key{name: "isolation", value: optional(choice(&s.Isolation, IsolationShared, IsolationSession), s.Isolation == ""), doc: "one child for all clients, or one for each session"},
		key{name: "graceMs", value: millis(&s.GraceMs), doc: "from TERM to KILL"},
	)
}

func (s *MCPServer) keys() []key {
	return append(s.Upstream.keys(),
		key{name: "url", value: text(&s.URL, checkRemoteURL), expands: true, doc: "http, https, ws or wss"},
		key{name: "transport", value: optional(choice(&s.Transport, transports...), s.Transport == ""), doc: "without it decided from the URL, and for streamable-http by what the server answers"},
		key{name: "headers", value: &mapValue{&s.Headers, checkHeader}, expands: true, doc: "sent with every request"},
		key{name: "oauth.tokenUrl", value: optional(text(&s.OAuth.TokenURL, checkRemoteURL), s.OAuth.TokenURL == ""), expands: true, doc: "where tokens are had"},
		key{name: "oauth.clientId", value: optional(text(&s.OAuth.ClientID, checkNotEmpty), s.OAuth.ClientID == ""), expands: true, doc: "the broker's name there"},
		key{name: "oauth.clientSecret", value: optional(text(&s.OAuth.ClientSecret, checkNotEmpty), s.OAuth.ClientSecret == ""), expands: true, doc: "and its secret, as ${NAME} or ${file:PATH}"},
		key{name: "oauth.scopes", value: &listValue{&s.OAuth.Scopes}, expands: true, doc: "scopes to ask for"},
	)
}

func (b *MCPBBundle) keys() []key {
	return append(b.Upstream.keys(),
		key{name: "path", value: file(&b.Path), doc: "the bundle"},
		key{name: "publicKey", value: file(&b.PublicKey), doc: "PEM public key or certificate of its signer"},
		key{name: "signature", value: file(&b.Signature), doc: "detached signature; <path>.sig or the embedded one without it"},
		key{name: "userConfig", value: &anyMapValue{&b.UserConfig}, expands: true, doc: "answers for the questions of its manifest"},
		key{name: "env", value: &mapValue{&b.Env, checkVariable}, expands: true, doc: "environment, beside what the manifest says"},
		key{name: "inheritEnv", value: &inheritValue{&b.InheritEnv}, doc: "true, or names of variables of the broker to pass on"},
		key{name: "graceMs", value: millis(&b.GraceMs), doc: "from TERM to KILL"},
	)
}

// Watches reports whether there is an upstream or a slot with a health check.
func (c *Config) Watches() bool { return len(c.Upstreams()) > 0 || len(c.Watched()) > 0 }

// Watched lists the slots with a health check of their own, sorted. That of an upstream's
// slot stands in its entry, and counts alone.
func (c *Config) Watched() []string {
	upstreams := c.Upstreams()
	return slices.DeleteFunc(sortedNames(c.Slots), func(name string) bool {
		return c.Slots[name].HealthCheck == (HealthCheck{}) || slices.Contains(upstreams, name)
	})
}

// Upstreams lists the slots of all upstreams, in the order of the file.
func (c *Config) Upstreams() []string {
	var slots []string
	for i := range c.StdioUpstreams {
		slots = append(slots, c.StdioUpstreams[i].Name)
	}
	for i := range c.MCPServers {
		slots = append(slots, c.MCPServers[i].Name)
	}
	for i := range c.MCPBBundles {
		slots = append(slots, c.MCPBBundles[i].Name)
	}
	return slices.Clip(slots)
}
