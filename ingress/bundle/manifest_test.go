package bundle

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// spec 05 section 7: manifests are read loosely.
func TestManifest(t *testing.T) {
	low, high := 1.0, 9.5
	m, err := parseManifest([]byte("\ufeff" + `{
		"$schema": "x", "dxt_version": "0.1", "name": "n", "display_name": "N", "version": "1.2", "description": "d",
		"author": {"name": "a", "email": 5}, "license": "MIT", "repository": "not an object", "icon": 7, "privacy_policies": ["x"],
		"icons": [{"src": "i.png"}], "localization": {}, "_meta": {"x": {}}, "unknown": [1],
		"compatibility": {"platforms": ["linux", "win32"], "runtimes": {"node": ">=20"}, "claude_desktop": ">=1"},
		"tools": [{"name": "t1", "description": "x"}, {"name": "t2"}], "prompts": [{"name": "p"}],
		"server": {"type": "node", "entry_point": "e.js", "more": true, "mcp_config": {
			"command": "node", "args": ["e.js"], "env": {"A": "1"}, "platform_overrides": {"win32": {"command": "node.exe"}}}},
		"user_config": {"k": {"type": "number", "title": "T", "description": "D", "required": true, "default": 5, "min": 1, "max": 9.5,
			"sensitive": true, "multiple": true, "placeholder": "x"}}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Manifest{
		ManifestVersion: "0.1", Name: "n", DisplayName: "N", Version: "1.2", Description: "d", Author: "a", License: "MIT",
		Platforms: []string{"linux", "win32"}, Runtimes: map[string]string{"node": ">=20"}, Tools: []string{"t1", "t2"},
		Server: Server{Type: "node", EntryPoint: "e.js", MCPConfig: &MCPConfig{
			Command: "node", Args: []string{"e.js"}, Env: map[string]string{"A": "1"}, Overrides: map[string]Override{"win32": {Command: "node.exe"}},
		}},
		UserConfig: map[string]UserOption{"k": {
			Type: "number", Title: "T", Description: "D", Required: true, Default: m.UserConfig["k"].Default,
			Multiple: true, Sensitive: true, Min: &low, Max: &high,
		}},
	}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
}

func TestManifestVersions(t *testing.T) {
	for _, version := range []string{"", "0.1", "0.2", "0.3", "0.4", "0.5", "0.10", "0.3.1"} {
		m, err := parseManifest([]byte(strings.Replace(nodeManifest, "0.3", version, 1)))
		if err != nil || m.ManifestVersion != version {
			t.Errorf("%q: %q, %v", version, m.ManifestVersion, err)
		}
	}
	for _, version := range []string{"1.0", "2", "0", "0.x", "latest", "0.3 ", "00.3"} {
		_, err := parseManifest([]byte(strings.Replace(nodeManifest, "0.3", version, 1)))
		refused(t, err, ErrManifest, `manifest_version "`+version+`" is not supported, 0.1 to 0.4 are`)
	}
	both, err := parseManifest([]byte(strings.Replace(nodeManifest, `{`, `{"dxt_version":"0.1",`, 1)))
	if err != nil || both.ManifestVersion != "0.3" {
		t.Errorf("%q, %v", both.ManifestVersion, err)
	}
}

// spec 03 4.3 item 5.
func TestManifestRefusals(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", "manifest.json cannot be read: unexpected end of JSON input"},
		{"[]", "manifest.json cannot be read: json: cannot unmarshal array into Go value of type map[string]json.RawMessage"},
		{"{}{}", "manifest.json cannot be read: invalid character '{' after top-level value"},
		{"null", "manifest has no server.mcp_config"},
		{"{}", "manifest has no server.mcp_config"},
		{`{"server":null}`, "manifest has no server.mcp_config"},
		{`{"server":{"type":"node","entry_point":"e"}}`, "manifest has no server.mcp_config"},
		{`{"server":{"type":"node","mcp_config":null}}`, "manifest has no server.mcp_config"},
		{`{"server":{"type":"uv"}}`, "manifest has neither server.mcp_config nor server.entry_point"},
	}
	for _, tt := range tests {
		_, err := parseManifest([]byte(tt.text))
		refused(t, err, ErrManifest, tt.want)
	}
	for _, text := range []string{
		`{"server":[]}`, `{"server":{"mcp_config":[]}}`, `{"server":{"mcp_config":{"command":5}}}`, `{"server":{"mcp_config":{"args":"a"}}}`,
		`{"server":{"mcp_config":{"command":"n"}},"user_config":[]}`, `{"server":{"mcp_config":{"command":"n"}},"user_config":{"k":5}}`,
	} {
		if _, err := parseManifest([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), "manifest.json cannot be read: ") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
