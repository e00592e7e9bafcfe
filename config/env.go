package config

import (
	"fmt"
	"strings"
)

// EnvConfig names the configuration file when no argument does.
const EnvConfig = "MCP_BROKER_CONFIG"

// EnvVar describes one variable for help texts.
type EnvVar struct {
	Name    string // MCP_BROKER_PORT
	Key     string // the key in the file, empty for MCP_BROKER_CONFIG
	Type    string // what it takes, such as "integer from 0 to 65535"
	Default string // empty when there is none
	Doc     string // half a sentence
}

// EnvVars lists every variable the broker reads, in the order of the file.
func EnvVars() []EnvVar {
	vars := []EnvVar{{Name: EnvConfig, Type: "file", Doc: "configuration file to read when no argument names one"}}
	for _, k := range Default().keys() {
		if k.env != "" {
			vars = append(vars, EnvVar{k.env, k.name, k.value.typ(), k.value.String(), k.doc})
		}
	}
	return vars
}

// environment reads variables in the form of os.Environ, the last value of a
// repeated name counting.
type environment map[string]string

func newEnvironment(environ []string) environment {
	env := make(environment, len(environ))
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok {
			env[name] = value
		}
	}
	return env
}

// get returns the value of a variable, empty when it is unset or blank.
func (e environment) get(name string) string {
	if v := e[name]; strings.TrimSpace(v) != "" {
		return v
	}
	return ""
}

// apply sets what variables give, except for keys in skip, and returns the
// keys it set together with what is wrong.
func (e environment) apply(c *Config, skip map[string]string) (set map[string]string, found []Problem) {
	set = make(map[string]string)
	for _, k := range c.keys() {
		v := e.get(k.env)
		if v == "" || skip[k.name] != "" {
			continue
		}
		err := k.value.fromText(v)
		switch {
		case err == nil:
			set[k.name] = k.env
		case k.lenientEnv:
			c.Warnings = append(c.Warnings, fmt.Sprintf("[mcp-broker] Ignoring %s=%q: it %v; using %s", k.env, v, err, k.value))
		default:
			found = append(found, Problem{Message: fmt.Sprintf("%s=%q %v%s", k.env, v, err, serviceLinkHint(v))})
		}
	}
	return set, append(found, e.unavailable(c)...)
}

// serviceLinkHint explains the value a container platform injects for a
// service that is itself called mcp-broker.
func serviceLinkHint(v string) string {
	if strings.HasPrefix(v, "tcp://") {
		return "; a Kubernetes service called mcp-broker injects this variable, set enableServiceLinks: false in the pod"
	}
	return ""
}

func (e environment) unavailable(c *Config) []Problem {
	var found []Problem
	keys := unavailableEnv()
	for _, name := range sortedNames(keys) {
		if e.get(name) != "" {
			found = append(found, Problem{Message: fmt.Sprintf("%s is set, but %q is not available yet", name, keys[name])})
		}
	}
	for _, name := range telemetryEnv() {
		if e.get(name) != "" {
			c.Warnings = append(c.Warnings, fmt.Sprintf("[mcp-broker] Ignoring %s: telemetry is not available yet", name))
		}
	}
	e.misspelt(c)
	return found
}

// misspelt warns about variables that look like ours and are not.
func (e environment) misspelt(c *Config) {
	known := sortedNames(unavailableEnv())
	for _, v := range EnvVars() {
		known = append(known, v.Name)
	}
	for _, name := range sortedNames(e) {
		short, ours := strings.CutPrefix(name, "MCP_BROKER_")
		if !ours || e.get(name) == "" {
			continue
		}
		best, cost := "", 3
		for _, k := range known {
			if d := distance(short, strings.TrimPrefix(k, "MCP_BROKER_")); d < cost {
				best, cost = k, d
			}
		}
		if best != "" && cost > 0 {
			c.Warnings = append(c.Warnings, fmt.Sprintf("[mcp-broker] Ignoring %s: no such variable (did you mean %s?)", name, best))
		}
	}
}
