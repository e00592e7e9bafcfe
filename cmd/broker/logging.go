package main

import (
	"context"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"mcpbroker/config"
)

// newLogger writes to w in one of the formats of config. Debug records are
// left out.
func newLogger(w io.Writer, format string) *slog.Logger {
	if format == config.LogJSON {
		return slog.New(slog.NewJSONHandler(w, nil))
	}
	return slog.New(&lineHandler{out: &lineWriter{w: w}})
}

// lineHandler writes each record as one line: the message as it is, then
// key=value for each attribute. Messages carry the prefixes operators match on
// (spec 01 8); time and level are left to whatever collects the output.
type lineHandler struct {
	out   *lineWriter
	attrs string // of With, already written out
	group string // prefix of keys, empty or ending in a dot
}

// lineWriter keeps lines whole. Handlers derived from one another share it.
type lineWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// Enabled implements slog.Handler.
func (h *lineHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo
}

// Handle implements slog.Handler.
func (h *lineHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(oneLine(r.Message))
	b.WriteString(h.attrs)
	r.Attrs(func(a slog.Attr) bool {
		appendAttr(&b, h.group, a)
		return true
	})
	b.WriteByte('\n')

	h.out.mu.Lock()
	defer h.out.mu.Unlock()
	_, err := io.WriteString(h.out.w, b.String())
	return err
}

// WithAttrs implements slog.Handler.
func (h *lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	var b strings.Builder
	for _, a := range attrs {
		appendAttr(&b, h.group, a)
	}
	return &lineHandler{out: h.out, attrs: h.attrs + b.String(), group: h.group}
}

// WithGroup implements slog.Handler.
func (h *lineHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return &lineHandler{out: h.out, attrs: h.attrs, group: h.group + name + "."}
}

func appendAttr(b *strings.Builder, group string, a slog.Attr) {
	v := a.Value.Resolve()
	if a.Equal(slog.Attr{}) {
		return
	}
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			group += a.Key + "."
		}
		for _, sub := range v.Group() {
			appendAttr(b, group, sub)
		}
		return
	}
	text := v.String()
	if text == "" || strings.ContainsFunc(text, needsQuotes) {
		text = strconv.Quote(text)
	}
	b.WriteString(" " + oneLine(group+a.Key) + "=" + text)
}

func needsQuotes(r rune) bool {
	return r == ' ' || r == '"' || r == '=' || !unicode.IsPrint(r)
}

// oneLine keeps a peer that puts control or format characters into a name from
// forging lines, turning text around or driving the operator's terminal.
func oneLine(s string) string {
	if !strings.ContainsFunc(s, unprintable) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unprintable(r) {
			q := strconv.QuoteRune(r)
			b.WriteString(q[1 : len(q)-1])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// unprintable tells the characters that do something to text, and are none.
func unprintable(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}
