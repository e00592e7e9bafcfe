package config

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func mustLoad(t *testing.T, src Source) *Config {
	t.Helper()
	cfg, err := Load(src)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return cfg
}

// spec 03 5.1: discovery, with the newer file winning.
func TestDiscovery(t *testing.T) {
	t.Chdir(t.TempDir())
	if diff := cmp.Diff(Default(), mustLoad(t, Source{})); diff != "" {
		t.Fatalf("no file (-default +got):\n%s", diff)
	}
	steps := []struct {
		file string
		port int
	}{
		{"mcp-broker.config.json", 1},
		{".mcp-broker/config.json", 2},
		{"broker.toml", 3},
		{"elsewhere/env.toml", 4},
		{"argument.JSON", 5},
	}
	src := Source{}
	for _, s := range steps {
		text := "port = " + string(rune('0'+s.port))
		if strings.EqualFold(filepath.Ext(s.file), ".json") {
			text = `{"port": ` + string(rune('0'+s.port)) + `}`
		}
		write(t, s.file, text)
		switch s.port {
		case 4:
			src.Environ = []string{"MCP_BROKER_CONFIG=elsewhere/env.toml"}
		case 5:
			src.Path = s.file
		}
		cfg := mustLoad(t, src)
		if cfg.Port != s.port || cfg.File != s.file {
			t.Errorf("after %s: port %d from %q", s.file, cfg.Port, cfg.File)
		}
		var want []string
		if s.port == 1 {
			want = []string{"[mcp-broker] Using legacy config at mcp-broker.config.json; move it to .mcp-broker/config.json"}
		}
		if diff := cmp.Diff(want, cfg.Warnings); diff != "" {
			t.Errorf("after %s: warnings (-want +got):\n%s", s.file, diff)
		}
	}
}

// spec 03 5.1 and 10.2 item 25: never fall back to the defaults.
func TestUnusableFileFailsClosed(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "dir.toml/x", "")
	write(t, "big.toml", "#"+strings.Repeat(" ", MaxFileBytes))
	const named = ". The broker does not start without the security settings this file may hold: fix the file, or name another one."
	tests := []struct {
		name string
		src  Source
		want string
	}{
		{"variable", Source{Environ: []string{"MCP_BROKER_CONFIG=nowhere.toml"}},
			"Cannot use the config file at nowhere.toml: the file designated by MCP_BROKER_CONFIG does not exist" + strings.TrimSuffix(named, ".") + " with MCP_BROKER_CONFIG."},
		{"argument", Source{Path: "nowhere.json"},
			"Cannot use the config file at nowhere.json: the file named on the command line does not exist" + named},
		{"directory", Source{Path: "dir.toml"},
			"Cannot use the config file at dir.toml: it is not a regular file" + named},
		{"size", Source{Path: "big.toml"},
			"Cannot use the config file at big.toml: it is larger than 1048576 bytes" + named},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg, err := Load(tt.src)
			var fileErr *FileError
			if cfg != nil || !errors.As(err, &fileErr) || err.Error() != tt.want {
				t.Errorf("Load = %v, %v\nwant %s", cfg, err, tt.want)
			}
			if missing := strings.Contains(tt.want, "does not exist"); missing != errors.Is(err, fs.ErrNotExist) {
				t.Errorf("errors.Is(ErrNotExist) = %v", !missing)
			}
		})
	}
}

// Who applies a changed file asks what exactly was read, and whether it says anything.
func TestDigestAndBlank(t *testing.T) {
	t.Chdir(t.TempDir())
	for text, blank := range map[string]bool{
		"": true, "\ufeff": true, " \n\t\r\n": true, "# port = 1\n\n# [tls]": true, "port = 1": false, "[www]\n": false,
	} {
		write(t, "x.toml", text)
		cfg := mustLoad(t, Source{Path: "x.toml", Environ: []string{"MCP_BROKER_PORT=2"}})
		if cfg.Blank != blank || cfg.Digest != sha256.Sum256([]byte(text)) {
			t.Errorf("%q: blank %t, digest %x", text, cfg.Blank, cfg.Digest)
		}
	}
	write(t, "x.json", "{ }")
	if cfg := mustLoad(t, Source{Path: "x.json"}); !cfg.Blank {
		t.Error("an empty JSON object is not blank")
	}
	if cfg := mustLoad(t, Source{}); cfg.Blank || cfg.Digest != [sha256.Size]byte{} {
		t.Errorf("no file: blank %t, digest %x", cfg.Blank, cfg.Digest)
	}
}

