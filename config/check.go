package config

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

func checkAny(s string) (string, error) { return s, nil }

func checkNotEmpty(s string) (string, error) {
	if strings.TrimSpace(s) == "" {
		return "", errEmpty
	}
	return s, nil
}

// checkHost refuses what cannot be bound: a port, a URL or brackets left in.
func checkHost(s string) (string, error) {
	s = strings.TrimSpace(s)
	if _, err := netip.ParseAddr(s); err == nil {
		return s, nil
	}
	if s == "" || strings.ContainsAny(s, ":/[]?#@ \t\r\n") {
		return "", errors.New("must be a host name or an IP address, without port, brackets or scheme")
	}
	// No name ends in a number: it is meant to be an address.
	if last := s[strings.LastIndexByte(s, '.')+1:]; last != "" && strings.Trim(last, "0123456789") == "" {
		return "", errors.New("must be an IP address of four numbers from 0 to 255, or a host name")
	}
	return s, nil
}

// checkRoot accepts an absolute URL path. Upgrade targets are compared as raw
// text (spec 01 1.1), so a path that a client would have to escape can never
// match.
func checkRoot(s string) (string, error) {
	if !strings.HasPrefix(s, "/") {
		return "", errors.New(`must start with "/"`)
	}
	for _, r := range s {
		if r <= ' ' || r > '~' || strings.ContainsRune(`"#<>?\^{|}`+"`", r) {
			return "", errors.New("must be a plain URL path, already percent-encoded and without query")
		}
	}
	return s, nil
}

// checkPath refuses in addition the paths that would swallow every client
// ("/") or match none of their own URLs (a slash at the end).
func checkPath(s string) (string, error) {
	s, err := checkRoot(s)
	if err == nil && strings.HasSuffix(s, "/") {
		return "", errors.New(`must not end with "/"`)
	}
	return s, err
}

// checkSuffix gives a slot suffix its leading slash. Two segments can never
// match a request of the form /<slot>/<suffix> (F-04).
func checkSuffix(s string) (string, error) {
	name := strings.TrimPrefix(s, "/")
	switch {
	case name == "":
		return "", errEmpty
	case strings.Contains(name, "/"):
		return "", errors.New(`must be one path segment, such as "/mcp"`)
	case strings.ContainsAny(name, "?#% \t\r\n"):
		return "", errors.New("must be a plain path segment, without query, escapes or blanks")
	}
	return "/" + name, nil
}

// checkBeside accepts a path that no slot's endpoint can have, which is one of
// two segments; or nothing.
func checkBeside(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	return checkSuffix(s)
}

func checkSlotName(name string) error {
	switch name {
	case "":
		return errors.New("must have a slot name")
	case "_broker", "_all":
		return errors.New("is reserved by the broker and takes no settings")
	}
	return nil
}

// conflict is a problem between settings that are valid one by one.
type conflict struct {
	names []string // the settings involved, the one to name first
	err   error
}

// conflicts checks settings against each other.
func (c *Config) conflicts() []conflict {
	var found []conflict
	add := func(text string, names ...string) { found = append(found, conflict{names, errors.New(text)}) }

	if err := c.checkLocale(); err != nil {
		add(err.Error(), "locale")
	}

	switch cert, key := c.TLS.Cert != "", c.TLS.Key != ""; {
	case c.Protocol == ProtocolHTTP, cert && key:
	case c.Protocol == ProtocolHTTPS:
		add(`is https, which needs both "tls.cert" and "tls.key"`, "protocol", "tls.cert", "tls.key")
	case cert:
		add(`is set without "tls.key"`, "tls.cert", "tls.key")
	case key:
		add(`is set without "tls.cert"`, "tls.key", "tls.cert")
	}

	p := &c.Paths
	if p.Provider == p.Providers {
		add(`must differ from "paths.provider"`, "paths.providers", "paths.provider")
	}
	if p.SSE == p.MCP {
		add(`must differ from "paths.mcp"`, "paths.sse", "paths.mcp")
	}
	if p.Messages == p.MCP {
		add(`must differ from "paths.mcp"`, "paths.messages", "paths.mcp")
	} else if p.Messages == p.SSE {
		add(`must differ from "paths.sse"`, "paths.messages", "paths.sse")
	}
	beside := map[string]string{}
	for _, path := range []struct{ name, path string }{
		{"paths.healthz", p.Healthz}, {"paths.readyz", p.Readyz}, {"paths.llms", p.LLMs},
	} {
		if other, taken := beside[path.path]; taken && path.path != "" {
			add(fmt.Sprintf("must differ from %q", other), path.name, other)
		}
		beside[path.path] = path.name
	}
	return found
}
