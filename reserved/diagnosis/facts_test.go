package diagnosis

import (
	"time"

	"mcpbroker/actors/msg"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// healthy is a broker with one provider, which joined _all.
func healthy() *Facts {
	return &Facts{
		Now: now,
		Broker: Broker{
			Name: "mcp-broker", Version: "1.2.3", StartedAt: ago(time.Hour), Host: "127.0.0.1", Port: 3000, Authority: "localhost:3000",
			Paths: Paths{Provider: "/provider", Providers: "/providers", Client: "/", MCP: "/mcp", SSE: "/sse", Messages: "/messages"},
		},
		Slots: []Slot{
			builtin("_all"), builtin("_broker"),
			{SlotInfo: msg.SlotInfo{
				Name: "pump-1", Transport: msg.Dedicated, Connected: true, Aggregate: true, ConnectedSince: ago(30 * time.Minute),
				Gen: 1, SessionCount: 1, MaxPending: 1024, Answered: true, Attached: [msg.FlapCount]time.Time{ago(30 * time.Minute)},
			}},
		},
		Instances: []msg.Instance{},
		Aggregate: &Aggregate{Enabled: true, Members: []Member{
			{Slot: "_broker", Joined: true, Since: ago(time.Hour)}, {Slot: "pump-1", Joined: true, Since: ago(30 * time.Minute)},
		}},
		Bridge: &Bridge{}, Pages: &Pages{},
		HeartbeatMs: 30000, RequestTimeoutMs: 60000, Takeover: "liveness",
	}
}

func builtin(name string) Slot {
	return Slot{Reserved: true, SlotInfo: msg.SlotInfo{
		Name: name, Transport: msg.Loopback, Connected: true, ConnectedSince: ago(time.Hour), MaxPending: 1024, Answered: true,
		PendingCount: 1, OldestPending: ago(time.Minute),
	}}
}

// pump is the provider's slot.
func (f *Facts) pump() *Slot { return &f.Slots[2] }

// waits puts requests in flight, the oldest of this age.
func (s *Slot) waits(n int, age time.Duration) { s.PendingCount, s.OldestPending = n, ago(age) }

// leaves takes the provider away, and its clients.
func (s *Slot) leaves() {
	s.SlotInfo = msg.SlotInfo{Name: s.Name, Transport: msg.NoProvider, Attached: s.Attached, MaxPending: s.MaxPending}
}

// add puts one more connected provider there, which did not ask to join _all.
func (f *Facts) add(name string, kind msg.ProviderKind) *Slot {
	f.Slots = append(f.Slots, Slot{SlotInfo: msg.SlotInfo{
		Name: name, Transport: kind, Connected: true, ConnectedSince: ago(time.Minute), MaxPending: 1024, Answered: true,
		Attached: [msg.FlapCount]time.Time{ago(time.Minute)},
	}})
	return &f.Slots[len(f.Slots)-1]
}
