package guide

import (
	"fmt"
	"strings"
)

// initializeBody opens a session; any MCP client sends its own.
const initializeBody = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"curl","version":"1"}}}`

// LLMs returns the text of /llms.txt: what this address is, the pages as links,
// how to read them, and the first page.
func LLMs(c Config) string {
	endpoint := c.base() + "/_broker" + c.Paths.MCP
	first, _ := Page(Index, c)
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", strings.Join(strings.Fields(c.Name), " "))
	b.WriteString("> A broker for the Model Context Protocol: many MCP servers behind this one host and port, each in a named slot. " +
		"It documents and diagnoses itself through the slot `_broker`, an MCP server like any other.\n\n")
	fmt.Fprintf(&b, "The pages below are resources of that server. Point an MCP client at `%s` and read them with `resources/read`, "+
		"or call its tool `broker_guide` with the topic. From a shell where the broker is installed:\n\n", endpoint)
	fmt.Fprintf(&b, "```sh\nbroker guide publish-provider --url %s\n```\n\nWith curl:\n\n```sh\n", c.base())
	fmt.Fprintf(&b, "session=$(curl -si %s -d '%s' | tr -d '\\r' | sed -n 's/^Mcp-Session-Id: //p')\n", endpoint, initializeBody)
	fmt.Fprintf(&b, "curl -s %s -H \"Mcp-Session-Id: $session\" -d '%s'\n```\n\n## Guide\n\n", endpoint,
		`{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"broker://guide/publish-provider"}}`)
	for _, t := range Topics() {
		fmt.Fprintf(&b, "- [%s](%s): %s\n", t.Title, t.URI, t.Summary)
	}
	b.WriteString("\n## Live state\n\n" +
		"- [Broker](broker://info): name, version, uptime, address, paths.\n" +
		"- [Providers](broker://providers): every slot, what serves it, who calls it; accepts subscriptions.\n\n")
	b.WriteString(first)
	return b.String()
}
