package diagnosis

import (
	"cmp"
	"fmt"
	"slices"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// Rules about _all.

// missingSlot is how evidence names a slot outside _all.
type missingSlot struct {
	Name      string           `json:"name"`
	Transport msg.ProviderKind `json:"transport"`
}

// aggregating reports an _all that is known and on.
func (d *diagnosis) aggregating() bool {
	return d.Facts.Aggregate != nil && d.Facts.Aggregate.Enabled
}

func aggregateDisabled(d *diagnosis) []Problem {
	if d.Facts.Aggregate == nil || d.aggregating() || !d.about(wire.SlotAggregate) {
		return nil
	}
	return []Problem{{
		ID: "aggregate-disabled", Severity: Info, Slot: wire.SlotAggregate,
		Symptom:  "The slot _all is switched off: clients and hosts pinned to it find no tools.",
		Evidence: Evidence{{"enabled", false}},
		Fix:      "In the program that embeds the broker, leave out the option that switches the aggregate off. Until then, connect clients to the slots of the providers.",
	}}
}

// aggregateEmpty: nobody has opted in.
func aggregateEmpty(d *diagnosis) []Problem {
	if !d.whole() || !d.aggregating() {
		return nil
	}
	connected, severity := []string{}, Info
	for i := range d.Slots {
		s := &d.Slots[i]
		if s.Reserved || !s.Connected {
			continue
		}
		if s.SlotInfo.Aggregate {
			return nil // it asked: aggregateMissingMember speaks of it
		}
		connected, severity = append(connected, s.Name), Warning
	}
	if len(d.joined(false)) > 0 {
		return nil
	}
	symptom := "No provider has joined _all: its clients see the tools of _broker only. No provider is connected."
	example := anySlot
	if len(connected) > 0 {
		symptom = fmt.Sprintf("No provider has joined _all: its clients see the tools of _broker only, although %s %s connected: %s.",
			count(len(connected), "provider"), isAre(len(connected)), quoted(connected))
		example = connected[0]
	}
	return []Problem{{
		ID: "aggregate-empty", Severity: severity, Slot: wire.SlotAggregate,
		Symptom:  symptom,
		Evidence: Evidence{{"aggregateProviders", d.joined(true)}, {"connectedProviderSlots", connected}},
		Fix:      d.optIn(example),
	}}
}

// aggregateMissingLive: some have opted in and others have not.
func aggregateMissingLive(d *diagnosis) []Problem {
	if !d.whole() || !d.aggregating() || len(d.joined(false)) == 0 {
		return nil
	}
	missing := []missingSlot{}
	var names []string
	for i := range d.Slots {
		s := &d.Slots[i]
		if s.Reserved || !s.Connected || s.SlotInfo.Aggregate || d.members[s.Name].Joined {
			continue
		}
		missing, names = append(missing, missingSlot{s.Name, transport(s)}), append(names, s.Name)
	}
	if len(missing) == 0 {
		return nil
	}
	example := names[0]
	if i := slices.IndexFunc(names, func(n string) bool { return !d.managed(n) }); i >= 0 {
		example = names[i] // what is said to it covers upstreams, too
	}
	return []Problem{{
		ID: "aggregate-missing-live-slots", Severity: Info, Slot: wire.SlotAggregate,
		Symptom:  fmt.Sprintf("_all leaves out %s that did not ask to join: %s.", count(len(names), "connected provider"), quoted(names)),
		Evidence: Evidence{{"missing", missing[:min(len(missing), maxPerRule)]}, {"aggregateProviders", d.joined(true)}},
		Fix:      "Nothing, if that is meant. " + d.optIn(example),
	}}
}

// aggregateMissingMember: a connected provider asked to join and is not in the
// catalog.
func aggregateMissingMember(d *diagnosis) (found []Problem) {
	if !d.aggregating() {
		return nil
	}
	for i := range d.Slots {
		s := &d.Slots[i]
		if !d.about(s.Name) && d.slot != wire.SlotAggregate || !d.leftOut(s) || d.members[s.Name].Loop {
			continue
		}
		m := d.members[s.Name]
		reason := cmp.Or(m.Reason, "no handshake has been seen")
		e := Evidence{
			{"reason", reason}, {"connectedForMs", d.ageMs(s.ConnectedSince)}, {"pendingCount", s.PendingCount},
			{"oldestPendingMs", d.ageMs(s.OldestPending)}, {"transport", transport(s)},
		}
		if m.Joining {
			e = append(e, Field{"handshakeWaitsMs", d.ageMs(m.Since)})
		}
		found = append(found, Problem{
			ID: "aggregate-member-missing", Severity: Warning, Slot: s.Name,
			Symptom:  fmt.Sprintf("The provider of slot %s asked to join _all and is not in it: %s.", quote(s.Name), reason),
			Evidence: e,
			Fix:      d.admit(s.Name, reason),
		})
	}
	return found
}

// aggregateLoop: a member of _all that has this _all among its own members.
func aggregateLoop(d *diagnosis) (found []Problem) {
	if !d.aggregating() {
		return nil
	}
	for _, m := range d.Facts.Aggregate.Members {
		if !m.Loop || !d.about(m.Slot) && d.slot != wire.SlotAggregate {
			continue
		}
		e, where := Evidence{{"reason", m.Reason}}, "on the side of its provider, do not join _all"
		again := "connect the provider again"
		if i := d.instance(m.Slot); i != nil {
			e = append(e, Field{"target", i.Target})
			where = fmt.Sprintf("set aggregate = false in %s of broker.toml (%s), or take it out", entry(i), takenOver)
			again = "run " + command("restart", m.Slot)
		}
		found = append(found, Problem{
			ID: "aggregate-loop", Severity: Warning, Slot: m.Slot,
			Symptom: fmt.Sprintf("Slot %s is not in _all: its provider is the _all of a broker that has this broker in its own _all, directly or through others. "+
				"Joined, the two would list each other's tools for ever.", quote(m.Slot)),
			Evidence: e,
			Fix: fmt.Sprintf("One direction has to go. To let the other broker list this one only: %s. To let this broker list the other one only: "+
				"do the same with the other broker's entry for this one, then %s here. Calls of the slot at %s work meanwhile.",
				where, again, d.mcpURL(m.Slot)),
		})
	}
	return found
}

// leftOut reports a provider that asked to join and that _all has given up, has
// not taken notice of, or waits for in vain.
func (d *diagnosis) leftOut(s *Slot) bool {
	m, known := d.members[s.Name]
	switch {
	case !s.Connected || !s.SlotInfo.Aggregate || m.Joined || d.starting(s):
		return false
	case m.Joining: // a client's call that came before may hold it up
		return d.slow(m.Since) && (s.PendingCount == 0 || !s.OldestPending.Before(m.Since))
	case known:
		return true
	}
	return d.slow(s.ConnectedSince)
}

// aggregateIncomplete: a member of whose catalog a part is missing.
func aggregateIncomplete(d *diagnosis) (found []Problem) {
	if !d.aggregating() {
		return nil
	}
	for _, m := range d.Facts.Aggregate.Members {
		if !m.Joined || m.Restarting || m.Reason == "" || !d.about(m.Slot) && d.slot != wire.SlotAggregate {
			continue
		}
		found = append(found, Problem{
			ID: "aggregate-member-incomplete", Severity: Warning, Slot: m.Slot,
			Symptom:  fmt.Sprintf("_all shows only a part of what slot %s publishes: %s.", quote(m.Slot), m.Reason),
			Evidence: Evidence{{"reason", m.Reason}, {"joinedForMs", d.ageMs(m.Since)}},
			Fix:      d.complete(m.Slot, m.Reason),
		})
	}
	return found
}

// aggregateRestarting: a member whose provider is on its way back.
func aggregateRestarting(d *diagnosis) (found []Problem) {
	if !d.aggregating() {
		return nil
	}
	for _, m := range d.Facts.Aggregate.Members {
		if !m.Restarting || !d.about(m.Slot) && d.slot != wire.SlotAggregate {
			continue
		}
		e := Evidence{{"reason", m.Reason}, {"joinedForMs", d.ageMs(m.Since)}}
		if i := d.instance(m.Slot); i != nil {
			e = append(e, Field{"verdict", string(i.Verdict)}, Field{"restarts", i.Restarts})
		}
		found = append(found, Problem{
			ID: "aggregate-member-restarting", Severity: Info, Slot: m.Slot,
			Symptom: fmt.Sprintf("The upstream of slot %s is being started again. _all shows what it published before, and calls of it wait: %s.",
				quote(m.Slot), m.Reason),
			Evidence: e,
			Fix: fmt.Sprintf("Nothing: once it is up _all lists it anew and sends the calls on, and if it cannot be started it leaves _all. To see how far it is, run %s.",
				command("describe instance", m.Slot)),
		})
	}
	return found
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
