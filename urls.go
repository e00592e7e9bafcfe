package mcpbroker

import (
	"net"
	"strconv"
	"strings"

	"mcpbroker/actors/wire"
)

// URL is the base URL of the broker, with the port it really listens on.
func (b *Broker) URL() string {
	port := b.config.Port
	if addr, ok := b.Addr().(*net.TCPAddr); ok {
		port = addr.Port
	}
	return b.config.Scheme() + "://" + net.JoinHostPort(reachable(b.config.Host), strconv.Itoa(port))
}

// MCPURL is the Streamable HTTP endpoint of a slot.
func (b *Broker) MCPURL(slot string) string {
	return b.URL() + "/" + wire.EncodeSlot(slot) + "/" + strings.Trim(b.config.Paths.MCP, "/")
}

// SSEURL is the legacy event stream of a slot.
func (b *Broker) SSEURL(slot string) string {
	return b.URL() + "/" + wire.EncodeSlot(slot) + "/" + strings.Trim(b.config.Paths.SSE, "/")
}

// ProviderURL is where a dedicated provider of a slot connects.
func (b *Broker) ProviderURL(slot string) string {
	return b.webSocketURL() + b.config.Paths.Provider + "/" + wire.EncodeSlot(slot)
}

// ProvidersURL is where multiplexed providers connect.
func (b *Broker) ProvidersURL() string { return b.webSocketURL() + b.config.Paths.Providers }

// ClientURL is where a raw WebSocket client of a slot connects.
func (b *Broker) ClientURL(slot string) string {
	return b.webSocketURL() + "/" + wire.EncodeSlot(slot)
}

func (b *Broker) webSocketURL() string { return "ws" + strings.TrimPrefix(b.URL(), "http") }
