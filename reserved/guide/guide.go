// Package guide holds the broker's own documentation: six Markdown pages for
// agents and people, each followed by the configuration in effect (spec 03 2.1
// to 2.3). It is what broker_guide, the broker://guide resources and /llms.txt
// serve. The package is pure.
package guide

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed pages/*.md
var pages embed.FS

// Config is what the pages say about the broker that serves them.
type Config struct {
	Name    string // brokerName
	Version string
	// Scheme is http or https.
	Scheme string
	// Authority is host:port as a client on this machine reaches it.
	Authority string
	Paths     Paths
}

// Paths are the URL paths in effect, each with its leading slash.
type Paths struct {
	Provider, Providers, Client, MCP, SSE, Messages string
}

// Topic is one page.
type Topic struct {
	Topic   string `json:"topic"` // its name, as broker_guide takes it
	URI     string `json:"uri"`   // broker://guide/<topic>
	Title   string `json:"title"`
	Summary string `json:"summary"` // one line
}

// Index is the topic of the page to begin with.
const Index = "index"

// Topics lists the pages in their order (spec 03 1.4).
func Topics() []Topic {
	list := []Topic{
		{Topic: Index, Title: "The broker explains itself",
			Summary: "What the broker is, how a transport pairs with a path, which page and which tool to use next."},
		{Topic: "publish-provider", Title: "Publish a provider",
			Summary: "Connect an MCP server to a slot: the two WebSocket transports, registration, joining _all, refusals, reconnecting."},
		{Topic: "connect-client", Title: "Connect a client",
			Summary: "Call a slot over Streamable HTTP, SSE, WebSocket or stdio; _broker and _all; subscriptions, origins, errors."},
		{Topic: "host-config", Title: "Configure an MCP host",
			Summary: "The entry for a host that starts its MCP servers: the bridge, or a broker of the host's own, pinned to _all."},
		{Topic: "deploy", Title: "Run and deploy the broker",
			Summary: "Configuration, exposure, TLS, proxies, health checks, pages served beside MCP, embedding in a Go program."},
		{Topic: "troubleshooting", Title: "Troubleshooting",
			Summary: "Symptom, cause and fix for everything that is known to go wrong, and how to confirm each."},
	}
	for i := range list {
		list[i].URI = "broker://guide/" + list[i].Topic
	}
	return list
}

// Page returns the page of a topic with the effective configuration behind it,
// and false for a topic that does not exist.
func Page(topic string, c Config) (string, bool) {
	body, ok := body(topic)
	if !ok {
		return "", false
	}
	return body + "\n\n---\n\n" + c.effective() + "\n", true
}

// body is the static part of a page, without a line break at its end.
func body(topic string) (string, bool) {
	for _, t := range Topics() {
		if t.Topic != topic {
			continue
		}
		text, err := pages.ReadFile("pages/" + topic + ".md")
		return strings.TrimRight(string(text), "\n"), err == nil
	}
	return "", false
}

// effective is the section that ends every page (spec 03 2.1).
func (c Config) effective() string {
	base, ws := c.base(), "ws"+strings.TrimPrefix(c.base(), "http")
	listening := code(base)
	if c.Scheme == "https" {
		listening += "; TLS is on, so providers use `wss` and the origins of pages begin with `https`"
	}
	rows := [][2]string{
		{"broker", code(c.Name) + " " + code(c.Version)},
		{"listening", listening},
		{"provider, dedicated socket", code(ws + c.Paths.Provider + "/<slot>")},
		{"provider, shared socket", code(ws + c.Paths.Providers)},
		{"client, Streamable HTTP", code(base + "/<slot>" + c.Paths.MCP)},
		{"client, legacy SSE", code(base+"/<slot>"+c.Paths.SSE) + " + " + code(base+"/<slot>"+c.Paths.Messages)},
		{"client, raw WebSocket", code(ws + "/<slot>")},
	}
	var b strings.Builder
	b.WriteString("## This broker, as it runs now\n\nThe text above uses the default address and paths; these are in effect.\n\n| what | value |\n|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s |\n", r[0], r[1])
	}
	b.WriteString("\nFor what is connected and what is wrong right now, call `broker_diagnose()` on the slot `_broker`.")
	return b.String()
}

func (c Config) base() string { return c.Scheme + "://" + c.Authority }

// code is a span of code that fits a cell of a table, whatever an operator has
// named things.
func code(s string) string {
	return "`" + strings.NewReplacer("`", "'", "|", `\|`, "\n", " ", "\r", " ").Replace(s) + "`"
}
