package msg

import (
	"cmp"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/wire"
)

// To a slot, from client sessions. ------------------------------------------

// JoinSlot adds a session to a slot. It travels through the registry, which
// creates the slot if need be; the slot answers SlotJoined, or the registry or
// the slot JoinRefused.
type JoinSlot struct {
	control
	Slot    string
	Session uint64
	Client  Ref
	Kind    ClientKind
}

// ClientKind is how a client reaches its slot.
type ClientKind uint8

const (
	HTTPClient      ClientKind = iota // Streamable HTTP and legacy SSE
	WebSocketClient                   // raw WebSocket
	StdioClient
	BrokerClient // a reserved slot; it counts as nobody's client
)

// Count adds one client of this kind to a slot's inventory line.
func (k ClientKind) Count(info *SlotInfo) {
	switch k {
	case HTTPClient:
		info.SessionCount++
	case WebSocketClient:
		info.ClientCount++
	case StdioClient:
		info.OtherCount++
	}
}

// LeaveSlot removes a session: its pending calls are cancelled upstream. A
// session that does not know its slot yet sends it through the registry, behind
// its JoinSlot.
type LeaveSlot struct {
	control
	Slot    string
	Session uint64
}

// StreamChanged tells whether the session has an open stream. A session without
// one may be ended when the slot has too many.
type StreamChanged struct {
	control
	Session uint64
	Open    bool
}

// ClientCall is a request of a client. It is answered by exactly one CallReply
// or CallFailed.
type ClientCall struct {
	Session uint64
	Client  Ref
	Call    uint64 // the session's own number for it
	Frame   wire.Frame
	Trace   string  // a fresh traceparent, for a frame that carries no valid one
	For     *Origin // the client a reserved slot calls for; nil is the session's own
	Retried bool    // the slot's own mark: a connection has ended before it was sent
	Timed   bool    // the caller minds the time itself, and says CallerLate or CallerLeft: the slot sets no deadline
}

// Origin is the client behind a call that a reserved slot passes on.
type Origin struct {
	Session uint64
	Can     mcp.Capability // what it can be asked during the call
}

// ClientNote is a notification of a client.
type ClientNote struct {
	Session uint64
	Frame   wire.Frame
	Call    uint64 // the call a cancellation is about; 0 where its requestId tells
}

// ClientAnswer is a client's response to a ClientAsk.
type ClientAnswer struct {
	Session uint64
	Frame   wire.Frame
}

// AskUndeliverable: the session has no way to put the ask to its client.
type AskUndeliverable struct {
	control
	Session uint64
	ID      uint64
}

// CallerLeft: nobody waits for this call any more.
type CallerLeft struct {
	control
	Session uint64
	Call    uint64
}

// CallerLate: a check has waited long enough for its answer. The call ends as with
// CallerLeft, and is answered by CallFailed, where its caller reads whether that says
// anything of the provider: Busy means that it does not.
type CallerLate struct {
	control
	Session uint64
	Call    uint64
}

// To a slot, from providers. ------------------------------------------------

// ProviderKind is how a provider reaches its slot; the values are the
// transports an inventory reports.
type ProviderKind string

const (
	Dedicated   ProviderKind = "ws"
	Multiplexed ProviderKind = "ws-multiplex"
	Loopback    ProviderKind = "loopback"
	Upstream    ProviderKind = "stdio" // whatever its transport
	NoProvider  ProviderKind = "none"
)

// Conduit carries frames to a slot's provider. Send never blocks; false means that
// the provider is going away, and that no byte of the frame is ever written.
type Conduit interface {
	Send(frame []byte, class mcp.Class) bool
}

// ClaimSlot asks for a slot. It travels through the registry; the claimant gets
// ClaimGranted or ClaimRefused. A refused Multiplexed claim is remembered and
// granted once the slot is free.
type ClaimSlot struct {
	control
	Slot      string
	Claimant  Ref
	Conduit   Conduit
	Kind      ProviderKind
	Principal string // authenticated identity; empty without authentication
	Aggregate bool   // asked to join _all
}

// WithdrawClaim forgets a remembered claim; it travels through the registry.
type WithdrawClaim struct {
	control
	Slot     string
	Claimant Ref
}

// LivenessReport is a holder's answer to LivenessAsked.
type LivenessReport struct {
	control
	Gen         uint64
	Open        bool
	Outstanding time.Duration // age of the oldest unanswered ping; 0 when none is
}

// ProviderFrame is a scanned frame of the slot's provider.
type ProviderFrame struct {
	control
	Gen    uint64
	Frame  wire.Frame
	Credit Credit
}

// ProviderJunk is a frame of the provider that does not scan.
type ProviderJunk struct {
	control
	Gen    uint64
	Head   []byte // its first bytes, for the log
	Credit Credit
}

// ProviderRefusal: the conduit could not get an answer to the request with this broker
// id. The caller is answered with Err, the broker's own word and not the provider's.
type ProviderRefusal struct {
	control
	Gen    uint64
	ID     []byte // as it stood in the request
	Err    *wire.Error
	Credit Credit
}

