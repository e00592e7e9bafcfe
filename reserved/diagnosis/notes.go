package diagnosis

import "mcpbroker/actors/wire"

// skipped names the checks whose facts are missing (spec 03 2.5.2).
func (d *diagnosis) skipped() []Skipped {
	list := []Skipped{}
	if d.Instances == nil {
		list = append(list, Skipped{"upstream-failed", "How the upstreams are is not known here, nor are the other checks of them made. Run 'broker get instances'; if that fails, read the broker's log for lines with the word upstream."})
	}
	if d.Facts.Aggregate == nil {
		list = append(list, Skipped{"aggregate-empty", "The members of _all are not known here. List the tools of _all: names other than _broker-* belong to members."})
	}
	if d.Bridge == nil {
		list = append(list, Skipped{"stdio-bridge-target-unreachable", "The target of the stdio bridge is not known here. See that MCP_BROKER_STDIO_PROVIDER (stdioProvider) is _all where a host starts the broker."})
	}
	if d.Pages == nil {
		list = append(list, Skipped{"self-served-page-blocked", "The mounted directories and allowed origins are not known here. If the broker serves pages that call slots, see that allowedOrigins holds the address they are opened at."})
	}
	return list
}

// notes are what follows from settings and is no problem (spec 03 2.5.3).
func (d *diagnosis) notes() []string {
	list := []string{}
	if d.Broker.ProviderAuth {
		list = append(list, "Providers authenticate with a header, which a browser cannot send with a WebSocket: a provider in a page sees a bare error event while the broker answers 401. "+
			"Run such a provider against a broker without provider authentication, or let a proxy authenticate it.")
	}
	if d.Broker.ClientAuth && d.Bridge != nil && d.Bridge.Target == wire.SlotAggregate {
		list = append(list, "The stdio bridge to _all has no identity: once anonymous callers are denied, its host sees an empty list of tools and no error.")
	}
	return list
}
