package brokertest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbroker/actors/wire"
	"mcpbroker/provider"
)

// Provider is a provider's end of one slot: JSON-RPC messages without their
// framing.
type Provider interface {
	Send(frame string)
	Receive() string
}

// Dedicated connects a provider of its own socket and waits until it holds the
// slot.
func (b *Broker) Dedicated(t testing.TB, slot string) *Socket {
	t.Helper()
	s := Dial(t, b.ProviderURL(slot), nil)
	b.Connected(t, slot)
	return s
}

// Lane is one slot of a multiplexed socket.
type Lane struct {
	*Socket
	slot string
}

// Multiplexed connects a socket that announces one slot, and waits until it holds
// it.
func (b *Broker) Multiplexed(t testing.TB, slot string) *Lane {
	t.Helper()
	return b.Lane(t, Dial(t, b.ProvidersURL(), nil), slot)
}

// Lane announces a slot on a multiplexed socket and waits until it holds it.
func (b *Broker) Lane(t testing.TB, s *Socket, slot string) *Lane {
	t.Helper()
	l := &Lane{s, slot}
	l.Send(`{"jsonrpc":"2.0","method":"notifications/register"}`)
	b.Connected(t, slot)
	return l
}

// Send wraps a message into an envelope.
func (l *Lane) Send(frame string) {
	l.t.Helper()
	l.Socket.Send(string(wire.Wrap(l.slot, []byte(frame))))
}

// Receive returns the payload of the next envelope, which must be the slot's.
func (l *Lane) Receive() string {
	l.t.Helper()
	frame := l.Socket.Receive()
	lead := string(wire.Wrap(l.slot, nil))
	payload, ok := strings.CutPrefix(frame, lead[:len(lead)-1])
	if !ok || !strings.HasSuffix(payload, "}") {
		l.t.Fatalf("slot %q received %s", l.slot, frame)
	}
	return payload[:len(payload)-1]
}

// Loop is a provider in the broker's process.
type Loop struct {
	t      testing.TB
	port   provider.Port
	frames chan string
	once   sync.Once
	closed chan string
}

var _ provider.Peer = (*Loop)(nil)

// Loopback attaches a provider in the broker's process and waits until the slot is held.
func (b *Broker) Loopback(t testing.TB, slot string) *Loop {
	t.Helper()
	l := &Loop{t: t, frames: make(chan string, 4096), closed: make(chan string, 1)}
	port, err := b.AttachLoopback(slot, nil, l)
	if err != nil {
		t.Fatalf("attach a loopback to slot %q: %v", slot, err)
	}
	l.port = port
	t.Cleanup(func() { _ = port.Close() })
	b.Connected(t, slot)
	return l
}

// Deliver implements provider.Peer.
func (l *Loop) Deliver(frame []byte) { l.frames <- string(frame) }

// Closed implements provider.Peer.
func (l *Loop) Closed(code int, reason string) {
	l.once.Do(func() { l.closed <- fmt.Sprint(code, " ", reason) })
}

// Send implements Provider.
func (l *Loop) Send(frame string) {
	l.t.Helper()
	if err := l.port.Send([]byte(frame)); err != nil {
		l.t.Fatalf("send %.200s: %v", frame, err)
	}
}

// Receive implements Provider.
func (l *Loop) Receive() string {
	l.t.Helper()
	return await(l.t, l.frames, "a frame for the loopback")
}

// End waits until the broker ends the loopback and returns its code and reason.
func (l *Loop) End() string {
	l.t.Helper()
	return await(l.t, l.closed, "the end of the loopback")
}

// Port is the broker's end.
func (l *Loop) Port() provider.Port { return l.port }

func await[T any](t testing.TB, from <-chan T, what string) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(patience):
		t.Fatalf("no %s within %s", what, patience)
	}
	panic("unreachable")
}

// ServerResult is what Handshake answers to initialize.
const ServerResult = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`

// Handshake opens the first session of a slot: the provider answers the
// initialize with ServerResult and gets the notifications/initialized.
func (c *Client) Handshake(p Provider) {
	c.t.Helper()
	c.HandshakeWith(p, ServerResult)
}

// HandshakeWith is Handshake with another result.
func (c *Client) HandshakeWith(p Provider, result string) {
	c.t.Helper()
	reply := c.Start(InitializeFrame)
	Respond(p, p.Receive(), result)
	a := c.Await(reply)
	if c.Session = a.Header.Get("Mcp-Session-Id"); c.Session == "" {
		c.t.Fatalf("initialize opened no session: %d %s", a.Status, a.Body)
	}
	if a := c.Post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`); a.Status != 202 {
		c.t.Fatalf("notifications/initialized: %d %s", a.Status, a.Body)
	}
	p.Receive()
}

// Await waits for the answer to a request of Start.
func (c *Client) Await(reply <-chan Answer) Answer {
	c.t.Helper()
	return await(c.t, reply, "answer to a request")
}

// Respond sends the result of a request the provider has received.
func Respond(p Provider, request, result string) {
	p.Send(`{"jsonrpc":"2.0","id":` + ID(request) + `,"result":` + result + `}`)
}

// ID is the raw id of a message.
func ID(message string) string { return string(wire.Member([]byte(message), "id")) }
