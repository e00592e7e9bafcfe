package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An entry with enabled = false is like one that is not there: its name is free, and
// only [Config.Disabled] tells of it. It is checked all the same.
func TestEnabled(t *testing.T) {
	const text = `
[[stdioUpstreams]]
name = "files"
command = "x"
enabled = false
[[stdioUpstreams]]
name = "files"
command = "y"
enabled = true
[[mcpServers]]
name = "docs"
url = "https://docs.example/mcp"
enabled = false
[[mcpbBundles]]
name = "notes"
path = "x.mcpb"
publicKey = "k.pem"
enabled = false
`
	cfg, err := Parse("x.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(cfg.Upstreams(), " "); got != "files" || cfg.StdioUpstreams[0].Command != "y" {
		t.Errorf("upstreams %q, %+v", got, cfg.StdioUpstreams)
	}
	want := []string{"files", "docs", "notes"}
	if diff := cmp.Diff(want, cfg.Disabled); diff != "" {
		t.Errorf("disabled (-want +got):\n%s", diff)
	}

	byHand := Default()
	byHand.StdioUpstreams = []StdioUpstream{{Upstream: Upstream{Name: "files", Disabled: true}, Command: "x"}, {Upstream: Upstream{Name: "files"}, Command: "y"}}
	byHand.MCPServers = []MCPServer{{Upstream: Upstream{Name: "docs", Disabled: true}, URL: "https://docs.example/mcp"}}
	byHand.MCPBBundles = []MCPBBundle{{Upstream: Upstream{Name: "notes", Disabled: true}, Path: "x.mcpb", PublicKey: "k.pem"}}
	given := byHand.StdioUpstreams
	if err := byHand.Validate(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(byHand.Upstreams(), " "); got != "files" || byHand.StdioUpstreams[0].Command != "y" {
		t.Errorf("by hand: upstreams %q, %+v", got, byHand.StdioUpstreams)
	}
	if diff := cmp.Diff(want, byHand.Disabled); diff != "" {
		t.Errorf("by hand: disabled (-want +got):\n%s", diff)
	}
	if !given[0].Disabled || given[0].Command != "x" {
		t.Errorf("the caller's list was changed: %+v", given)
	}

	wrong, err := Parse("x.toml", []byte("[[stdioUpstreams]]\nname = 'files'\nenabled = false\ncomand = 'x'\n"))
	if err == nil || err.Error() != `x.toml:4:1: unknown key "comand" in [[stdioUpstreams]] (did you mean "command"?)` {
		t.Errorf("Parse = %v, %v", wrong, err)
	}
}

// A start would need these files; who only asks where the broker is does not.
func TestUnreadableTLS(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "b.toml", "port = 1\n[tls]\ncert = 'c.pem'\nkey = 'k.pem'\n")
	check := func(name, want string, environ ...string) {
		t.Helper()
		_, err := Load(Source{Path: "b.toml", Environ: environ, Files: true})
		if got := errorText(err); got != want {
			t.Errorf("%s: Load = %s\nwant %s", name, got, want)
		}
		if _, err := Load(Source{Path: "b.toml", Environ: environ}); err != nil {
			t.Errorf("%s: without Files: %v", name, err)
		}
	}
	check("none", `b.toml:3:8: "tls.cert" cannot be read: c.pem: no such file or directory
b.toml:4:7: "tls.key" cannot be read: k.pem: no such file or directory`)
	check("variable", `b.toml:4:7: "tls.key" cannot be read: k.pem: no such file or directory
"tls.cert" cannot be read: elsewhere.pem: no such file or directory (set by MCP_BROKER_TLS_CERT)`, "MCP_BROKER_TLS_CERT=elsewhere.pem")
	check("not used", "", "MCP_BROKER_PROTOCOL=http")
	write(t, "c.pem", "x")
	write(t, "k.pem", "y")
	check("no certificate", `b.toml:3:8: "tls.cert" and "tls.key" do not go together: tls: failed to find any PEM data in certificate input`)
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A command is one program; a blank may be part of its name.
func TestCommand(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	write(t, filepath.Join(dir, "my server"), "")
	write(t, filepath.Join(dir, "npx"), "")
	if err := os.Chmod(filepath.Join(dir, "my server"), 0o755); err != nil {
		t.Fatal(err)
	}
	for command, sound := range map[string]bool{
		"npx": true, "my server": true, dir + "/my server": true, "/no such/program": true, "C:\\Program Files\\x.exe": true, "${NPX} -y": true, "./a b": true,
		"npx -y foo": false, "npx ${X}": false, dir + "/npx -y": false,
	} {
		got, err := checkCommand(command)
		if sound != (err == nil) || sound && got != command {
			t.Errorf("checkCommand(%q) = %q, %v", command, got, err)
		}
	}
}

// spec 03 1.8: the languages that come with the broker, and those of "grammars".
func TestLocale(t *testing.T) {
	files, err := filepath.Glob("../reserved/introspection/wording/*/*.json")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, file := range files {
		there[strings.TrimSuffix(filepath.Base(file), ".json")] = true
	}
	if diff := cmp.Diff(sortedNames(there), packaged); diff != "" {
		t.Errorf("packaged (-there +known):\n%s", diff)
	}
	t.Chdir(t.TempDir())
	write(t, "etc/grammars/claude/de_AT.json", "{}")
	write(t, "etc/grammars/default/it@2.0.json", "{}")
	for locale, sound := range map[string]bool{
		"": true, " ": true, "en": true, "FR-ca": true, "zh_CN": true, "de-at": true, "it-CH": true, "de": false, "xx": false, "english": false,
	} {
		write(t, "etc/broker.toml", "locale = '"+locale+"'\n")
		if _, err := Load(Source{Path: "etc/broker.toml"}); sound != (err == nil) {
			t.Errorf("locale %q: %v", locale, err)
		}
	}
	_, err = Load(Source{Environ: []string{"MCP_BROKER_LOCALE=it"}})
	if want := `"locale" must be en, fr or zh, with or without a region, or one of the directory "grammars", not "it" (set by MCP_BROKER_LOCALE)`; errorText(err) != want {
		t.Errorf("Load = %v\nwant %s", err, want)
	}
}

// A directory that a variable names may be absolute: it is not joined to the file's.
func TestDirectoryOfVariable(t *testing.T) {
	cfg, err := Parse("d/x.toml", []byte("[[stdioUpstreams]]\nname = 'a'\ncommand = 'x'\ncwd = '${HOME}/a'\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := cfg.StdioUpstreams[0].Cwd; got != "${HOME}/a" {
		t.Errorf("cwd %q", got)
	}
}

// What a running broker says of a file it cannot read again is true.
func TestUnusableAgain(t *testing.T) {
	t.Chdir(t.TempDir())
	_, err := Load(Source{Path: "gone.toml", Again: true})
	var unreadable *FileError
	const want = "Cannot use the config file at gone.toml: the file does not exist. Fix the file."
	if !errors.As(err, &unreadable) || err.Error() != want {
		t.Errorf("Load = %v\nwant %s", err, want)
	}
}