// A discovered file that cannot be used is no reason to look further.
func TestDiscoveredDirectoryFailsClosed(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "broker.toml/x", "")
	write(t, ".mcp-broker/config.json", "{}")
	var fileErr *FileError
	if _, err := Load(Source{}); !errors.As(err, &fileErr) || fileErr.Path != "broker.toml" {
		t.Errorf("Load = %v", err)
	}
}

// spec 03 5.2: the file's directory for names in the file, the working
// directory for names in variables.
func TestTLSPaths(t *testing.T) {
	t.Chdir(t.TempDir())
	abs, err := filepath.Abs("abs.pem")
	if err != nil {
		t.Fatal(err)
	}
	write(t, "etc/b.toml", "[tls]\ncert = 'tls/cert.pem'\nkey = '"+abs+"'\n")
	cfg := mustLoad(t, Source{Path: "etc/b.toml"})
	if diff := cmp.Diff(TLS{filepath.Join("etc", "tls", "cert.pem"), abs}, cfg.TLS); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
	if cfg.Scheme() != "https" {
		t.Errorf("Scheme() = %s", cfg.Scheme())
	}
	cfg = mustLoad(t, Source{Path: "etc/b.toml", Environ: []string{"MCP_BROKER_TLS_CERT=c.pem", "MCP_BROKER_PROTOCOL=HTTP"}})
	if cfg.TLS.Cert != "c.pem" || cfg.Scheme() != "http" {
		t.Errorf("variable: %+v %s", cfg.TLS, cfg.Scheme())
	}
}

