package diagnosis

import (
	"fmt"
	"strings"

	"mcpbroker/actors/wire"
)

// The parts that fixes are made of: addresses in effect and settings as they are
// written in the file and in the environment.

func (d *diagnosis) base() string {
	if d.Broker.TLS {
		return "https://" + d.Broker.Authority
	}
	return "http://" + d.Broker.Authority
}

func (d *diagnosis) ws() string { return "ws" + strings.TrimPrefix(d.base(), "http") }

func (d *diagnosis) providerURL(slot string) string {
	return d.ws() + d.Broker.Paths.Provider + "/" + wire.EncodeSlot(slot)
}

func (d *diagnosis) providersURL() string { return d.ws() + d.Broker.Paths.Providers }

func (d *diagnosis) mcpURL(slot string) string {
	return d.base() + "/" + wire.EncodeSlot(slot) + d.Broker.Paths.MCP
}

// setting tells how to set a key in either place. value is as TOML has it.
func setting(key, env, value string) string {
	return fmt.Sprintf("set %s = %s in broker.toml, or %s=%s in the environment, and restart the broker", key, value, env, strings.Trim(value, `"`))
}

// pairing is the rule of spec 03 2.3, for one slot.
func (d *diagnosis) pairing(slot string) string {
	return fmt.Sprintf("Use one of two pairs: DirectTransport (npm) or provider.NewDirect (Go) with %s, which carries plain JSON-RPC frames of this one slot; "+
		"or MultiplexTransport or provider.NewTunnel with %s, which carries envelopes {\"provider\":%s,\"payload\":{...}}. "+
		"Never use %s/%s: it is neither and makes the provider a client.",
		d.providerURL(slot), d.providersURL(), quote(slot), d.providersURL(), wire.EncodeSlot(slot))
}

// deadline says what releases an unanswered request.
func (d *diagnosis) deadline() string {
	if d.RequestTimeoutMs > 0 {
		return fmt.Sprintf("A request without an answer ends after %d ms (providerRequestTimeoutMs) with an error to its caller.", d.RequestTimeoutMs)
	}
	return "providerRequestTimeoutMs is 0, so a request without an answer never ends and no error ever comes: " +
		setting("providerRequestTimeoutMs", "MCP_BROKER_PROVIDER_REQUEST_TIMEOUT_MS", "60000") + "."
}

// heartbeat says what notices a dead provider.
func (d *diagnosis) heartbeat() string {
	if d.HeartbeatMs > 0 {
		return fmt.Sprintf("A provider whose socket is dead is cut after one or two heartbeats of %d ms (providerHeartbeatIntervalMs); a pong does not prove that its handler runs.", d.HeartbeatMs)
	}
	return "The heartbeat is off, so a dead provider is never noticed: " +
		setting("providerHeartbeatIntervalMs", "MCP_BROKER_PROVIDER_HEARTBEAT_MS", "30000") + "."
}

// optIn is how a provider of each kind joins _all.
func (d *diagnosis) optIn(slot string) string {
	if d.managed(slot) {
		return fmt.Sprintf("Set aggregate = true in the entry with name = %s of broker.toml; "+takenOver+". Then list the tools at %s.", quote(slot), d.mcpURL(wire.SlotAggregate))
	}
	return fmt.Sprintf("Joining _all is the provider's decision. npm: new DirectTransport(%s, { aggregate: true }), or MultiplexTransport.create(%s, %s, { aggregate: true }). "+
		"Go: the option provider.WithAggregate(true), on every transport, loopback included. "+
		"By hand on a dedicated socket, send the frame {\"jsonrpc\":\"2.0\",\"method\":\"notifications/register\",\"params\":{\"aggregate\":true}}; "+
		"on the shared socket, send {\"provider\":%s,\"payload\":{\"jsonrpc\":\"2.0\",\"method\":\"notifications/register\",\"params\":{\"aggregate\":true}}}. "+
		"A provider that the broker itself starts or dials: aggregate = true in its entry in broker.toml; "+takenOver+". "+
		"Install the message handler before connecting, since the broker sends initialize at once. Then list the tools at %s.",
		quote(d.providerURL(slot)), quote(slot), quote(d.providersURL()), quote(slot), d.mcpURL(wire.SlotAggregate))
}

// quote spells a name as JSON and JavaScript do.
func quote(s string) string { return string(compact(s)) }

// count writes a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// has is "has" or "have", as count(n) needs it.
func has(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

// quoted joins names for a sentence, the first ten of them.
func quoted(names []string) string {
	const most = 10
	var parts []string
	for _, n := range names[:min(len(names), most)] {
		parts = append(parts, quote(n))
	}
	if left := len(names) - most; left > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", left))
	}
	return strings.Join(parts, ", ")
}
