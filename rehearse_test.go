package mcpbroker_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbroker"
	"mcpbroker/config"
)

// A rehearsal finds what a start would find, and names all that it would not; what the
// command line makes of it is tested there.
func TestRehearse(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"server", "notes.mcpb", "key.pem"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	const bundles = "ingress/bundle/testdata"
	c := config.Default()
	c.StdioUpstreams = []config.StdioUpstream{
		{Upstream: config.Upstream{Name: "path"}, Command: "./server", Cwd: dir},
		{Upstream: config.Upstream{Name: "file"}, Command: filepath.Join(dir, "server"), Cwd: filepath.Join(dir, "key.pem")},
		{Upstream: config.Upstream{Name: "off", Disabled: true}, Command: "nosuch"},
	}
	c.MCPServers = []config.MCPServer{
		{Upstream: config.Upstream{Name: "up", Vars: map[string]string{"AT": l.Addr().String()}}, URL: "http://${AT}/sse"},
		{Upstream: config.Upstream{Name: "odd", Vars: map[string]string{"AT": "://"}}, URL: "${AT}"},
		{Upstream: config.Upstream{Name: "token"}, URL: "http://" + l.Addr().String(),
			OAuth: config.OAuthClient{TokenURL: "http://127.0.0.1:1/", ClientID: "${NO_SUCH_ID}", ClientSecret: "s"}},
	}
	c.MCPBBundles = []config.MCPBBundle{
		{Upstream: config.Upstream{Name: "notes"}, Path: filepath.Join(dir, "notes.mcpb"), PublicKey: filepath.Join(dir, "key.pem")},
		{Upstream: config.Upstream{Name: "signed"}, Path: bundles + "/signed/leaf.mcpb", PublicKey: bundles + "/signed/leaf.pub.pem",
			UserConfig: map[string]any{"key": "k"}},
		{Upstream: config.Upstream{Name: "unsigned"}, Path: bundles + "/packed.mcpb", PublicKey: bundles + "/signed/leaf.pub.pem"},
		{Upstream: config.Upstream{Name: "answered"}, Path: bundles + "/signed/leaf.mcpb", PublicKey: bundles + "/signed/leaf.pub.pem",
			UserConfig: map[string]any{"nobody": "asks"}},
		{Upstream: config.Upstream{Name: "asks"}, Path: dir, PublicKey: filepath.Join(dir, "key.pem"),
			UserConfig: map[string]any{"a": "${NO_SUCH_A}", "b": []any{"x", "${NO_SUCH_B}", int64(1)}}},
	}
	var got []string
	for _, r := range mcpbroker.Rehearse(t.Context(), c) {
		line := r.Slot + " " + r.Kind + " " + r.Found
		for _, m := range r.Missing {
			line += "\n  " + m.Setting + ": " + m.Err.Error()
			if m.Unreached {
				line += " (unreached)"
			}
		}
		got = append(got, strings.ReplaceAll(strings.ReplaceAll(line, dir, "DIR"), l.Addr().String(), "ADDR"))
	}
	want := []string{
		"path stdio DIR/server",
		"file stdio \n  cwd: DIR/key.pem is not a directory",
		"up sse ADDR",
		"odd streamable-http \n  url: it is no URL once its variables are put in",
		"token streamable-http \n  oauth.clientId: unresolved: the variable NO_SUCH_ID is not set\n  oauth.tokenUrl: 127.0.0.1:1 cannot be reached: connect: connection refused (unreached)",
		"notes bundle \n  publicKey: public key at DIR/key.pem cannot be used: it holds no PEM public key or certificate",
		"signed bundle ingress/bundle/testdata/signed/leaf.mcpb",
		"unsigned bundle \n  signature: signature file not found at ingress/bundle/testdata/packed.mcpb.sig",
		"answered bundle \n  userConfig: missing user_config value: \"key\"; the bundle knows no user_config value \"nobody\"",
		"asks bundle \n  userConfig.a: unresolved: the variable NO_SUCH_A is not set\n  userConfig.b[1]: unresolved: the variable NO_SUCH_B is not set\n  path: DIR is not a regular file",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c.MaxSlots = 0; mcpbroker.Rehearse(t.Context(), c) != nil {
		t.Error("a configuration that is wrong was rehearsed")
	}
}