// ProviderRenewed: the server behind the conduit has begun anew and was greeted again;
// Answer is its response to initialize. The holder stays, what it said before may not
// hold any more.
type ProviderRenewed struct {
	control
	Gen    uint64
	Answer wire.Frame
}

// DrainProvider: the holder of generation Gen is about to be taken away. The slot gives
// it no new calls, holds them back, and tells Owner with ProviderDrained once the holder
// owes clients no answer.
type DrainProvider struct {
	control
	Gen   uint64
	Owner Ref
}

// ProviderGone: the holder of generation Gen has left. Why answers the calls it
// leaves behind; nil says only that it has.
type ProviderGone struct {
	control
	Gen    uint64
	Why    *wire.Error
	Final  bool     // the owner of the slot will not connect again
	Silent bool     // it did not answer a ping of the heartbeat, and was cut
	Unsent [][]byte // whole frames the provider certainly never got, in the order they were sent
}

// To a slot, from itself and the registry. ----------------------------------

// TimerDue wakes a slot for its deadlines.
type TimerDue struct {
	control
	Gen uint64
}

// CallCrashed: the slot failed while it handled the provider's answer with this
// id, so the caller must be told.
type CallCrashed struct {
	control
	ID uint64
}

// RetireSlot asks an unused slot to end; it answers SlotRetired. Unserved asks one
// as well that no provider ever held and whose clients are all idle: their sessions
// end.
type RetireSlot struct {
	control
	Unserved bool
}

// EndIdle asks a slot to end the sessions of its clients, provided that they have
// been idle since then (SlotInfo.IdleSince). The asker gets IdleEnded.
type EndIdle struct {
	control
	Since time.Time
	Why   string // of the EndSession
	Asker Ref
}

// IdleEnded answers EndIdle. A slot that has been used meanwhile has ended nothing.
type IdleEnded struct {
	control
	Ended bool
}

// To the provider side, from slots. -----------------------------------------

// ProviderDrained answers DrainProvider.
type ProviderDrained struct {
	control
	Gen uint64
}

// ClaimGranted: the claimant holds the slot as of generation Gen, with the conduit
// of its claim.
type ClaimGranted struct {
	control
	Slot    string
	Ref     Ref
	Gen     uint64
	Conduit Conduit
}

// ClaimRefused carries the three forms of one refusal.
type ClaimRefused struct {
	control
	Slot        string
	Conduit     Conduit     // of the claim
	Err         *wire.Error // for an error envelope, and the log
	CloseReason string      // for the close frame of a dedicated socket
	LogLead     string      // names the rule in the warning
	Held        bool        // another provider holds the slot; an owner is told when it is free (SlotFree)
}

// Refused returns the refusal of a claim whose close reason is the text of err. lead
// begins the warning; empty is that text as well.
func (m *ClaimSlot) Refused(err *wire.Error, lead string) *ClaimRefused {
	return &ClaimRefused{
		Slot: m.Slot, Conduit: m.Conduit, Err: err,
		CloseReason: wire.CloseReason(err.Message), LogLead: cmp.Or(lead, err.Message),
	}
}

// SlotFree tells the owner of a slot that the provider which held it is gone.
type SlotFree struct {
	control
	Slot string
}

// LivenessAsked asks a holder whether its peer still answers.
type LivenessAsked struct {
	control
	Slot  string
	Gen   uint64
	Asker Ref
}

// EvictHolder takes the slot away. Failed tells a takeover (the connection is
// cut) from a slot that failed (closed with 1011).
type EvictHolder struct {
	control
	Slot   string
	Gen    uint64
	Failed bool
}

// To client sessions, from slots and the registry. --------------------------

// SlotJoined: the session is a member of the slot.
type SlotJoined struct {
	control
	Ref     Ref
	Session uint64
}

// JoinRefused: the slot cannot be had.
type JoinRefused struct {
	control
	Err *wire.Error
}

// CallReply is the answer to a call, with the client's own id.
type CallReply struct {
	control
	Call  uint64
	Frame []byte
}

// CallFailed is the broker's answer to a call.
type CallFailed struct {
	control
	Call uint64
	Err  *wire.Error
}

// CallProgress is a progress notification of one call, with the client's token.
type CallProgress struct {
	control
	Call  uint64
	Frame []byte
}

// ClientAsk is a request of the provider for the client whose call it is about.
// Its id is the broker's.
type ClientAsk struct {
	control
	Call  uint64
	ID    uint64
	Frame []byte
}

// AskCancelled withdraws a ClientAsk: the frame is the notification to send.
type AskCancelled struct {
	control
	Call  uint64
	Frame []byte
}

// Notify is a notification of the provider for every session of its slot. It
// takes no headroom: a flood of notifications leaves room for answers.
type Notify struct {
	Frame []byte
	Class mcp.Class
	Key   string
}

// SlotLost: the slot's actor was given up; the session has to join again.
type SlotLost struct{ control }

// EndSession: the session has to make room.
type EndSession struct {
	control
	Why string
}
