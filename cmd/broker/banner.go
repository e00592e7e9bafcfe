package main

import (
	"fmt"
	"log/slog"
	"strings"

	"mcpbroker/config"
)

// row is one line of the banner.
type row struct{ key, name, value, note string }

// bannerRows states what a started broker offers (spec 01 8.4). url is the
// effective one.
func bannerRows(cfg *config.Config, url string) []row {
	ws := "ws" + strings.TrimPrefix(url, "http")
	p := cfg.Paths
	origins := row{"origins", "browser origins", "none", "set allowedOrigins or MCP_BROKER_ALLOWED_ORIGINS; requests without Origin pass"}
	if o := cfg.AllowedOrigins; !o.IsZero() {
		origins.value, origins.note = o.String(), "enforced over HTTP; requests without Origin pass"
	}
	rows := []row{
		{"direct", "provider, direct", ws + p.Provider + "/<slot>", "one per socket, plain frames, DirectTransport"},
		{"multiplex", "provider, multiplex", ws + p.Providers, "many per socket, envelopes, MultiplexTransport"},
		{"mcp", "Streamable HTTP", url + "/<slot>" + p.MCP, "MCP clients"},
		{"sse", "SSE, legacy", url + "/<slot>" + p.SSE, "older MCP clients: the stream"},
		{"messages", "SSE, legacy post", url + "/<slot>" + p.Messages, "its messages, named by the stream's first event"},
		{"websocket", "raw WebSocket", ws + "/<slot>", "clients, plain frames, " + upgradeCheck(cfg)},
		{"broker", "slot _broker", url + "/_broker" + p.MCP, "broker_info, providers_list, provider_status, broker_guide, broker_diagnose"},
		{"all", "slot _all", url + "/_all" + p.MCP, "tools and prompts of every provider that joined"},
		{"authorization", "authorization", "disabled", "every client may call every slot"},
		{"providerAuth", "provider auth", "disabled", "every peer may publish a free slot"},
		origins,
	}
	for _, m := range cfg.WWW.Mounts {
		rows = append(rows, row{"files " + m.URLPrefix, "files", url + m.URLPrefix, m.Dir})
	}
	if cfg.StdioProvider != "" {
		rows = append(rows, row{"stdio", "stdio host", "slot " + cfg.StdioProvider, "newline-delimited JSON-RPC on standard input and output"})
	}
	if cfg.File != "" {
		rows = append(rows, row{"file", "configuration", cfg.File, ""})
	}
	return rows
}

// upgradeCheck says whether pages of other sites can connect.
func upgradeCheck(cfg *config.Config) string {
	if cfg.CheckUpgradeOrigins {
		return "origin-checked"
	}
	return "not origin-checked"
}

// printBanner tells people in aligned rows and machines in one record.
func (p *program) printBanner(log *slog.Logger, cfg *config.Config, url string) {
	rows := bannerRows(cfg, url)
	if cfg.LogFormat == config.LogJSON {
		attrs := []any{"version", p.version, "url", url}
		for _, r := range rows {
			attrs = append(attrs, r.key, r.value)
		}
		log.Info("[mcp-broker] started", attrs...)
		return
	}
	tls := "no TLS"
	if cfg.Scheme() == config.ProtocolHTTPS {
		tls = "TLS"
	}
	width := 0
	for _, r := range rows {
		width = max(width, len(r.value))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "[mcp-broker] %s started on %s (%s)\n", p.version, url, tls)
	for _, r := range rows {
		line := fmt.Sprintf("  %-20s %-*s  %s", r.name, width, r.value, r.note)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	b.WriteString("  Start with: broker guide, or call broker_guide on the slot _broker\n  Ctrl+C stops the broker\n")
	fmt.Fprint(p.stderr, b.String())
}

// exposure warns once about a broker that anyone on the network can use; it is
// empty for one bound to this machine.
func exposure(cfg *config.Config) string {
	if !cfg.BoundWide() {
		return ""
	}
	return fmt.Sprintf("[mcp-broker] WARNING: host %q listens beyond this machine without authentication: "+
		"whoever reaches the port can call the tools of every slot and publish a provider under any free name. "+
		"Set host = \"127.0.0.1\", or put an authenticating proxy in front.", cfg.Host)
}
