package config

import (
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// spec 03 5.1: flags over environment over file over defaults; an empty
// variable counts as unset (10.2 item 27).
func TestPrecedence(t *testing.T) {
	const fromFile = "port = 1\nhost = 'file'\nproviderTakeover = 'reject'\nproviderHeartbeatIntervalMs = 7\n" +
		"allowedOrigins = ['https://file']\n[paths]\nprovider = '/file'\n"
	tests := []struct {
		name  string
		env   []string
		flags []Flag
		edit  func(*Config)
	}{
		{"file", nil, nil, func(*Config) {}},
		{"empty variables", []string{"MCP_BROKER_PORT=", "MCP_BROKER_PROTOCOL=", "MCP_BROKER_PROVIDER_PATH= ", "MCP_BROKER_STDIO_PROVIDER="}, nil,
			func(*Config) {}},
		{"blank origin list", []string{"MCP_BROKER_ALLOWED_ORIGINS= , ,"}, nil, func(*Config) {}},
		{"variables", []string{"MCP_BROKER_PORT= 2 ", "MCP_BROKER_PROVIDER_TAKEOVER=Always", "MCP_BROKER_PROVIDER_HEARTBEAT_MS=1500.9",
			"MCP_BROKER_ALLOWED_ORIGINS= https://a , ,https://b:8443", "MCP_BROKER_STRICT_HTTP=1", "MCP_BROKER_MCP_PATH=rpc"}, nil,
			func(c *Config) {
				c.Port, c.ProviderTakeover, c.ProviderHeartbeatIntervalMs = 2, "always", 1500
				c.AllowedOrigins = Origins{List: []string{"https://a", "https://b:8443"}}
				c.StrictHTTP, c.Paths.MCP = true, "/rpc"
			}},
		{"what came later", []string{"MCP_BROKER_SERVER_REQUESTS= Relay", "MCP_BROKER_MAX_SUBSCRIPTIONS_PER_CLIENT=1",
			"MCP_BROKER_MAX_SUBSCRIPTIONS_PER_SLOT=2", "MCP_BROKER_MAX_RESOURCE_URI_LENGTH=3", "MCP_BROKER_STDIO_PROVIDER=_all",
			"MCP_BROKER_STDIO_EXIT_ON_END=0", "MCP_BROKER_OPEN=1"}, nil,
			func(c *Config) {
				c.ServerRequests, c.ResourceSubscriptions = "relay", ResourceSubscriptions{1, 2, 3}
				c.StdioProvider, c.StdioExitOnEnd, c.WWW.Open = "_all", false, OpenRoot
			}},
		{"flag", []string{"MCP_BROKER_PORT=2"}, []Flag{{"--port", "port", "3"}}, func(c *Config) { c.Port = 3 }},
		{"flag over bad variable", []string{"MCP_BROKER_PORT=two"}, []Flag{{"--port", "port", "3"}}, func(c *Config) { c.Port = 3 }},
		{"last of a repeated variable", []string{"MCP_BROKER_HOST=a", "MCP_BROKER_HOST=b"}, nil, func(c *Config) { c.Host = "b" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			write(t, "broker.toml", fromFile)
			want := Default()
			want.File, want.Port, want.Host, want.ProviderTakeover, want.ProviderHeartbeatIntervalMs = "broker.toml", 1, "file", "reject", 7
			want.AllowedOrigins = Origins{List: []string{"https://file"}}
			want.Paths.Provider, want.Digest = "/file", sha256.Sum256([]byte(fromFile))
			tt.edit(want)
			got := mustLoad(t, Source{Environ: tt.env, Flags: tt.flags})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// spec 01 8.3, spec 03 5.3: some variables are ignored with a warning, the others refuse
// the start and are named.
func TestBadVariables(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "broker.toml", "providerRequestTimeoutMs = 5\n")
	lenient := []string{
		"MCP_BROKER_PROVIDER_HEARTBEAT_MS=-1",
		"MCP_BROKER_PROVIDER_REQUEST_TIMEOUT_MS=soon",
		"MCP_BROKER_PROVIDER_TAKEOVER=perhaps",
		"MCP_BROKER_MAX_SUBSCRIPTIONS_PER_CLIENT=0",
		"MCP_BROKER_MAX_SUBSCRIPTIONS_PER_SLOT=1.5",
		"MCP_BROKER_MAX_RESOURCE_URI_LENGTH=long",
		"MCP_BROKER_PROT=1",
		"OTEL_EXPORTER_OTLP_HEADERS=a=b",
		"UNRELATED=1",
	}
	cfg := mustLoad(t, Source{Environ: lenient})
	wantWarnings := []string{
		`[mcp-broker] Ignoring MCP_BROKER_PROVIDER_HEARTBEAT_MS="-1": it must be an integer from 0 to 31622400000 ms; using 30000`,
		`[mcp-broker] Ignoring MCP_BROKER_PROVIDER_REQUEST_TIMEOUT_MS="soon": it must be an integer from 0 to 31622400000 ms; using 5`,
		`[mcp-broker] Ignoring MCP_BROKER_PROVIDER_TAKEOVER="perhaps": it must be reject, liveness or always; using liveness`,
		`[mcp-broker] Ignoring MCP_BROKER_MAX_SUBSCRIPTIONS_PER_CLIENT="0": it must be an integer from 1 to 2147483647; using 64`,
		`[mcp-broker] Ignoring MCP_BROKER_MAX_SUBSCRIPTIONS_PER_SLOT="1.5": it must be an integer from 1 to 2147483647; using 1024`,
		`[mcp-broker] Ignoring MCP_BROKER_MAX_RESOURCE_URI_LENGTH="long": it must be an integer from 1 to 2147483647; using 2048`,
		`[mcp-broker] Ignoring OTEL_EXPORTER_OTLP_HEADERS: telemetry is not available yet`,
		`[mcp-broker] Ignoring MCP_BROKER_PROT: no such variable (did you mean MCP_BROKER_PORT?)`,
	}
	if diff := cmp.Diff(wantWarnings, cfg.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}

	write(t, "broker.toml", "prt = 5\n")
	_, err := Load(Source{
		Environ: []string{
			"MCP_BROKER_PORT=3000abc", "MCP_BROKER_PROTOCOL=https", "MCP_BROKER_MAX_SLOTS=NaN",
			"MCP_BROKER_STRICT_HTTP=maybe", "MCP_BROKER_MCP_PATH=/a/b", "MCP_BROKER_ISSUER=x",
			"MCP_BROKER_STDIO_EXIT_ON_END=perhaps", "MCP_BROKER_SERVER_REQUESTS=ask",
		},
		Flags: []Flag{{"--log-format", "logFormat", "xml"}, {"--colour", "colour", "red"}},
	})
	want := `broker.toml:1:1: unknown key "prt" (did you mean "port"?)
"protocol" is https, which needs both "tls.cert" and "tls.key" (set by MCP_BROKER_PROTOCOL)
MCP_BROKER_PORT="3000abc" must be an integer from 0 to 65535
MCP_BROKER_MCP_PATH="/a/b" must be one path segment, such as "/mcp"
MCP_BROKER_SERVER_REQUESTS="ask" must be refuse or relay
MCP_BROKER_STDIO_EXIT_ON_END="perhaps" must be true or false
MCP_BROKER_MAX_SLOTS="NaN" must be an integer from 1 to 2147483647
MCP_BROKER_STRICT_HTTP="maybe" must be true or false
MCP_BROKER_ISSUER is set, but "auth.issuer" is not available yet
--log-format "xml" must be text or json
--colour sets the unknown key "colour"`
	if err == nil {
		t.Fatal("Load accepted it")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestServiceLinkIsExplained(t *testing.T) {
	t.Chdir(t.TempDir())
	_, err := Load(Source{Environ: []string{"MCP_BROKER_PORT=tcp://10.0.0.1:3000"}})
	if err == nil || !strings.Contains(err.Error(), "enableServiceLinks: false") {
		t.Errorf("Load = %v", err)
	}
}

func TestEveryUnavailableVariableRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, key := range unavailableEnv() {
		_, err := Load(Source{Environ: []string{name + "=1"}})
		want := name + ` is set, but "` + key + `" is not available yet`
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// spec 03 5.3: the names an operator knows.
func TestEnvVars(t *testing.T) {
	got := EnvVars()
	wantFirst := []EnvVar{
		{Name: "MCP_BROKER_CONFIG", Type: "file", Doc: "configuration file to read when no argument names one"},
		{"MCP_BROKER_PORT", "port", "integer from 0 to 65535", "3000", "port to listen on; 0 takes any free port"},
	}
	if diff := cmp.Diff(wantFirst, got[:2]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var names []string
	for _, v := range got {
		names = append(names, strings.TrimPrefix(v.Name, "MCP_BROKER_"))
		if v.Type == "" || v.Doc == "" {
			t.Errorf("%s lacks type or text: %+v", v.Name, v)
		}
	}
	want := "CONFIG PORT HOST PROTOCOL TLS_CERT TLS_KEY PROVIDER_HEARTBEAT_MS PROVIDER_REQUEST_TIMEOUT_MS PROVIDER_TAKEOVER " +
		"ALLOWED_ORIGINS CHECK_UPGRADE_ORIGINS PROVIDER_PATH PROVIDERS_PATH CLIENT_PATH MCP_PATH SSE_PATH MESSAGES_PATH HEALTHZ_PATH READYZ_PATH LLMS_PATH LOCALE AGGREGATE_RESOURCES " +
		"SERVER_REQUESTS MAX_SUBSCRIPTIONS_PER_CLIENT MAX_SUBSCRIPTIONS_PER_SLOT MAX_RESOURCE_URI_LENGTH STDIO_PROVIDER " +
		"STDIO_EXIT_ON_END OPEN WWW_DIR BUNDLE_DIR SESSION_IDLE_TIMEOUT_MS " +
		"MAX_SESSIONS_PER_SLOT MAX_SLOTS MAX_MESSAGE_BYTES MAX_PENDING_PER_SLOT MAX_PENDING_PER_SESSION KEEP_ALIVE_INTERVAL_MS " +
		"STRICT_HTTP LOG_FORMAT"
	if diff := cmp.Diff(want, strings.Join(names, " ")); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}
