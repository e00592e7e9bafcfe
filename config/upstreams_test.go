package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// spec 03 4 and 5.3, and what they add: templates, aliases, health checks.
func TestUpstreams(t *testing.T) {
	toml := `
[upstreamTemplates.site]
command = "npx"
args = ["-y", "site-server"]
env = { SITE = "${SITE}", MODE = "ro" }
healthCheck = { tool = "list_sites", timeoutSeconds = 3 }
retry = { attempts = 2 }
[[stdioUpstreams]]
name = "north"
template = "site"
vars = { SITE = "n" }
env = { MODE = "rw" }
healthCheck = { args = { limit = 1 } }
[[stdioUpstreams]]
name = "south"
template = "site"
aggregate = true
cwd = "work"
envFile = "/etc/south.env"
inheritEnv = ["NPM_TOKEN"]
isolation = "session"
graceMs = 100
maxRestarts = 3
[[mcpServers]]
name = "docs"
url = "https://docs.example/mcp"
headers = { Authorization = "Bearer ${TOKEN}" }
aggregate = false
[[mcpServers]]
name = "crm"
url = "https://${HOST}/sse"
transport = "SSE"
oauth = { tokenUrl = "https://id.example/token", clientId = "b", clientSecret = "${file:secret}", scopes = ["a", "b"] }
[[mcpbBundles]]
name = "signed"
path = "b.mcpb"
publicKey = "/keys/k.pem"
userConfig = { dirs = ["a", "b"], n = 3, f = 1.5, on = true }
inheritEnv = true
`
	json := `{"upstreamTemplates": {"site": {"command": "npx", "args": ["-y", "site-server"], "env": {"SITE": "${SITE}", "MODE": "ro"},
"healthCheck": {"tool": "list_sites", "timeoutSeconds": 3}, "retry": {"attempts": 2}}},
"stdioUpstreams": [
{"name": "north", "template": "site", "vars": {"SITE": "n"}, "env": {"MODE": "rw"}, "healthCheck": {"args": {"limit": 1}}},
{"name": "south", "template": "site", "aggregate": true, "cwd": "work", "envFile": "/etc/south.env", "inheritEnv": ["NPM_TOKEN"],
"isolation": "session", "graceMs": 100, "maxRestarts": 3}],
"mcpServers": [{"name": "docs", "url": "https://docs.example/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}, "aggregate": false},
{"name": "crm", "url": "https://${HOST}/sse", "transport": "sse",
"oauth": {"tokenUrl": "https://id.example/token", "clientId": "b", "clientSecret": "${file:secret}", "scopes": ["a", "b"]}}],
"mcpbBundles": [{"name": "signed", "path": "b.mcpb", "publicKey": "/keys/k.pem",
"userConfig": {"dirs": ["a", "b"], "n": 3, "f": 1.5, "on": true}, "inheritEnv": true}]}`

	site := defaultUpstream(false)
	site.Template, site.Retry.Attempts = "site", 2
	site.HealthCheck.Tool, site.HealthCheck.TimeoutSeconds = "list_sites", 3
	north, south := site, site
	north.Name, north.Vars, north.HealthCheck.Args = "north", map[string]string{"SITE": "n"}, `{"limit":1}`
	south.Name, south.Aggregate, south.MaxRestarts = "south", true, 3
	remote, signed := defaultUpstream(false), defaultUpstream(true)
	remote.Name, signed.Name = "docs", "signed"
	crm := defaultUpstream(true)
	crm.Name = "crm"
	args := []string{"-y", "site-server"}
	want := Default()
	want.Warnings = []string{`[mcp-broker] stdioUpstreams entry "south": isolation = "session" does not reach through _all, whose clients share one process of it; leave aggregate out to keep them apart`}
	want.StdioUpstreams = []StdioUpstream{
		{Upstream: north, Command: "npx", Args: args, Env: map[string]string{"SITE": "${SITE}", "MODE": "rw"}, Isolation: "shared", GraceMs: 5000},
		{Upstream: south, Command: "npx", Args: args, Env: map[string]string{"SITE": "${SITE}", "MODE": "ro"}, EnvFile: "/etc/south.env",
			Cwd: "d/work", InheritEnv: Inherit{Names: []string{"NPM_TOKEN"}}, Isolation: "session", GraceMs: 100},
	}
	want.MCPServers = []MCPServer{
		{Upstream: remote, URL: "https://docs.example/mcp", Headers: map[string]string{"Authorization": "Bearer ${TOKEN}"}},
		{Upstream: crm, URL: "https://${HOST}/sse", Transport: "sse",
			OAuth: OAuthClient{"https://id.example/token", "b", "${file:secret}", []string{"a", "b"}}},
	}
	want.MCPBBundles = []MCPBBundle{{
		Upstream: signed, Path: "d/b.mcpb", PublicKey: "/keys/k.pem",
		UserConfig: map[string]any{"dirs": []any{"a", "b"}, "n": int64(3), "f": 1.5, "on": true},
		InheritEnv: Inherit{All: true}, GraceMs: 5000,
	}}
	for name, text := range map[string]string{"d/x.toml": toml, "d/x.json": json} {
		want.File = name
		got, err := Parse(name, []byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got, want := strings.Join(got.Upstreams(), " "), "north south docs crm signed"; got != want {
			t.Errorf("%s: Upstreams = %s", name, got)
		}
	}
}

// spec 06, spec 07 row 88: what is not set stops the attempt and is named; it is
// never an empty string.
func TestExpand(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"secret": "s3cret\r\n", "big": strings.Repeat("x", maxSecretBytes+1)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	v := Variables{
		Vars: map[string]string{"SITE": "n", "EMPTY": "", "LOOP": "${SITE}"},
		Lookup: func(name string) (string, bool) {
			value, ok := map[string]string{"SITE": "environment", "HOME": "/h", "BLANK": ""}[name]
			return value, ok
		},
		Dir: dir,
	}
	for in, want := range map[string]string{
		"":                           "",
		"plain $HOME {x}":            "plain $HOME {x}",
		"${SITE}-${HOME}":            "n-/h",
		"${EMPTY}|${BLANK}":          "|",
		"${NONE:-d}${EMPTY:-e}":      "de",
		"${NONE:-}":                  "",
		"${NONE:-a:-b}":              "a:-b",
		"${LOOP}":                    "${SITE}",
		"$${SITE} ${SITE}":           "${SITE} n",
		"Bearer ${file:secret}":      "Bearer s3cret",
		"${file:" + dir + "/secret}": "s3cret",
	} {
		if got, err := Expand(in, v); err != nil || got != want {
			t.Errorf("Expand(%q) = %q, %v, want %q", in, got, err, want)
		}
	}
	for in, want := range map[string]string{
		"a ${NONE}":      "unresolved: the variable NONE is not set",
		"${}":            "unresolved: the variable  is not set",
		"${SITE":         `unresolved: "${" without "}"`,
		"${file:absent}": "unresolved: the file " + dir + "/absent cannot be read: no such file or directory",
		"${file:big}":    "unresolved: the file " + dir + "/big cannot be read: it is larger than 1048576 bytes",
		"${file:.}":      "unresolved: the file " + dir + " cannot be read: it is not a regular file",
	} {
		if _, err := Expand(in, v); err == nil || err.Error() != want || !errors.Is(err, ErrUnresolved) {
			t.Errorf("Expand(%q): %v, want %s", in, err, want)
		}
	}
	if got, err := Expand("${A:-x}", Variables{}); err != nil || got != "x" {
		t.Errorf("without any variables: %q, %v", got, err)
	}
}

func FuzzExpand(f *testing.F) {
	for _, s := range []string{"", "${A}", "$${A}", "${A:-${B}}", "${file:x}", "$", "${", "a${A}b${A:-}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v := Variables{Lookup: func(name string) (string, bool) { return "<" + name + ">", !strings.HasPrefix(name, "N") }, Dir: t.TempDir()}
		got, err := Expand(s, v)
		switch {
		case err != nil && !errors.Is(err, ErrUnresolved):
			t.Errorf("Expand(%q): %v", s, err)
		case err == nil && !strings.Contains(s, "${") && got != s:
			t.Errorf("Expand(%q) = %q", s, got)
		}
	})
}

