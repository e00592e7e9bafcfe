package bundle

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

// manifestName is where the manifest stands in the archive.
const manifestName = "manifest.json"

// Manifest is what is used of a manifest.json of version 0.1 to 0.4. Unknown
// members are passed over.
type Manifest struct {
	ManifestVersion string // "" when the manifest names none
	Name            string
	DisplayName     string
	Version         string
	Description     string
	Author          string
	License         string
	Platforms       []string // it says to run on: darwin, linux, win32
	Runtimes        map[string]string
	Tools           []string // names of those it announces
	Server          Server
	UserConfig      map[string]UserOption
}

// Server says how the server is started.
type Server struct {
	Type       string     `json:"type"` // node, python, binary or uv
	EntryPoint string     `json:"entry_point"`
	MCPConfig  *MCPConfig `json:"mcp_config"` // may be missing for uv
}

// MCPConfig is a command with placeholders.
type MCPConfig struct {
	Command   string              `json:"command"`
	Args      []string            `json:"args"`
	Env       map[string]string   `json:"env"`
	Overrides map[string]Override `json:"platform_overrides"` // by darwin, linux, win32
}

// Override replaces the command and the arguments on one platform, and adds to the
// environment.
type Override struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"` // nil leaves the arguments
	Env     map[string]string `json:"env"`
}

// UserOption is a value that the bundle asks its user for.
type UserOption struct {
	Type        string   `json:"type"` // string, number, boolean, directory or file
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Required    bool     `json:"required"`
	Default     any      `json:"default"` // numbers are json.Number
	Multiple    bool     `json:"multiple"`
	Sensitive   bool     `json:"sensitive"`
	Min         *float64 `json:"min"`
	Max         *float64 `json:"max"`
}

// known matches the versions whose members mean what is said here. Each minor
// version so far has only added to the one before.
var known = regexp.MustCompile(`^0\.[0-9]+(\.[0-9]+)?$`)

// parseManifest insists on what is needed to start the server, and takes of the
// rest what has the form it should have.
func parseManifest(text []byte) (Manifest, error) {
	var m Manifest
	var members map[string]json.RawMessage
	if err := json.Unmarshal(bytes.TrimPrefix(text, []byte("\ufeff")), &members); err != nil {
		return m, because(ErrManifest, err, "manifest.json cannot be read")
	}
	m.describe(members)
	if m.ManifestVersion != "" && !known.MatchString(m.ManifestVersion) {
		return m, refusal(ErrManifest, "manifest_version %q is not supported, 0.1 to 0.4 are", m.ManifestVersion)
	}
	if err := decode(members["server"], &m.Server); err != nil {
		return m, because(ErrManifest, err, "manifest.json cannot be read: server")
	}
	if err := decode(members["user_config"], &m.UserConfig); err != nil {
		return m, because(ErrManifest, err, "manifest.json cannot be read: user_config")
	}
	c := m.Server.MCPConfig
	switch {
	case c == nil && m.Server.Type != "uv":
		return m, refusal(ErrManifest, "manifest has no server.mcp_config")
	case c == nil && m.Server.EntryPoint == "":
		return m, refusal(ErrManifest, "manifest has neither server.mcp_config nor server.entry_point")
	}
	return m, nil
}

// describe takes over what only people read.
func (m *Manifest) describe(members map[string]json.RawMessage) {
	var author struct{ Name string }
	var compatibility struct {
		Platforms []string
		Runtimes  map[string]string
	}
	var tools []struct{ Name string }
	for name, target := range map[string]any{
		"dxt_version": &m.ManifestVersion, "name": &m.Name, "display_name": &m.DisplayName, "version": &m.Version,
		"description": &m.Description, "license": &m.License, "author": &author, "compatibility": &compatibility, "tools": &tools,
	} {
		_ = decode(members[name], target)
	}
	_ = decode(members["manifest_version"], &m.ManifestVersion)
	m.Author, m.Platforms, m.Runtimes = author.Name, compatibility.Platforms, compatibility.Runtimes
	for _, t := range tools {
		m.Tools = append(m.Tools, t.Name)
	}
}

// decode reads a member that may be missing.
func decode(raw json.RawMessage, v any) error {
	if len(raw) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // a default goes into the command as it was written
	return d.Decode(v)
}

// command returns what to run on a platform. Without mcp_config it is uv's own.
func (m *Manifest) command(platform string) MCPConfig {
	if m.Server.MCPConfig == nil {
		return MCPConfig{Command: "uv", Args: []string{"run", "--directory", "${__dirname}", m.Server.EntryPoint}}
	}
	c := *m.Server.MCPConfig
	o := c.Overrides[platform]
	if strings.TrimSpace(o.Command) != "" {
		c.Command = o.Command
	}
	if o.Args != nil {
		c.Args = o.Args
	}
	if len(o.Env) > 0 {
		env := make(map[string]string, len(c.Env)+len(o.Env))
		for _, from := range []map[string]string{c.Env, o.Env} {
			for k, v := range from {
				env[k] = v
			}
		}
		c.Env = env
	}
	return c
}
