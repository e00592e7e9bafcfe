package mcpbroker

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"mcpbroker/config"
)

// usual are the variables a program needs to run and that hold no secret.
var usual = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "TMPDIR", "TEMP", "TMP",
	"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
	"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES",
	"HOMEDRIVE", "HOMEPATH", "USERNAME",
}

// childEnv is the whole environment of a child: what it inherits of the broker's,
// and its own over it. The broker's settings, which may be secrets, are never
// passed on.
func childEnv(environ []string, inherit config.Inherit, own map[string]string) []string {
	env := map[string]string{}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		upper := strings.ToUpper(name)
		switch {
		case strings.HasPrefix(upper, "MCP_BROKER_"):
		case inherit.All, slices.Contains(inherit.Names, name), slices.Contains(usual, upper), strings.HasPrefix(upper, "LC_"):
			env[name] = value
		}
	}
	maps.Copy(env, own)
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// maxEnvFile bounds a file of variables.
const maxEnvFile = 1 << 20

// readEnvFile reads NAME=value lines; blank lines and those that begin with "#"
// are skipped, "export " in front and one pair of quotes around a value are taken
// off.
func readEnvFile(path string) (map[string]string, error) {
	data, err := config.ReadRegular(path, maxEnvFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	env := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(lines.Text()), "export "))
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, found := strings.Cut(line, "=")
		if name = strings.TrimSpace(name); !found || name == "" || strings.ContainsAny(name, " \t\"'") {
			return nil, fmt.Errorf("%s:%d is not NAME=value", path, n)
		}
		env[name] = unquoted(strings.TrimSpace(value))
	}
	return env, lines.Err()
}

func unquoted(s string) string {
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}
