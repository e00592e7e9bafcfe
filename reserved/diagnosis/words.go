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
		return fmt.Sprintf("A request without an answer ends after %s (providerRequestTimeoutMs = %d) with an error to its caller.", span(d.RequestTimeoutMs), d.RequestTimeoutMs)
	}
	return "providerRequestTimeoutMs is 0, so a request without an answer never ends and no error ever comes: " +
		setting("providerRequestTimeoutMs", "MCP_BROKER_PROVIDER_REQUEST_TIMEOUT_MS", "60000") + "."
}

// heartbeat says what notices a dead provider.
func (d *diagnosis) heartbeat() string {
	if d.HeartbeatMs > 0 {
		return fmt.Sprintf("A provider whose socket is dead is cut after one or two heartbeats of %s (providerHeartbeatIntervalMs = %d); a pong does not prove that its handler runs.", span(d.HeartbeatMs), d.HeartbeatMs)
	}
	return "The heartbeat is off, so a dead provider is never noticed: " +
		setting("providerHeartbeatIntervalMs", "MCP_BROKER_PROVIDER_HEARTBEAT_MS", "30000") + "."
}

// anySlot stands for the name of a slot nobody has made yet.
const anySlot = "<slot>"

// optIn is how a provider of each kind joins _all.
func (d *diagnosis) optIn(slot string) string {
	url := d.providerURL(slot)
	if slot == anySlot {
		url = d.ws() + d.Broker.Paths.Provider + "/" + anySlot
	}
	if d.managed(slot) {
		return fmt.Sprintf("Set aggregate = true in the entry with name = %s of broker.toml; "+takenOver+". Then list the tools at %s.", quote(slot), d.mcpURL(wire.SlotAggregate))
	}
	return fmt.Sprintf("Joining _all is the provider's decision. npm: new DirectTransport(%s, { aggregate: true }), or MultiplexTransport.create(%s, %s, { aggregate: true }). "+
		"Go: the option provider.WithAggregate(true), on every transport, loopback included. "+
		"By hand on a dedicated socket, send the frame {\"jsonrpc\":\"2.0\",\"method\":\"notifications/register\",\"params\":{\"aggregate\":true}}; "+
		"on the shared socket, send {\"provider\":%s,\"payload\":{\"jsonrpc\":\"2.0\",\"method\":\"notifications/register\",\"params\":{\"aggregate\":true}}}. "+
		"A provider that the broker itself starts or dials: aggregate = true in its entry in broker.toml; "+takenOver+". "+
		"Install the message handler before connecting, since the broker sends initialize at once. Then list the tools at %s.",
		quote(url), quote(slot), quote(d.providersURL()), quote(slot), d.mcpURL(wire.SlotAggregate))
}

// span is a time in milliseconds as a sentence has it: in the largest two units.
func span(ms int64) string {
	seconds := ms / 1000
	switch {
	case ms > -1000 && ms < 1000:
		return fmt.Sprintf("%dms", ms)
	case seconds < 2*60:
		return fmt.Sprintf("%ds", seconds)
	case seconds < 60*60:
		return fmt.Sprintf("%dm%02ds", seconds/60, seconds%60)
	case seconds < 24*60*60:
		return fmt.Sprintf("%dh%02dm", seconds/3600, seconds/60%60)
	}
	return fmt.Sprintf("%dd%02dh", seconds/86400, seconds/3600%24)
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

// waitFor is how a sentence about requests that wait goes on.
func waitFor(n int) string {
	if n == 1 {
		return "1 request waits"
	}
	return fmt.Sprintf("%d requests wait", n)
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
