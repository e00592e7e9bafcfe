package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDifferences(t *testing.T) {
	a := Default()
	b := Default()
	b.StdioUpstreams = []StdioUpstream{{Upstream: Upstream{Name: "x"}, Command: "x"}}
	b.File = "other.toml"
	if got := a.Differences(b); len(got) != 0 {
		t.Errorf("upstreams and the name of the file count as %v", got)
	}
	b.Port, b.Paths.MCP = 1, "/rpc"
	b.WWW.Mounts = []Mount{{"/", "site"}}
	b.AllowedOrigins = Origins{List: []string{"https://a.example"}}
	a.Slots = map[string]Slot{"gone": {MaxMessageBytes: 1024}, "same": {MaxMessageBytes: 1024}, "other": {Initialize: "relay"},
		"unwatched": {HealthCheck: HealthCheck{Tool: "status"}}, "empty": {}}
	b.Slots = map[string]Slot{"new": {ServerRequests: "relay"}, "same": {MaxMessageBytes: 1024}, "other": {},
		"watched": {Initialize: "cache", HealthCheck: HealthCheck{Tool: "status"}}}
	want := []string{"port", "allowedOrigins", "paths.mcp", "www.mounts", "slots.gone", "slots.new", "slots.other"}
	if diff := cmp.Diff(want, a.Differences(b)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Upstreams made by hand: zero values are the defaults, what is wrong is named.
func TestValidateUpstreams(t *testing.T) {
	c := Default()
	c.StdioUpstreams = []StdioUpstream{{Upstream: Upstream{Name: "x"}, Command: "x"}}
	c.MCPServers = []MCPServer{{Upstream: Upstream{Name: "y"}, URL: "https://y.example/mcp"}}
	c.MCPBBundles = []MCPBBundle{{Upstream: Upstream{Name: "z"}, Path: "z.mcpb", PublicKey: "k.pem"}}
	if err := c.Validate(); err != nil {
		t.Fatalf("Validate: %v", err)
	}
	c.StdioUpstreams[0].Isolation = "none"
	c.MCPServers[0].Name = "x"
	c.MCPBBundles[0].PublicKey = ""
	c.StdioUpstreams[0].Args = []string{"-y", "${}"}
	c.StdioUpstreams[0].Env = map[string]string{"A=B": "x"}
	want := `[[stdioUpstreams]] "x": "args" has "${}", which names no variable
[[stdioUpstreams]] "x": "env" has the name "A=B", which no variable can have
[[stdioUpstreams]] "x": "isolation" must be shared or session
[[mcpServers]] names the slot "x", which another upstream has
[[mcpbBundles]] needs "publicKey"`
	if err := c.Validate(); err == nil || err.Error() != want {
		t.Errorf("Validate: %v, want\n%s", err, want)
	}
}
