package mcpbroker

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/config"
)

func TestChildEnv(t *testing.T) {
	environ := []string{
		"PATH=/bin", "HOME=/h", "Path=c", "LC_ALL=C", "AWS_SECRET=x", "B=b", "EMPTY=", "MCP_BROKER_PORT=1", "mcp_broker_token=2", "odd",
	}
	for _, c := range []struct {
		name    string
		inherit config.Inherit
		own     map[string]string
		want    []string
	}{
		{"by default", config.Inherit{}, nil, []string{"HOME=/h", "LC_ALL=C", "PATH=/bin", "Path=c"}},
		{"own ones win", config.Inherit{}, map[string]string{"PATH": "/own", "MCP_BROKER_X": "asked for"}, []string{"HOME=/h", "LC_ALL=C", "MCP_BROKER_X=asked for", "PATH=/own", "Path=c"}},
		{"names", config.Inherit{Names: []string{"B", "EMPTY", "MCP_BROKER_PORT", "GONE"}}, nil, []string{"B=b", "EMPTY=", "HOME=/h", "LC_ALL=C", "PATH=/bin", "Path=c"}},
		{"all", config.Inherit{All: true}, nil, []string{"AWS_SECRET=x", "B=b", "EMPTY=", "HOME=/h", "LC_ALL=C", "PATH=/bin", "Path=c", "odd="}},
	} {
		if diff := cmp.Diff(c.want, childEnv(environ, c.inherit, c.own)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestReadEnvFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "env")
	for text, want := range map[string]map[string]string{
		"":                                    {},
		"A=1\nB = two words \r\n":             {"A": "1", "B": "two words"},
		"# c\n\nexport A=x=y\n":               {"A": "x=y"},
		"A=\"a b\"\nB='\"'\nC=\"\nD=\nE=\"x'": {"A": "a b", "B": `"`, "C": `"`, "D": "", "E": `"x'`},
		"A=1\nA=2":                            {"A": "2"},
		"A=#no comment":                       {"A": "#no comment"},
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readEnvFile(path)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	for text, line := range map[string]string{"A": ":1 ", "A=1\n\n=x": ":3 ", "A=1\nB C=x": ":2 ", "\"A\"=x": ":1 "} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readEnvFile(path); err == nil || err.Error() != path+line+"is not NAME=value" {
			t.Errorf("%q: %v", text, err)
		}
	}
}
