package diagnosis

import (
	"fmt"

	"mcpbroker/actors/msg"
)

// watchedUnhealthy: a provider that came by itself does not pass the check that
// its slot was given. The broker cannot start it again.
func watchedUnhealthy(d *diagnosis) (found []Problem) {
	for n := range d.Watched {
		i := &d.Watched[n]
		if !d.about(i.Slot) || i.Verdict != msg.Unhealthy && i.Verdict != msg.Degraded {
			continue
		}
		severity, what := Error, "is unhealthy: as many checks in a row failed as healthCheck.failureThreshold"
		if i.Verdict == msg.Degraded {
			severity, what = Warning, "is degraded: its last check failed"
		}
		found = append(found, Problem{
			ID: "provider-unhealthy", Severity: severity, Slot: i.Slot,
			Symptom:  fmt.Sprintf("The provider of slot %s is connected and %s. %s.", quote(i.Slot), what, i.Error),
			Evidence: append(Evidence{{"check", i.Check}}, d.trouble(i)...),
			Fix: fmt.Sprintf("The check calls its tool %s: run 'broker call %s %s' to see the answer, with the arguments of healthCheck.args, and look at the provider itself, which the broker cannot restart. "+
				"If the tool needs other arguments or more time, set healthCheck.args or healthCheck.timeoutSeconds in [slots.%s.healthCheck] of broker.toml; "+takenOver+".",
				quote(i.Check), argument(i.Slot), argument(i.Check), quote(i.Slot)),
		})
	}
	return found
}
