package diagnosis

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// maxPerRule bounds the problems one rule reports, so that a broker with
// thousands of slots in the same state still gets a report that can be read.
const maxPerRule = 100

// Diagnose judges the facts about one slot, or about the whole broker when slot
// is empty. It reports all slots of that name; a name nobody has ever used gives
// a report without slots.
func Diagnose(f Facts, slot string) Report {
	d := newCase(f, slot)
	r := Report{
		Broker:        d.broker(),
		Slots:         []SlotReport{},
		Summary:       d.summary(),
		Aggregate:     d.aggregate(),
		Problems:      []Problem{},
		ChecksSkipped: d.skipped(),
		Notes:         d.notes(),
		SeeAlso: []string{
			"broker://guide/publish-provider", "broker://guide/connect-client",
			"broker://guide/host-config", "broker://guide/troubleshooting",
		},
	}
	for s := range d.inScope {
		r.Slots = append(r.Slots, d.slotReport(s))
	}
	for _, rule := range rules() {
		found := rule(d)
		for i := range found {
			r.Summary.Problems.add(found[i].Severity)
		}
		if left := len(found) - maxPerRule; left > 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("%d more problems %q were left out; ask about one slot to see its own.", left, found[0].ID))
			found = found[:maxPerRule]
		}
		r.Problems = append(r.Problems, found...)
	}
	slices.SortStableFunc(r.Problems, func(a, b Problem) int { return cmp.Compare(a.Severity.rank(), b.Severity.rank()) })
	return r
}

// rules lists the checks; problems of equal severity keep this order.
func rules() []func(*diagnosis) []Problem {
	return []func(*diagnosis) []Problem{
		notStarted, configRefused, configNeedsRestart, portBoundWide, takeoverDowngraded,
		secretMissing, authRefused, crashLoop, gaveUp, upstreamFailed, unhealthy,
		watchedUnhealthy, pathMismatch, notResponding, upstreamNotResponding, slowProvider, queueNearBound, restartLoop, failedSlot,
		neverConnected, noProviders,
		aggregateDisabled, aggregateEmpty, aggregateMissingLive, aggregateMissingMember, aggregateLoop, aggregateIncomplete, aggregateRestarting,
		bridgeTarget, ownPagesBlocked, liveOnly, abandonedSessions, throttledReaders, slowReaders,
	}
}

// diagnosis is one run.
type diagnosis struct {
	Facts
	slot     string // asked about; empty is all
	slowFrom time.Duration
	members  map[string]Member
	behind   map[string]*msg.Instance // the upstream of a slot
}

func newCase(f Facts, slot string) *diagnosis {
	d := &diagnosis{Facts: f, slot: slot, slowFrom: f.SlowAfter, members: map[string]Member{}, behind: map[string]*msg.Instance{}}
	if d.slowFrom <= 0 {
		d.slowFrom = DefaultSlowAfter
	}
	for n := len(f.Instances) - 1; n >= 0; n-- {
		d.behind[f.Instances[n].Slot] = &f.Instances[n]
	}
	if f.Aggregate != nil {
		for _, m := range f.Aggregate.Members {
			d.members[m.Slot] = m
		}
	}
	return d
}

// whole reports whether rules about the whole broker run.
func (d *diagnosis) whole() bool { return d.slot == "" }

// about reports whether a problem of this slot was asked for.
func (d *diagnosis) about(slot string) bool { return d.whole() || d.slot == slot }

// inScope yields the slots asked about.
func (d *diagnosis) inScope(yield func(*Slot) bool) {
	for i := range d.Slots {
		if s := &d.Slots[i]; d.about(s.Name) && !yield(s) {
			return
		}
	}
}

func (d *diagnosis) find(name string) *Slot {
	for i := range d.Slots {
		if d.Slots[i].Name == name {
			return &d.Slots[i]
		}
	}
	return nil
}

// ageMs is the time since t in milliseconds, 0 for a time unknown or to come.
func (d *diagnosis) ageMs(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(0, d.Now.Sub(t).Milliseconds())
}

// age is the same as a sentence has it.
func (d *diagnosis) age(t time.Time) string { return span(d.ageMs(t)) }

// slow reports a time that is further back than the threshold.
func (d *diagnosis) slow(t time.Time) bool { return d.ageMs(t) > d.slowFrom.Milliseconds() }

func (d *diagnosis) broker() BrokerReport {
	b := d.Broker
	r := BrokerReport{
		Name: b.Name, Version: b.Version, StartedAt: stamp{b.StartedAt}, UptimeSeconds: d.ageMs(b.StartedAt) / 1000,
		TLS: b.TLS, Paths: b.Paths,
		Endpoints: Endpoints{
			Provider: d.ws() + b.Paths.Provider + "/<slot>", Providers: d.ws() + b.Paths.Providers,
			Client: d.ws() + "/<slot>", StreamableHTTP: d.base() + "/<slot>" + b.Paths.MCP,
		},
	}
	if !b.StartedAt.IsZero() {
		base := d.base()
		r.Listening = &base
	}
	return r
}

func (d *diagnosis) slotReport(s *Slot) SlotReport {
	r := SlotReport{
		Name: s.Name, Transport: transport(s), Connected: s.Connected, Connecting: s.Expected || d.starting(s), Aggregate: s.SlotInfo.Aggregate,
		ClientCount: s.ClientCount, SessionCount: s.SessionCount, PendingCount: s.PendingCount,
		ResourceSubscriptionCount: s.SubscriptionCount, Reserved: s.Reserved,
	}
	if i := d.instance(s.Name); i != nil {
		r.Kind = i.Kind
	}
	if s.Connected {
		age := d.ageMs(s.ConnectedSince)
		r.ConnectedSince, r.ConnectedForMs = stamp{s.ConnectedSince}, &age
	}
	if d.Facts.Aggregate != nil {
		joined := d.members[s.Name].Joined
		r.Aggregated = &joined
	}
	return r
}

func transport(s *Slot) msg.ProviderKind {
	if s.Transport == "" {
		return msg.NoProvider
	}
	return s.Transport
}

func (d *diagnosis) summary() Summary {
	var sum Summary
	for i := range d.Slots {
		s := &d.Slots[i]
		sum.Slots++
		if s.Name != wire.SlotBroker { // there it is whoever asks for this
			sum.PendingRequests += s.PendingCount
		}
		sum.Clients += s.ClientCount
		sum.Sessions += s.SessionCount
		if s.Connected && !d.starting(s) {
			sum.Connected++
		}
		switch {
		case s.Reserved:
		case !d.served(s):
			sum.NeverServed++
		default:
			sum.ProviderSlots++
			if s.Connected && !d.starting(s) {
				sum.ConnectedProviderSlots++
			}
		}
	}
	return sum
}

// served reports a slot that has, had, or is to get a provider. Any other is a name
// that a client has used.
func (d *diagnosis) served(s *Slot) bool {
	return s.Connected || s.Expected || !s.Attached[0].IsZero() || d.managed(s.Name)
}

func (d *diagnosis) aggregate() *AggregateReport {
	if d.Facts.Aggregate == nil {
		return nil
	}
	return &AggregateReport{Enabled: d.Facts.Aggregate.Enabled, Providers: d.joined(true)}
}

// joined names the members of _all in join order, never nil.
func (d *diagnosis) joined(reserved bool) []string {
	names := []string{}
	for _, m := range d.Facts.Aggregate.Members {
		if m.Joined && (reserved || !wire.Reserved(m.Slot)) {
			names = append(names, m.Slot)
		}
	}
	return names
}
