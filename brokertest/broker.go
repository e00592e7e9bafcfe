// Package brokertest starts a real broker in a test: on 127.0.0.1, on a free
// port, ready before Start returns, stopped when the test ends.
package brokertest

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"mcpbroker"
)

// Options of a broker under test. The zero value is the default configuration.
type Options struct {
	// Configure are applied last, on top of host 127.0.0.1 and a free port.
	Configure []mcpbroker.Option
	// Plain leaves out the slots _broker and _all, so that every slot is the
	// test's own and no provider is greeted by _all.
	Plain bool
}

// Broker is a running broker and its log.
type Broker struct {
	*mcpbroker.Broker
	Log *Log
}

// Start starts a broker and registers its stop with t. Its log goes to the
// test's output.
func Start(t testing.TB, o Options) *Broker {
	t.Helper()
	b := &Broker{Log: NewLog(t)}
	options := append([]mcpbroker.Option{
		mcpbroker.WithHost("127.0.0.1"), mcpbroker.WithPort(0), mcpbroker.WithLogger(slog.New(b.Log)),
		mcpbroker.WithIntrospection(!o.Plain), mcpbroker.WithAggregate(!o.Plain),
	}, o.Configure...)
	var err error
	if b.Broker, err = mcpbroker.New(options...); err != nil {
		t.Fatalf("configure the broker: %v", err)
	}
	if err := b.Broker.Start(t.Context()); err != nil {
		t.Fatalf("start the broker: %v", err)
	}
	t.Cleanup(func() { b.Stop(t) })
	return b
}

// Stop stops the broker before the test ends.
func (b *Broker) Stop(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := b.Broker.Stop(ctx); err != nil {
		t.Errorf("stop the broker: %v", err)
	}
}

// local names the address the broker is bound to: localhost may be another one.
func local(url string) string { return strings.Replace(url, "://localhost:", "://127.0.0.1:", 1) }

// URL is the base URL, http://127.0.0.1:<port>.
func (b *Broker) URL() string { return local(b.Broker.URL()) }

// WSURL is the base URL for WebSockets.
func (b *Broker) WSURL() string { return "ws" + strings.TrimPrefix(b.URL(), "http") }

// MCPURL is the Streamable HTTP endpoint of a slot.
func (b *Broker) MCPURL(slot string) string { return local(b.Broker.MCPURL(slot)) }

// ProviderURL is where a dedicated provider of a slot connects.
func (b *Broker) ProviderURL(slot string) string { return local(b.Broker.ProviderURL(slot)) }

// ProvidersURL is where multiplexed providers connect.
func (b *Broker) ProvidersURL() string { return local(b.Broker.ProvidersURL()) }

// ClientURL is where a raw WebSocket client of a slot connects.
func (b *Broker) ClientURL(slot string) string { return local(b.Broker.ClientURL(slot)) }
