package diagnosis

import (
	"fmt"
	"strings"

	"mcpbroker/actors/wire"
)

// Rules about those who call.

// bridgeTarget: a host that is pinned to a provider's slot starts only after
// that provider. An upstream is there from the start, calls wait for it.
func bridgeTarget(d *diagnosis) []Problem {
	if d.Bridge == nil || d.Bridge.Target == "" || wire.Reserved(d.Bridge.Target) || d.managed(d.Bridge.Target) || !d.about(d.Bridge.Target) {
		return nil
	}
	target := d.Bridge.Target
	s := d.find(target)
	if s == nil {
		s = &Slot{}
	}
	severity := Error
	symptom := fmt.Sprintf("Standard input and output are bridged to slot %s, which has no provider: the host's initialize fails.", quote(target))
	if s.Connected {
		severity = Warning
		symptom = fmt.Sprintf("Standard input and output are bridged to slot %s, which a provider serves at present; at the next start of the host it will not be there yet, and the host's initialize fails.", quote(target))
	}
	return []Problem{{
		ID: "stdio-bridge-target-unreachable", Severity: severity, Slot: target,
		Symptom:  symptom,
		Evidence: Evidence{{"stdioBridgeTarget", target}, {"targetConnected", s.Connected}, {"targetTransport", transport(s)}},
		Fix: "Pin the host to _all, which exists before any provider does and shows tools as they come: set MCP_BROKER_STDIO_PROVIDER=_all in the host's entry, or stdioProvider = \"_all\" in broker.toml, " +
			"and restart the host. The provider has to join _all (see broker://guide/publish-provider). If the host is only to look at the broker, _broker does.",
	}}
}

// ownPagesBlocked: pages are served whose calls are refused.
func ownPagesBlocked(d *diagnosis) []Problem {
	if !d.whole() || d.Pages == nil || len(d.Pages.Mounts) == 0 || d.Pages.OriginsConfigured {
		return nil
	}
	return []Problem{{
		ID: "self-served-page-blocked", Severity: Warning,
		Symptom: fmt.Sprintf("The broker serves files at %s and allows no origin: a page among them that calls a slot over HTTP gets 403 invalid_origin, since pages of the broker are not exempt.",
			strings.Join(d.Pages.Mounts, ", ")),
		Evidence: Evidence{{"staticMountPrefixes", d.Pages.Mounts}, {"allowedOriginsConfigured", false}},
		Fix: fmt.Sprintf("Allow the address the pages are opened at: set allowedOrigins = [%s] in broker.toml, or MCP_BROKER_ALLOWED_ORIGINS=%s in the environment, and restart the broker. "+
			"It is compared verbatim: scheme (%s here), host as in the address bar, port, no slash at the end. List every address that is used: at 127.0.0.1 a page has another origin than at localhost.",
			quote(d.base()), d.base(), d.scheme()),
	}}
}

func (d *diagnosis) scheme() string {
	scheme, _, _ := strings.Cut(d.base(), "://")
	return scheme
}

// manySessions is from how many sessions of a slot on abandoned ones are worth a
// word.
const manySessions = 3

// abandonedSessions: sessions that never end by themselves.
func abandonedSessions(d *diagnosis) (found []Problem) {
	if d.SessionIdleTimeoutMs > 0 {
		return nil
	}
	for s := range d.inScope {
		if s.SessionCount < manySessions {
			continue
		}
		found = append(found, Problem{
			ID: "sessions-without-clients", Severity: Info, Slot: s.Name,
			Symptom: fmt.Sprintf("Slot %s has %s. A Streamable HTTP session never ends by itself, so some may belong to clients that are gone; the broker cannot tell.",
				quote(s.Name), count(s.SessionCount, "session")),
			Evidence: Evidence{{"clientCount", s.ClientCount}, {"sessionCount", s.SessionCount}, {"sessionIdleTimeoutMs", 0}},
			Fix: fmt.Sprintf("The number alone is no fault; only steady growth is a leak. Clients end their session with DELETE: curl -X DELETE %s -H 'Mcp-Session-Id: <id>'. "+
				"To end idle ones after an hour, %s.", d.mcpURL(s.Name),
				setting("sessionIdleTimeoutMs", "MCP_BROKER_SESSION_IDLE_TIMEOUT_MS", "3600000")),
		})
	}
	return found
}
