package msg

import (
	"time"

	"mcpbroker/actors/wire"
)

// An upstream is a provider the broker itself starts or dials. One actor keeps
// it; a driver is one incarnation of its connection, numbered by Gen. What a
// driver says of an older Gen changes nothing.

// Driver is one live connection to an upstream: a child process, or a session
// with a remote server. Its methods never block.
type Driver interface {
	Conduit
	// Attach opens the way to the slot: until then what the upstream says waits
	// in the driver. gen is the slot's, for ProviderFrame.
	Attach(slot Ref, gen uint64)
	// Stop ends the connection in order; UpstreamEnded follows within grace and
	// a little.
	Stop(grace time.Duration)
}

// To the actor of an upstream, from its driver. -------------------------------

// UpstreamOpened: the process runs, or the remote server took the connection.
type UpstreamOpened struct {
	control
	Gen    uint64
	Driver Driver
	PID    int // of a child process, else 0
	// Mask takes the secrets out of a text that the upstream may have made of them;
	// nil knows of none.
	Mask func(text string) string
}

// UpstreamEnded is the last word of a driver, whether it ever opened or not.
type UpstreamEnded struct {
	control
	Gen  uint64
	Err  error    // why, in one sentence; nil after a Stop that succeeded
	Exit string   // how its process ended, as "exit code 1"; empty where there was none
	Tail []string // the last lines the process wrote, as in UpstreamSaid
	// Denied: the server refused the broker's credentials. Waiting does not help.
	Denied bool
	// Unsent are the frames it took (Conduit) and of which certainly no byte was
	// written, in the order they were sent. A driver that cannot tell names none.
	Unsent [][]byte
}

// UpstreamDetected: the server speaks another transport than its URL lets expect.
type UpstreamDetected struct {
	control
	Gen       uint64
	Transport string // as in Instance.Kind
}

// UpstreamSaid is a line a child wrote to stderr. Stray is one of its stdout that is no
// message, marked as such.
type UpstreamSaid struct {
	Gen   uint64
	Line  string
	Stray bool
}

// To a slot, from the actor of its upstream. ----------------------------------

// OwnSlot keeps a slot for one claimant, connected or not. It travels through the
// registry, which refuses the claims of all others from then on.
type OwnSlot struct {
	control
	Slot  string
	Owner Ref
}

// SlotReplaced tells an owner that its slot was given up and that another one,
// its own like the last, stands in its place.
type SlotReplaced struct {
	control
	Slot string
}

// DisownSlot frees the slot for anybody.
type DisownSlot struct {
	control
	Slot  string
	Owner Ref
}

// ReleaseSlot takes a slot given with HoldReserved out of the registry again.
type ReleaseSlot struct {
	control
	Slot string
	Ref  Ref
}

// HolderExpected: a connection is being made, so calls are held back.
type HolderExpected struct {
	control
	Slot  string
	Owner Ref
}

// HolderFailed: there is no connection for now. Err answers the calls held back
// and those that come.
type HolderFailed struct {
	control
	Slot  string
	Owner Ref
	Err   *wire.Error
}