// Spec 06: a slot that has a healthCheck is checked, whatever the table says. The check of
// an upstream stands in its own entry.
func TestWatched(t *testing.T) {
	c, err := Parse("broker.toml", []byte(`
[slots.tool.healthCheck]
tool = "read_status"
[slots.times]
healthCheck = { intervalSeconds = 5 }
[slots.empty.healthCheck]
[slots.none]
initialize = "relay"
[slots.upstream.healthCheck]
intervalSeconds = 5
[slots.disabled.healthCheck]
intervalSeconds = 5
[[stdioUpstreams]]
name = "upstream"
command = "x"
[[stdioUpstreams]]
name = "disabled"
command = "x"
enabled = false
`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"disabled", "empty", "times", "tool"}, c.Watched()); diff != "" {
		t.Errorf("watched (-want +got):\n%s", diff)
	}
	want := HealthCheck{Args: "{}", IntervalSeconds: 5, TimeoutSeconds: 10, FailureThreshold: 3}
	if got := c.Slot("times").HealthCheck; got != want {
		t.Errorf("a check with times alone: %+v, want %+v", got, want)
	}
	for text, want := range map[string]bool{"": false, "[slots.a]\ninitialize = \"relay\"": false, "[slots.a.healthCheck]": true, "[slots.a]\nhealthCheck.timeoutSeconds = 3": true} {
		if c, err := Parse("broker.toml", []byte(text)); err != nil || c.Watches() != want {
			t.Errorf("%q: watches %t, %v", text, !want, err)
		}
	}
}
