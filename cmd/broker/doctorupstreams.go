package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"mcpbroker"
	"mcpbroker/config"
)

// upstreams checks that what the configuration lets the broker start or dial is there, and
// that its bundles would be taken.
func (f *findings) upstreams(ctx context.Context, cfg *config.Config) {
	for _, r := range mcpbroker.Rehearse(ctx, cfg) {
		check := "upstream " + r.Slot
		if len(r.Missing) == 0 {
			f.ok(check, r.Kind+", "+r.Found)
		}
		for _, m := range r.Missing {
			text := fmt.Sprintf("%s: %v", m.Setting, m.Err)
			if m.Unreached {
				f.warn(check, text, upstreamFix(m))
				continue
			}
			f.fail(check, text, upstreamFix(m))
		}
	}
	for _, slot := range cfg.Disabled {
		f.ok("upstream "+slot, "not started: enabled = false")
	}
}

func upstreamFix(m mcpbroker.Missing) string {
	setting, _, _ := strings.Cut(m.Setting, ".")
	switch {
	case m.Unreached:
		return "start that server, or correct " + m.Setting + "; the broker tries again by itself"
	case errors.Is(m.Err, config.ErrUnresolved) && strings.Contains(m.Err.Error(), "the file "):
		return "put the file there, where the user of the broker can read it, or correct the path"
	case errors.Is(m.Err, config.ErrUnresolved):
		return "set the variable in the environment of the broker or in vars of the entry, or write ${NAME:-default}"
	}
	switch setting {
	case "command":
		return "install it, correct command, or give its directory in PATH of env"
	case "cwd":
		return "make that directory, or correct cwd"
	case "envFile":
		return "write that file as NAME=value lines, or correct envFile"
	case "path", "publicKey", "signature":
		return "put the file there, or correct " + setting + "; then: broker bundle verify FILE --public-key KEY"
	case "userConfig":
		return "correct userConfig; broker bundle inspect FILE tells what the bundle asks for"
	}
	return "correct " + m.Setting
}
