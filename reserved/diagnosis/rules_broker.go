package diagnosis

import (
	"fmt"
	"net"
	"strconv"
)

// Rules about the broker as a whole.

// notStarted: there is no start time.
func notStarted(d *diagnosis) []Problem {
	if !d.Broker.StartedAt.IsZero() {
		return nil
	}
	return []Problem{{
		ID: "broker-not-started", Severity: Error,
		Symptom:  "The broker is not listening: it has not started.",
		Evidence: Evidence{{"startedAt", nil}, {"uptimeSeconds", 0}},
		Fix: fmt.Sprintf("Run 'broker run', or call Start in the program that embeds the broker. If it was called, read the error it returned: "+
			"most often another process holds port %d; 'broker doctor' tells, and MCP_BROKER_PORT=3001 picks another port.", d.Broker.Port),
	}}
}

// portBoundWide: whoever reaches the port needs no credentials.
func portBoundWide(d *diagnosis) []Problem {
	b := d.Broker
	if !d.whole() || !b.BoundWide || b.ClientAuth && b.ProviderAuth {
		return nil
	}
	var open string
	switch {
	case !b.ClientAuth && !b.ProviderAuth:
		open = "call the tools of every slot and publish a provider under any free name"
	case !b.ClientAuth:
		open = "call the tools of every slot"
	default:
		open = "publish a provider under any free name"
	}
	return []Problem{{
		ID: "port-bound-wide", Severity: Warning,
		Symptom: fmt.Sprintf("The broker listens on %s, beyond this machine, without authentication: whoever reaches the port can %s.",
			net.JoinHostPort(b.Host, strconv.Itoa(b.Port)), open),
		Evidence: Evidence{{"host", b.Host}, {"port", b.Port}, {"clientAuth", b.ClientAuth}, {"providerAuth", b.ProviderAuth}},
		Fix: "If only this machine needs it, " + setting("host", "MCP_BROKER_HOST", `"127.0.0.1"`) +
			". Otherwise bind 127.0.0.1 all the same and put a proxy in front that authenticates, or restrict the port with a firewall to the machines that need it.",
	}}
}

// takeoverDowngraded: "always" needs providers that authenticate.
func takeoverDowngraded(d *diagnosis) []Problem {
	if !d.whole() || d.Takeover != "always" || d.Broker.ProviderAuth {
		return nil
	}
	return []Problem{{
		ID: "takeover-downgraded", Severity: Info,
		Symptom:  `providerTakeover is "always", which applies only between providers that authenticated as the same identity; without provider authentication the broker does as with "liveness".`,
		Evidence: Evidence{{"providerTakeover", d.Takeover}, {"providerAuth", false}},
		Fix:      "Say what happens: " + setting("providerTakeover", "MCP_BROKER_PROVIDER_TAKEOVER", `"liveness"`) + ".",
	}}
}
