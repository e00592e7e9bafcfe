package main

import (
	"fmt"
	"log/slog"
	"net/url"
	"path"
	"strings"

	"mcpbroker/config"
)

// openPage shows the page of www.open in a browser. Nothing that goes wrong with
// it ends the broker (spec 01 5.11).
func (p *program) openPage(cfg *config.Config, log *slog.Logger, base string) {
	var prefixes []string
	for _, m := range cfg.WWW.Mounts {
		prefixes = append(prefixes, m.URLPrefix)
	}
	page, refusal := pageToOpen(cfg.WWW.Open, base, prefixes)
	if refusal != "" {
		log.Warn("[mcp-broker] Not opening " + refusal)
	}
	if page == "" {
		return
	}
	go func() {
		if err := p.browse(page); err != nil {
			log.Warn(fmt.Sprintf("[mcp-broker] Could not launch a browser for %s: %v", page, err))
		}
	}()
}

// pageToOpen decides by the value of www.open, the URL of the broker and the
// prefixes of its mounts. The page is empty when there is none to open; the
// refusal begins with what was asked for.
func pageToOpen(open, base string, prefixes []string) (page, refusal string) {
	if open == "" {
		return "", ""
	}
	u := ownPage(open, base)
	if u == nil {
		return "", fmt.Sprintf(`%s: www.open (MCP_BROKER_OPEN) takes true, a path such as "/index.html", or a URL that begins with %s/`, open, base)
	}
	if covered(u.Path, prefixes) {
		return u.String(), ""
	}
	if len(prefixes) == 0 {
		return "", fmt.Sprintf("%s: no directory is mounted; set www.mounts, or MCP_BROKER_WWW_DIR for one at /", u)
	}
	return "", fmt.Sprintf("%s: no mount covers it; mounted are %s", u, strings.Join(prefixes, ", "))
}

// ownPage is the URL that open names on this broker, nil if it names none.
func ownPage(open, base string) *url.URL {
	switch {
	case open == config.OpenRoot:
		open = base + "/"
	case strings.HasPrefix(open, "//"):
		return nil
	case strings.HasPrefix(open, "/"):
		open = base + open
	}
	own, err := url.Parse(base)
	if err != nil {
		return nil
	}
	u, err := url.Parse(open)
	if err != nil || origin(u) != origin(own) {
		return nil
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return u
}

// origin is scheme, host and port as browsers compare them.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// covered reports whether a mount serves a decoded path.
func covered(p string, prefixes []string) bool {
	p = path.Clean(p)
	for _, prefix := range prefixes {
		if decoded, err := url.PathUnescape(prefix); err == nil {
			prefix = decoded
		}
		if prefix == "/" || p == prefix || strings.HasPrefix(p, prefix+"/") {
			return true
		}
	}
	return false
}
