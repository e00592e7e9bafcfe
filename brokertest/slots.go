package brokertest

import (
	"testing"
	"time"

	"mcpbroker/actors/msg"
)

// WaitSlot asks for a slot until it is as wanted, up to 30 s, and returns it.
// A slot nobody has referred to is the zero value.
func (b *Broker) WaitSlot(t testing.TB, name string, wanted func(msg.SlotInfo) bool) msg.SlotInfo {
	t.Helper()
	ctx, cancel := ask(t)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	var info msg.SlotInfo
	for {
		if now, err := b.Slot(ctx, name); err == nil || ctx.Err() == nil {
			info = now
		}
		if wanted(info) {
			return info
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("slot %q did not change as wanted within %s; it is %+v", name, patience, info)
		}
	}
}

// Connected waits until a provider holds the slot.
func (b *Broker) Connected(t testing.TB, name string) msg.SlotInfo {
	t.Helper()
	return b.WaitSlot(t, name, func(i msg.SlotInfo) bool { return i.Connected })
}

// Empty waits until no provider holds the slot.
func (b *Broker) Empty(t testing.TB, name string) msg.SlotInfo {
	t.Helper()
	return b.WaitSlot(t, name, func(i msg.SlotInfo) bool { return !i.Connected })
}

// Pending waits until the slot has n calls in flight.
func (b *Broker) Pending(t testing.TB, name string, n int) {
	t.Helper()
	b.WaitSlot(t, name, func(i msg.SlotInfo) bool { return i.PendingCount == n })
}

// Sessions waits until the slot has n client sessions.
func (b *Broker) Sessions(t testing.TB, name string, n int) {
	t.Helper()
	b.WaitSlot(t, name, func(i msg.SlotInfo) bool { return i.Callers() == n })
}
