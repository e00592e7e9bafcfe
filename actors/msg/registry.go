package msg

import "time"

// SlotInfo is one line of the inventory (spec 01 4.1).
type SlotInfo struct {
	Name           string
	Transport      ProviderKind
	Connected      bool
	Expected       bool      // not connected, but the slot's owner is connecting: calls are held for it
	Aggregate      bool      // the provider asked to join _all; while Expected, the one before did
	ConnectedSince time.Time // zero when not connected
	Gen            uint64    // of the present holder, else of the last one

	ClientCount       int // raw WebSocket clients
	SessionCount      int // SSE streams and Streamable HTTP sessions
	OtherCount        int // stdio hosts
	SubscriptionCount int // confirmed resource subscriptions

	PendingCount  int // requests that wait for the provider; a check of the broker's own is none
	MaxPending    int
	OldestPending time.Time // when the oldest of them was sent; zero is none
	Answered      bool      // the present holder has sent a JSON-RPC message
	LeftSilent    bool      // the slot is empty since its holder did not answer a ping and was cut

	// IdleSince is when a client last used the slot, or last got an answer. It is
	// zero while a client has a stream open or waits for an answer, and without one.
	IdleSince time.Time

	Attached [FlapCount]time.Time // the latest attachments, newest first
	Restarts int                  // of the slot's actor, after a failure
}

// FlapCount is how many attachments of a slot are remembered with their time.
const FlapCount = 5

// Unused reports a slot nobody refers to.
func (i *SlotInfo) Unused() bool { return !i.Connected && i.Callers() == 0 && i.PendingCount == 0 }

// Unserved reports a slot that no provider has ever held and whose clients are idle.
func (i *SlotInfo) Unserved() bool { return !i.Connected && i.Gen == 0 && !i.IdleSince.IsZero() }

// Callers is how many clients the slot has.
func (i *SlotInfo) Callers() int { return i.ClientCount + i.SessionCount + i.OtherCount }

// SlotChanged tells the registry that a slot's holder or membership changed.
type SlotChanged struct {
	control
	Info SlotInfo
}

// HoldReserved gives the registry a slot that an actor of the broker serves
// itself, in place of a slot's. Ref takes what sessions send to a slot,
// DescribeSlot, and the claims of providers, to refuse them.
type HoldReserved struct {
	control
	Slot string
	Ref  Ref
}

// WatchSlots asks for a SlotObserved of each slot, now and whenever its holder,
// whether one is expected, its membership of _all or its being used changes, and
// for a SlotForgotten of each that ends. Slot limits it to one; empty is all.
type WatchSlots struct {
	control
	Watcher Ref
	Slot    string
}

// UnwatchSlots ends all that the watcher asked for.
type UnwatchSlots struct {
	control
	Watcher Ref
}

// SlotObserved is what a watcher learns of a slot.
type SlotObserved struct {
	control
	Info SlotInfo
}

// SlotForgotten: nobody referred to the slot any more, or it was given up.
type SlotForgotten struct {
	control
	Name string
}

// SlotRetired answers RetireSlot: Gone, or kept because it is in use again.
type SlotRetired struct {
	control
	Name string
	Gone bool
}

// SlotFailing: the slot gives up, and sends its sessions and its provider away. Who
// asks for it from now on waits for SlotDied, and gets a fresh one. SlotDied may
// come before; Ref tells then that a successor is not meant.
type SlotFailing struct {
	control
	Name string
	Ref  Ref
}

// SlotDied: the slot's actor has stopped.
type SlotDied struct {
	control
	Name string
}

// ListInventory asks for all slots in the order they were created, each as it
// last reported itself; the reply channel must have room for one.
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
