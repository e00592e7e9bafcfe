package diagnosis

import (
	"fmt"
	"math"
	"strings"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// Rules about what serves a slot. None of them speaks of a request before it is
// slow, and none of a loopback provider: on _broker the diagnosis itself is a
// request in flight.

// waiting reports a slot whose oldest request is slow. The initialize of an upstream
// that is being started has a deadline of its own.
func (d *diagnosis) waiting(s *Slot) bool {
	return s.Connected && !d.starting(s) && s.PendingCount > 0 && d.slow(s.OldestPending)
}

// pathMismatch: a dedicated socket that has not said a word since it connected,
// with a request waiting for it. One that has spoken is on the right path.
func pathMismatch(d *diagnosis) (found []Problem) {
	for s := range d.inScope {
		if !d.waiting(s) || s.Transport != msg.Dedicated || s.Answered {
			continue
		}
		found = append(found, Problem{
			ID: "transport-path-mismatch", Severity: Error, Slot: s.Name,
			Symptom: fmt.Sprintf("The provider of slot %s has been connected for %s on a dedicated socket and has never sent a message, with %s in flight, the oldest for %s.",
				quote(s.Name), d.age(s.ConnectedSince), count(s.PendingCount, "request"), d.age(s.OldestPending)),
			Evidence: append(Evidence{
				{"transport", s.Transport}, {"connected", true}, {"pendingCount", s.PendingCount},
				{"clientCount", s.ClientCount}, {"sessionCount", s.SessionCount},
			}, d.silence(s)...),
			Fix: "Most likely a shared transport was given the URL of a dedicated socket. " + d.pairing(s.Name) +
				" If the pair is right, the provider's message handler is missing, was installed after connecting, or does not run (a page in a throttled background tab): " +
				"install it before connecting and answer every request with the id it came with. " + d.deadline(),
		})
	}
	return found
}

// silence is the evidence that a provider has said nothing.
func (d *diagnosis) silence(s *Slot) Evidence {
	return Evidence{
		{"oldestPendingMs", d.ageMs(s.OldestPending)}, {"connectedForMs", d.ageMs(s.ConnectedSince)},
		{"heardSinceConnected", false}, {"slowAfterMs", d.slowFrom.Milliseconds()},
	}
}

// notResponding: the same on a shared socket, where the framing was right.
func notResponding(d *diagnosis) (found []Problem) {
	for s := range d.inScope {
		if !d.waiting(s) || s.Transport != msg.Multiplexed || s.Answered {
			continue
		}
		found = append(found, Problem{
			ID: "provider-not-responding", Severity: Warning, Slot: s.Name,
			Symptom: fmt.Sprintf("The provider of slot %s has been connected for %s on a shared socket and has not sent a JSON-RPC message, with %s in flight, the oldest for %s.",
				quote(s.Name), d.age(s.ConnectedSince), count(s.PendingCount, "request"), d.age(s.OldestPending)),
			Evidence: append(Evidence{
				{"transport", s.Transport}, {"pendingCount", s.PendingCount}, {"clientCount", s.ClientCount}, {"sessionCount", s.SessionCount},
			}, d.silence(s)...),
			Fix: fmt.Sprintf("The framing is right: envelopes arrive on %s. See that the provider's code runs (a page in a background tab is throttled; bring it to the front) "+
				"and that it answers each request in an envelope with the id it came with, {\"provider\":%s,\"payload\":{\"jsonrpc\":\"2.0\",\"id\":\"brk-1\",\"result\":{}}}. "+
				"%s A request also ends when the provider disconnects or its caller leaves. %s", d.providersURL(), quote(s.Name), d.deadline(), d.heartbeat()),
		})
	}
	return found
}

// slowProvider: it has spoken before, so its framing and its path are right. That it has
// ever answered a request is known only of an upstream, which has answered initialize.
func slowProvider(d *diagnosis) (found []Problem) {
	for s := range d.inScope {
		if !d.waiting(s) || s.Transport == msg.Loopback || !s.Answered {
			continue
		}
		who := "provider"
		if s.Transport == msg.Upstream {
			who = "upstream"
		}
		found = append(found, Problem{
			ID: "provider-slow", Severity: Info, Slot: s.Name,
			Symptom: fmt.Sprintf("The %s of slot %s has sent messages since it connected, and %s without its answer, the oldest for %s.",
				who, quote(s.Name), waitFor(s.PendingCount), d.age(s.OldestPending)),
			Evidence: Evidence{
				{"transport", s.Transport}, {"pendingCount", s.PendingCount}, {"oldestPendingMs", d.ageMs(s.OldestPending)},
				{"heardSinceConnected", true}, {"slowAfterMs", d.slowFrom.Milliseconds()}, {"providerRequestTimeoutMs", d.RequestTimeoutMs},
			},
			Fix: d.whatHolds(s),
		})
	}
	return found
}

// whatHolds says what to do about a request that takes long.
func (d *diagnosis) whatHolds(s *Slot) string {
	const meant = "Nothing, if the tool is meant to take that long. "
	const progress = "A tool that needs longer sends notifications/progress, which extends the deadline up to ten times. "
	if s.Transport == msg.Upstream {
		return meant + progress + "If it hangs: " + d.lookInto(s)
	}
	return meant + "If no request is ever answered, see that each answer has the id of its request. " + d.deadline() + " " + progress +
		"If it hangs, cancel the call with notifications/cancelled, or restart the provider: its requests then fail at once."
}

// queueNearBound: at the bound calls are refused.
func queueNearBound(d *diagnosis) (found []Problem) {
	for s := range d.inScope {
		if s.MaxPending <= 0 || s.PendingCount < (s.MaxPending*4+4)/5 {
			continue
		}
		severity, state := Warning, "is near"
		if s.PendingCount >= s.MaxPending {
			severity, state = Error, "is at"
		}
		found = append(found, Problem{
			ID: "queue-near-bound", Severity: severity, Slot: s.Name,
			Symptom: fmt.Sprintf("Slot %s has %d of at most %d requests waiting: it %s its bound, where further requests are refused with -32000.",
				quote(s.Name), s.PendingCount, s.MaxPending, state),
			Evidence: Evidence{
				{"pendingCount", s.PendingCount}, {"maxPending", s.MaxPending}, {"oldestPendingMs", d.ageMs(s.OldestPending)},
				{"clientCount", s.ClientCount}, {"sessionCount", s.SessionCount},
			},
			Fix: fmt.Sprintf("The provider is slower than its clients. Let clients wait for answers before they send more, or spread the load over more slots. If bursts are meant to be this large, %s.",
				setting("maxPendingPerSlot", "MCP_BROKER_MAX_PENDING_PER_SLOT", fmt.Sprint(min(2*int64(s.MaxPending), math.MaxInt32)))),
		})
	}
	return found
}

// flapWindow is the time within which the remembered attachments count as a
// loop, and for how long the loop is spoken of.
const flapWindow = time.Minute

// restartLoop: a provider that keeps coming back; of an upstream crashLoop speaks.
func restartLoop(d *diagnosis) (found []Problem) {
	for s := range d.inScope {
		oldest := s.Attached[len(s.Attached)-1]
		if oldest.IsZero() || d.ageMs(oldest) > flapWindow.Milliseconds() || d.managed(s.Name) {
			continue
		}
		found = append(found, Problem{
			ID: "restart-loop", Severity: Warning, Slot: s.Name,
			Symptom: fmt.Sprintf("A provider attached to slot %s %d times within %s.", quote(s.Name), len(s.Attached), d.age(oldest)),
			Evidence: Evidence{
				{"attachments", len(s.Attached)}, {"withinMs", d.ageMs(oldest)}, {"newestMs", d.ageMs(s.Attached[0])},
				{"connected", s.Connected}, {"transport", transport(s)}, {"providerTakeover", d.Takeover},
			},
			Fix: fmt.Sprintf("Either the provider fails right after it connected, or two programs publish %s and take it from each other. "+
				"Read the last lines of the broker's log that name %s and of the provider's own log; give each program a slot of its own; "+
				"let a provider that was closed wait before it connects again, 1 s doubling to 30 s.", quote(s.Name), quote(s.Name)),
		})
	}
	return found
}

// failedSlot: the slot's actor failed and was restarted.
func failedSlot(d *diagnosis) (found []Problem) {
	for s := range d.inScope {
		if s.Restarts <= 0 {
			continue
		}
		found = append(found, Problem{
			ID: "restart-loop", Severity: Warning, Slot: s.Name,
			Symptom: fmt.Sprintf("The broker's own handling of slot %s failed %s; each failure cost one caller an error with code -32603, and the slot went on.",
				quote(s.Name), count(s.Restarts, "time")),
			Evidence: Evidence{{"actorRestarts", s.Restarts}},
			Fix:      "This is a fault of the broker. Look for \"crashed\" at level error in its log, note the request or frame that preceded it, and report both with the broker's version. Restarting the broker is not needed.",
		})
	}
	return found
}

// neverConnected: a slot that nobody serves. That of an upstream has rules of its
// own.
func neverConnected(d *diagnosis) (found []Problem) {
	for s := range d.inScope {
		if s.Reserved || s.Connected || transport(s) != msg.NoProvider || d.managed(s.Name) {
			continue
		}
		severity, waiting := Info, "Nobody is waiting for it."
		if n := s.Callers(); n > 0 {
			severity, waiting = Error, fmt.Sprintf("%s %s connected and cannot be served.", count(n, "client"), has(n))
		}
		evidence := Evidence{{"transport", transport(s)}, {"connected", false}, {"clientCount", s.ClientCount}, {"sessionCount", s.SessionCount}}
		if s.OtherCount > 0 {
			evidence = append(evidence, Field{"stdioHostCount", s.OtherCount})
		}
		symptom := fmt.Sprintf("Slot %s exists because somebody named it; no provider has ever served it.", quote(s.Name))
		if last := s.Attached[0]; !last.IsZero() {
			symptom = fmt.Sprintf("Slot %s has no provider at present; the last one attached %s ago%s.", quote(s.Name), d.age(last), cut(s))
			evidence = append(evidence, Field{"lastAttachedAt", stamp{last}.text()})
		}
		found = append(found, Problem{
			ID: "slot-never-connected", Severity: severity, Slot: s.Name,
			Symptom: symptom + " " + waiting, Evidence: evidence, Fix: d.fill(s),
		})
	}
	return found
}

// cut ends a sentence about a provider that the heartbeat has found dead.
func cut(s *Slot) string {
	if !s.LeftSilent {
		return ""
	}
	return " and was cut by the broker, since it did not answer a ping of the heartbeat (providerHeartbeatIntervalMs)"
}

// fill says how a slot gets a provider.
func (d *diagnosis) fill(s *Slot) string {
	if name := d.misdialled(s.Name); name != "" {
		return fmt.Sprintf("The name looks like a provider's URL: a provider that dials %s/%s becomes a client of this slot. %s",
			d.providersURL(), wire.EncodeSlot(name), d.pairing(name))
	}
	switch {
	case s.LeftSilent:
		return fmt.Sprintf("Its machine or network was away, or its program hung: a WebSocket library answers pings by itself as long as the program lets it. See that the provider runs and connects again by itself (MultiplexTransport and provider.NewTunnel do, the dedicated transport does not); "+
			"one that is busy or throttled for longer than the heartbeat needs a longer one: %s. %s", setting("providerHeartbeatIntervalMs", "MCP_BROKER_PROVIDER_HEARTBEAT_MS", fmt.Sprint(2*max(d.HeartbeatMs, 1))), d.pairing(s.Name))
	case !s.Attached[0].IsZero():
		return "Start its provider again. " + d.pairing(s.Name)
	}
	hint := ""
	if strings.Contains(s.Name, "/") {
		hint = "A slash in the name often means a provider that dialled a wrong path, which makes it a client of the slot with that path. "
	}
	return hint + "If the name is misspelt, use the right one: names are case-sensitive, and providers_list on _broker has them all. Otherwise start the provider. " + d.pairing(s.Name)
}

// misdialled returns the slot a provider meant when it made this one by dialling
// <providers>/<slot>; empty when the name does not look like it.
func (d *diagnosis) misdialled(slot string) string {
	name, ok := strings.CutPrefix(slot, strings.TrimPrefix(d.Broker.Paths.Providers, "/")+"/")
	if !ok {
		return ""
	}
	return name
}

// noProviders: only the reserved slots answer.
func noProviders(d *diagnosis) []Problem {
	if !d.whole() {
		return nil
	}
	known, slots := []string{}, 0
	for i := range d.Slots {
		s := &d.Slots[i]
		if (s.Connected || s.Expected) && !s.Reserved {
			return nil
		}
		if !s.Reserved && d.served(s) {
			slots++
		}
		known = append(known, s.Name)
	}
	return []Problem{{
		ID: "no-providers", Severity: Warning,
		Symptom:  "No provider is connected: only the broker's own slots answer.",
		Evidence: Evidence{{"knownSlots", known[:min(len(known), maxPerRule)]}, {"providerSlots", slots}},
		Fix: fmt.Sprintf("Start a provider. It connects to %s/<slot> with plain JSON-RPC frames (DirectTransport, provider.NewDirect), or to %s with envelopes (MultiplexTransport, provider.NewTunnel). "+
			"Do not use %s/<slot>: it makes the provider a client. Or let the broker start or dial one: broker.toml has [[stdioUpstreams]], [[mcpServers]] and [[mcpbBundles]] for that. To try the broker without a provider of your own, start it with 'broker run --demo'. "+
			"The resource broker://guide/publish-provider has complete examples.", d.ws()+d.Broker.Paths.Provider, d.providersURL(), d.providersURL()),
	}}
}
