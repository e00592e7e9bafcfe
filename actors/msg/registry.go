package msg

import "time"

// SlotInfo is one line of the inventory (spec 01 4.1).
type SlotInfo struct {
	Name           string
	Transport      ProviderKind
	Connected      bool
	Aggregate      bool
	ConnectedSince time.Time // zero when not connected
	SessionCount   int
	PendingCount   int

	SubscriptionCount int // confirmed resource subscriptions
}

// Unused reports a slot nobody refers to.
func (i SlotInfo) Unused() bool {
	return !i.Connected && i.SessionCount == 0 && i.PendingCount == 0
}

// SlotChanged tells the registry that a slot's holder or membership changed.
type SlotChanged struct {
	control
	Info SlotInfo
}

// SlotRetired answers RetireSlot: Gone, or kept because it is in use again.
type SlotRetired struct {
	control
	Name string
	Gone bool
}

// SlotDied: the slot's actor has stopped.
type SlotDied struct {
	control
	Name string
}

// ListInventory asks for all slots; the reply channel must have room for one.
type ListInventory struct {
	control
	Reply chan<- []SlotInfo
}

// DescribeSlot asks a slot for its present state, pending calls included. The
// reply channel must have room for one; through the registry an unknown slot
// closes it without a value.
type DescribeSlot struct {
	control
	Slot  string
	Reply chan<- SlotInfo
}
