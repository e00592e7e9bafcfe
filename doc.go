// Package mcpbroker embeds a broker for the Model Context Protocol: many MCP
// servers behind one host and one port, each in a named slot.
//
//	b, err := mcpbroker.New(mcpbroker.WithPort(3000))
//	if err != nil { ... }
//	if err := b.Start(ctx); err != nil { ... }
//	defer b.Stop(context.Background())
//
// Providers connect to /provider/<slot> or share /providers, or live in the same
// process on a provider.Loopback, for which Broker is the Attacher. Clients reach
// a slot at /<slot>/mcp.
//
// This package is the only place that wires the others together.
package mcpbroker
