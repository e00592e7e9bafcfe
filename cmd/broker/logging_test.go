package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/config"
)

// spec 01 8: lines in the exact form operators match on.
func TestLineHandler(t *testing.T) {
	var b bytes.Buffer
	lines := newLogQueue(&b, config.LogText)
	log := newLogger(lines)
	log.Info(`[broker] ws connect path="/provider/a" role=dedicated-provider slot="a"`)
	log.Debug("never seen")
	log.Warn("attrs", "n", 1, "s", "plain", "q", `two "words"`, "e", "", "d", 1500*time.Millisecond, "err", errors.New("a=b"))
	log.With("a", 1).WithGroup("g").With("b", 2).Error("groups", "c", 3, slog.Group("h", "d", 4), slog.Attr{})
	log.Info("forged\n[broker] line\x1b[31m", "k\n", "v\nw")
	log.WithGroup("").Info("same", slog.Group("", "inline", true))
	want := `[broker] ws connect path="/provider/a" role=dedicated-provider slot="a"
attrs n=1 s=plain q="two \"words\"" e="" d=1.5s err="a=b"
groups a=1 g.b=2 g.c=3 g.h.d=4
forged\n[broker] line\x1b[31m k\n="v\nw"
same inline=true
`
	lines.flush(time.Minute)
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if log.Enabled(context.Background(), slog.LevelDebug) {
		t.Error("debug is enabled")
	}
}

func TestExposure(t *testing.T) {
	for host, loopback := range map[string]bool{
		"127.0.0.1": true, "127.9.9.9": true, "::1": true, "localhost": true, "LOCALHOST": true, "::ffff:127.0.0.1": true,
		"0.0.0.0": false, "::": false, "192.168.1.2": false, "broker.example": false,
	} {
		cfg := config.Default()
		cfg.Host = host
		if got := exposure(cfg) == ""; got != loopback {
			t.Errorf("exposure(%q) = %q", host, exposure(cfg))
		}
	}
}

// A name cannot be made to read otherwise than it stands.
func TestUnprintable(t *testing.T) {
	for _, test := range []struct{ in, line, text string }{
		{"plain é 🎉", "plain é 🎉", "plain é 🎉"},
		{"a\u202egnp.exe", `a\u202egnp.exe`, `a\u202egnp.exe`},
		{"a\u2066b\u200ec\u00add\ufeff", `a\u2066b\u200ec\u00add\ufeff`, `a\u2066b\u200ec\u00add\ufeff`},
		{"tag \U000E0041", `tag \U000e0041`, `tag \U000e0041`},
		{"two\u2028lines\nand\tmore", `two\u2028lines\nand\tmore`, "two\\u2028lines\nand\tmore"},
		{"👩\u200d🔬", `👩\u200d🔬`, "👩\u200d🔬"},
		{"\x1b[31m\u009b", `\x1b[31m\u009b`, `\x1b[31m\u009b`},
	} {
		if got := oneLine(test.in); got != test.line {
			t.Errorf("oneLine(%q) = %q, want %q", test.in, got, test.line)
		}
		if got := safeText(test.in); got != test.text {
			t.Errorf("safeText(%q) = %q, want %q", test.in, got, test.text)
		}
	}
}