// Everything a file can say, in both languages.
func TestFullFile(t *testing.T) {
	want := Default()
	want.Port, want.Host, want.Protocol, want.BrokerName = 0, "::1", "http", "plant"
	want.TLS = TLS{"c.pem", "k.pem"}
	want.ProviderHeartbeatIntervalMs, want.ProviderRequestTimeoutMs = 0, 30_000
	want.ProviderTakeover = "reject"
	want.AllowedOrigins = Origins{List: []string{"https://a.example", "null"}}
	want.Paths = Paths{"/p", "/ps", "/c", "/rpc", "/events", "/post", "/live", "", "/agents.txt"}
	want.Locale, want.AggregateResources = "fr-CA", true
	want.SessionIdleTimeoutMs, want.KeepAliveIntervalMs = 1000, 0
	want.MaxSessionsPerSlot, want.MaxSlots, want.MaxMessageBytes = 1, 2, 1024
	want.MaxPendingPerSlot, want.MaxPendingPerSession = 3, 4
	want.StrictHTTP, want.LogFormat = true, "json"
	want.ServerRequests = "relay"
	want.ResourceSubscriptions = ResourceSubscriptions{1, 2, 3}
	want.StdioProvider, want.StdioExitOnEnd = "_all", false
	want.WWW = WWW{"/index.html", []Mount{{"/", "site"}, {"/docs/v1", "d"}}}
	want.Slots = map[string]Slot{"pump/1": {Initialize: "relay", MaxMessageBytes: 2048, ServerRequests: "refuse"}, "b": {}}

	toml := `
port = 0
host = "::1"
protocol = "http"
brokerName = "plant"
tls = { cert = "c.pem", key = "k.pem" }
providerHeartbeatIntervalMs = 0
providerRequestTimeoutMs = 30_000
providerTakeover = " Reject "
allowedOrigins = ["https://a.example", "null"]
sessionIdleTimeoutMs = 1000
keepAliveIntervalMs = 0
maxSessionsPerSlot = 1
maxSlots = 2
maxMessageBytes = 1024
maxPendingPerSlot = 3
maxPendingPerSession = 4
strictHttp = true
logFormat = "json"
serverRequests = "Relay"
locale = "fr-CA"
aggregateResources = true
resourceSubscriptions = { maxSubscriptionsPerClient = 1, maxSubscriptionsPerSlot = 2, maxResourceUriLength = 3 }
stdioProvider = "_all"
stdioExitOnEnd = false
[www]
open = " /index.html "
[[www.mounts]]
urlPrefix = "/"
dir = "site"
[[www.mounts]]
urlPrefix = "/docs/v1/"
dir = "./d"
[paths]
provider = "/p"
providers = "/ps"
client = "/c"
mcp = "rpc"
sse = "/events"
messages = "post"
healthz = "live"
readyz = ""
llms = "/agents.txt"
[slots."pump/1"]
initialize = "relay"
maxMessageBytes = 2048
serverRequests = "refuse"
[slots.b]
`
	json := `{"port": 0, "host": "::1", "protocol": "http", "brokerName": "plant",
"tls": {"cert": "c.pem", "key": "k.pem"}, "locale": "fr-CA", "aggregateResources": true, "telemetry": null,
"www": {"open": "/index.html", "mounts": [{"urlPrefix": "/", "dir": "site"}, {"urlPrefix": "/docs/v1", "dir": "d/"}]},
"providerHeartbeatIntervalMs": 0, "providerRequestTimeoutMs": 3e4, "providerTakeover": "REJECT",
"allowedOrigins": ["https://a.example", "null"], "sessionIdleTimeoutMs": 1000.0, "keepAliveIntervalMs": 0,
"maxSessionsPerSlot": 1, "maxSlots": 2, "maxMessageBytes": 1024, "maxPendingPerSlot": 3, "maxPendingPerSession": 4,
"strictHttp": true, "logFormat": "json", "serverRequests": "relay", "stdioProvider": "_all", "stdioExitOnEnd": false,
"resourceSubscriptions": {"maxSubscriptionsPerClient": 1, "maxSubscriptionsPerSlot": 2, "maxResourceUriLength": 3},
"paths": {"provider": "/p", "providers": "/ps", "client": "/c", "mcp": "rpc", "sse": "/events", "messages": "post", "healthz": "/live", "readyz": "", "llms": "agents.txt"},
"slots": {"pump/1": {"initialize": "relay", "maxMessageBytes": 2048, "serverRequests": "refuse"}, "b": {"serverRequests": null}, "c": null}}`
	for name, text := range map[string]string{"x.toml": toml, "x.json": json, "bom.toml": "\ufeff" + toml, "bom.json": "\ufeff" + json} {
		want.File = name
		got, err := Parse(name, []byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if err := got.Validate(); err != nil {
			t.Errorf("%s: Validate: %v", name, err)
		}
	}
}

// null of a key nobody knows is still a typo.
func TestNullOfUnknownKey(t *testing.T) {
	_, err := Parse("x.json", []byte(`{"hots": null}`))
	if want := `x.json:1:2: unknown key "hots" (did you mean "host"?)`; err == nil || err.Error() != want {
		t.Errorf("Parse = %v, want %s", err, want)
	}
}

func TestSlotFallsBackToBroker(t *testing.T) {
	cfg := Default()
	cfg.MaxMessageBytes = 5000
	cfg.Slots = map[string]Slot{"a": {Initialize: "relay"}, "b": {MaxMessageBytes: 1024}}
	cfg.ServerRequests = "relay"
	cfg.Slots["d"] = Slot{ServerRequests: "refuse"}
	for name, want := range map[string]Slot{
		"a": {Initialize: "relay", MaxMessageBytes: 5000, ServerRequests: "relay"},
		"b": {Initialize: "cache", MaxMessageBytes: 1024, ServerRequests: "relay"},
		"c": {Initialize: "cache", MaxMessageBytes: 5000, ServerRequests: "relay"},
		"d": {Initialize: "cache", MaxMessageBytes: 5000, ServerRequests: "refuse"},
	} {
		want.HealthCheck = HealthCheck{Args: "{}", IntervalSeconds: 30, TimeoutSeconds: 10, FailureThreshold: 3}
		if got := cfg.Slot(name); got != want {
			t.Errorf("Slot(%q) = %+v, want %+v", name, got, want)
		}
	}
}

func TestValidateByHand(t *testing.T) {
	cfg := Default()
	cfg.Port = -1
	cfg.MaxSlots = 0
	cfg.Protocol = "https"
	cfg.Paths.MCP = "/a/b"
	cfg.AllowedOrigins = Origins{Pattern: "("}
	cfg.ServerRequests = "ask"
	cfg.ResourceSubscriptions.MaxResourceURILength = 0
	cfg.WWW.Mounts = []Mount{{"/a/", "x"}, {"/a", "y"}}
	cfg.Slots = map[string]Slot{"_broker": {}, "x": {Initialize: "no", ServerRequests: "no"}}
	want := `"port" must be an integer from 0 to 65535, not -1
"allowedOrigins" is not an RE2 expression: missing closing ): ` + "`(`" + `
"paths.mcp" must be one path segment, such as "/mcp"
"serverRequests" must be refuse or relay
"resourceSubscriptions.maxResourceUriLength" must be an integer from 1 to 2147483647, not 0
"www.mounts" has the urlPrefix "/a" twice
"maxSlots" must be an integer from 1 to 2147483647, not 0
slots."_broker" is reserved by the broker and takes no settings
slots."x".initialize must be cache or relay
slots."x".serverRequests must be refuse or relay
"protocol" is https, which needs both "tls.cert" and "tls.key"`
	err := cfg.Validate()
	if err == nil {
		t.Fatal("Validate accepted it")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := Default().Validate(); err != nil {
		t.Errorf("defaults: %v", err)
	}
}
