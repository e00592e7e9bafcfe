package main

import (
	"fmt"
	"net/url"
	"strings"

	"mcpbroker/config"
)

// origins checks that the origins allowed are those meant.
func (f *findings) origins(cfg *config.Config) {
	f.allowedOrigins(cfg)
	f.upgradeOrigins(cfg)
}

// upgradeOrigins says what a list of origins does not keep away.
func (f *findings) upgradeOrigins(cfg *config.Config) {
	const check, fix = "origins", "checkUpgradeOrigins = true applies allowedOrigins to them, too; providers and clients that are no pages send no Origin"
	switch {
	case cfg.CheckUpgradeOrigins:
	case cfg.BoundWide():
		f.warn(check, "WebSocket upgrades are not checked, and the address is wider than this machine: a page of any origin can call and publish", fix)
	default:
		*f = append(*f, finding{check, statusOK, "WebSocket upgrades are not checked: a page of any origin, opened on this machine, can call and publish", fix})
	}
}

func (f *findings) allowedOrigins(cfg *config.Config) {
	const check = "origins"
	o := cfg.AllowedOrigins
	switch {
	case o.IsZero() && len(cfg.WWW.Mounts) > 0:
		f.warn(check, "the broker serves pages, and answers the requests of none: pages carry an Origin header, and allowedOrigins lists none",
			fmt.Sprintf("allowedOrigins = [%q], or the origin the pages are opened from", configured(cfg).base))
		return
	case o.IsZero():
		f.ok(check, "none: requests of pages in browsers are refused, those of other clients are not")
		return
	case o.Pattern != "":
		f.originPattern(o.Pattern)
		return
	}
	before := len(*f)
	for _, w := range cfg.Warnings {
		if text, ok := strings.CutPrefix(w, originsWarning); ok {
			f.warn(check, text, "write it as a browser sends it, such as https://app.example or http://localhost:5173")
		}
	}
	for _, entry := range o.List {
		f.origin(entry)
	}
	if len(*f) == before {
		f.ok(check, o.String())
	}
}

// origin finds entries that are well-formed and still not what a browser sends, or
// that let in more than they seem to.
func (f *findings) origin(entry string) {
	const check = "origins"
	u, err := url.Parse(entry)
	switch {
	case entry == "null":
		f.warn(check, `"null" is the origin of every sandboxed page and local file, whoever wrote it`, "serve the page over http and list that origin")
	case err != nil:
		f.warn(check, fmt.Sprintf("%q is no origin: %v", entry, err), "write scheme://host[:port]")
	case u.Scheme == "https" && u.Port() == "443", u.Scheme == "http" && u.Port() == "80":
		f.warn(check, fmt.Sprintf("%q matches no browser: the default port is left out of Origin", entry), "write "+u.Scheme+"://"+u.Hostname())
	case entry != strings.ToLower(entry):
		f.warn(check, fmt.Sprintf("%q matches no browser: scheme and host are lower case in Origin", entry), "write "+strings.ToLower(entry))
	}
}

func (f *findings) originPattern(pattern string) {
	const check = "origins"
	begins := strings.HasPrefix(pattern, "^") || strings.HasPrefix(pattern, `\A`)
	ends := strings.HasSuffix(pattern, "$") || strings.HasSuffix(pattern, `\z`)
	if begins && ends {
		f.ok(check, "/"+pattern+"/")
		return
	}
	f.warn(check, fmt.Sprintf("the pattern /%s/ is searched anywhere in the origin: it lets in longer host names that contain a match", pattern),
		"begin it with ^ and end it with $")
}
