package main

import (
	"context"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"unicode"

	"mcpbroker/config"
)

// newLogger logs to a queue, in its format. Debug records are left out.
func newLogger(q *logQueue) *slog.Logger {
	return slog.New(&sortingHandler{plain: newLogHandler(q.below(), q.format), grave: newLogHandler(q.above(), q.format)})
}

// newLogHandler writes to w in one of the formats of config, a record with one Write.
func newLogHandler(w io.Writer, format string) slog.Handler {
	if format == config.LogJSON {
		return slog.NewJSONHandler(w, nil)
	}
	return &lineHandler{w: w}
}

// sortingHandler hands a record to one of two handlers that write alike, by its
// gravity.
type sortingHandler struct{ plain, grave slog.Handler }

// Enabled implements slog.Handler.
func (h *sortingHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.plain.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h *sortingHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return h.plain.Handle(ctx, r)
	}
	return h.grave.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *sortingHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &sortingHandler{h.plain.WithAttrs(attrs), h.grave.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h *sortingHandler) WithGroup(name string) slog.Handler {
	return &sortingHandler{h.plain.WithGroup(name), h.grave.WithGroup(name)}
}

// lineHandler writes each record as one line: the message as it is, then
// key=value for each attribute. Messages carry the prefixes operators match on
// (spec 01 8); time and level are left to whatever collects the output.
type lineHandler struct {
	w     io.Writer // takes whole lines from many at once
	attrs string    // of With, already written out
	group string    // prefix of keys, empty or ending in a dot
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
	_, err := io.WriteString(h.w, b.String())
	return err
}

// WithAttrs implements slog.Handler.
func (h *lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	var b strings.Builder
	for _, a := range attrs {
		appendAttr(&b, h.group, a)
	}
	return &lineHandler{w: h.w, attrs: h.attrs + b.String(), group: h.group}
}

// WithGroup implements slog.Handler.
func (h *lineHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return &lineHandler{w: h.w, attrs: h.attrs, group: h.group + name + "."}
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
