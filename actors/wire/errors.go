package wire

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// JSON-RPC error codes the broker emits (spec 01 section 7).
const (
	CodeUnavailable    = -32000
	CodeForbidden      = -32001
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
	CodeParse          = -32700
)

// Error is a JSON-RPC error. Every text the broker puts on the wire is made by
// one of the functions below, so that the same condition has the same words on
// every transport.
type Error struct {
	Code    int
	Message string

	// Vacant marks the one condition whose text a transport may go on with
	// advice of its own: the slot has no provider.
	Vacant bool

	// Busy marks a queue at its bound: the provider is not at fault.
	Busy bool

	// Gone marks that the provider has left, or has not come back yet.
	Gone bool
}

// What a transport adds to NotConnected: its users see no response headers and no
// inventory, so the error tells them where to look.
const (
	AdviceSocket = "Call providers_list on the _broker slot to see which slots are live."
	AdviceStdio  = `This host is pinned to one slot (MCP_BROKER_STDIO_PROVIDER). Pin it to "_all" to reach every provider that joined it, or to "_broker" to see which slots are live.`
)

// Advise returns the error with advice behind its text, if it is one for which a
// transport has any.
func (e *Error) Advise(advice string) *Error {
	if !e.Vacant || advice == "" {
		return e
	}
	return &Error{Code: e.Code, Message: e.Message + ". " + advice, Vacant: true, Gone: e.Gone}
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// Response returns the error as the answer to the raw id; a nil id is null.
func (e *Error) Response(id []byte) []byte {
	b := make([]byte, 0, len(id)+len(e.Message)+80)
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	if len(id) == 0 {
		id = []byte("null")
	}
	b = append(b, id...)
	b = append(b, `,"error":{"code":`...)
	b = strconv.AppendInt(b, int64(e.Code), 10)
	b = append(b, `,"message":`...)
	b = AppendString(b, e.Message)
	return append(b, "}}"...)
}

func errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

func gone(format string, args ...any) *Error {
	err := errorf(CodeUnavailable, format, args...)
	err.Gone = true
	return err
}

// NotConnected: no provider holds the slot.
func NotConnected(slot string) *Error {
	err := gone(`Provider "%s" not connected`, slot)
	err.Vacant = true
	return err
}

// Disconnected: the provider left with the request unanswered.
func Disconnected(slot string) *Error {
	return gone(`Provider "%s" disconnected`, slot)
}

// DisconnectedTooBig: the same, because of a message the broker does not take.
func DisconnectedTooBig(slot string, limit int) *Error {
	return gone(`Provider "%s" disconnected: it sent a message larger than the limit of %d bytes (maxMessageBytes)`, slot, limit)
}

// NoAnswer: the request's deadline passed.
func NoAnswer(slot string, after time.Duration) *Error {
	return errorf(CodeUnavailable, `Provider "%s" did not respond within %dms. Raise providerRequestTimeoutMs for slow tools, or call broker_diagnose on the _broker slot to see what the provider is doing.`,
		slot, after.Milliseconds())
}

// NoAnswerCap: progress kept the request alive up to the hard cap.
func NoAnswerCap(slot string, after time.Duration, factor int) *Error {
	return errorf(CodeUnavailable, `Provider "%s" did not respond within %dms. It kept reporting progress, which extends providerRequestTimeoutMs up to %d times and no further; call broker_diagnose on the _broker slot.`,
		slot, after.Milliseconds(), factor)
}

// SessionClosed: the session ended with the request in flight.
func SessionClosed() *Error { return &Error{Code: CodeUnavailable, Message: "Session closed"} }

// Crashed: the slot's actor failed while it handled this one message.
func Crashed(slot string) *Error {
	return errorf(CodeInternal, `Slot "%s" failed while handling this request; the request was not completed and may be sent again`, slot)
}

// SlotFailed: the slot's actor failed too often and was given up.
func SlotFailed(slot string) *Error {
	return errorf(CodeUnavailable, `Slot "%s" failed repeatedly and was reset; its provider has to connect again`, slot)
}

// SlotBusy: a queue of the slot is at its bound.
func SlotBusy(slot, limit string, n int) *Error {
	err := errorf(CodeUnavailable, `Slot "%s" has %d requests waiting, the most it may have (%s); send the request again later`, slot, n, limit)
	err.Busy = true
	return err
}

// SessionBusy: one session has too many requests in flight.
func SessionBusy(n int) *Error {
	return errorf(CodeUnavailable, `This session has %d requests in flight, the most it may have (maxPendingPerSession); wait for an answer before sending more`, n)
}

// TooManySlots: the broker is at maxSlots and every slot is in use.
func TooManySlots(slot string, n int) *Error {
	return errorf(CodeUnavailable, `Slot "%s" cannot be created: the broker holds %d slots, the most it may have (maxSlots), and all are in use`, slot, n)
}

// TooLarge: a message passed the size limit.
func TooLarge(limit int) *Error {
	return errorf(CodeInvalidRequest, `The message is larger than %d bytes (maxMessageBytes)`, limit)
}

// DuplicateID: a request with this id is still in flight in the session (F-34).
func DuplicateID(id []byte) *Error {
	return errorf(CodeInvalidRequest, `A request with id %s is already in flight in this session; use another id`, id)
}

// NullID: MCP requires a request's id to be a string or a number.
func NullID() *Error {
	return &Error{Code: CodeInvalidRequest, Message: "The id of a request must be a string or a number; leave it out to send a notification"}
}

// NotAMessage: valid JSON, but no JSON-RPC message.
func NotAMessage() *Error {
	return &Error{Code: CodeInvalidRequest, Message: "Body is not a JSON-RPC message"}
}

// NoBatch: batches exist in revision 2025-03-26 only.
func NoBatch() *Error {
	return &Error{Code: CodeInvalidRequest, Message: "JSON-RPC batching is not supported"}
}

// BatchTooLarge: more members than one batch may hold.
func BatchTooLarge(n, limit int) *Error {
	return errorf(CodeInvalidRequest, "The batch holds %d messages, more than the %d it may hold", n, limit)
}

// Unparseable: not JSON at all.
func Unparseable(cause error) *Error {
	return errorf(CodeParse, "Parse error: the message is %v", cause)
}

// Unscannable answers a message that Scan refused.
func Unscannable(cause error) *Error {
	if errors.Is(cause, ErrDuplicate) || errors.Is(cause, ErrDepth) {
		return errorf(CodeInvalidRequest, "Body is not a JSON-RPC message: %v", cause)
	}
	return Unparseable(cause)
}

// NotRelayed answers a request a provider opened (spec 01 4.7 P4).
func NotRelayed(method []byte) *Error {
	return errorf(CodeMethodNotFound, "Method not found: the broker does not relay requests opened by a provider (%s)", method)
}

// NoBrokerMethod answers a broker/ method nothing serves.
func NoBrokerMethod(method []byte) *Error {
	return errorf(CodeMethodNotFound, "Method not found: %s. This broker serves no broker/ method to providers.", method)
}

// ReservedSlot refuses a claim on a slot the broker serves itself.
func ReservedSlot(slot string) *Error {
	return errorf(CodeUnavailable, `Provider "%s" is reserved by the broker`, slot)
}

// ManagedSlot refuses a claim on the slot of an upstream, running or not.
func ManagedSlot(slot string) *Error {
	return errorf(CodeUnavailable, `Provider "%s" is managed by a stdio upstream`, slot)
}

// UpstreamDown answers a call on a slot whose upstream is not running; why and
// next are sentences of the actor that keeps it.
func UpstreamDown(slot, why, next string) *Error {
	return gone(`Provider "%s" not connected: %s. %s`, slot, why, next)
}

// AlreadyConnected refuses a claim on a held slot; why and recovery come from
// the takeover decision (spec 01 2.5).
func AlreadyConnected(slot, why, recovery string) *Error {
	return errorf(CodeUnavailable, `Provider "%s" is already connected. %s %s Call provider_status on the _broker slot to see the incumbent.`, slot, why, recovery)
}

// HeldReason is the close reason for a refused dedicated provider.
func HeldReason(slot string) string {
	return fmt.Sprintf(`Slot already held by a live provider; call provider_status on _broker. Slot: "%s"`, slot)
}

// EnvelopeOnSlotPath diagnoses an envelope on a dedicated socket (spec 01 2.4).
func EnvelopeOnSlotPath(path, slot, announced, shared string) *Error {
	return errorf(CodeUnavailable, `Envelope frame for slot "%s" on the slot-scoped path %s of slot "%s". DirectTransport sends plain frames to %s; MultiplexTransport sends envelopes to %s. The broker is closing the connection.`,
		announced, path, slot, path, shared)
}

// EnvelopeReason is the close reason that goes with EnvelopeOnSlotPath.
func EnvelopeReason(path, shared string) string {
	return CloseReason(fmt.Sprintf("Envelope frame on slot-scoped path %s: use DirectTransport here, or connect to %s", path, shared))
}

// PlainOnSharedPath diagnoses a bare message on the multiplex path (spec 01 3.2).
func PlainOnSharedPath(shared, prefix string, method []byte) *Error {
	name := "(none)"
	if method != nil {
		name = string(method)
	}
	return errorf(CodeUnavailable, `Plain JSON-RPC (method %s) on the multiplex path %s. MultiplexTransport sends envelopes to %s; DirectTransport sends plain frames to %s/<name>. The broker is closing the connection.`,
		name, shared, shared, prefix)
}

// PlainReason is the close reason that goes with PlainOnSharedPath.
func PlainReason(shared, prefix string) string {
	return CloseReason(fmt.Sprintf("Plain JSON-RPC on multiplex path %s: use MultiplexTransport here, or connect to %s/<name>", shared, prefix))
}

// TooManySessions: the slot is at maxSessionsPerSlot and every session streams.
func TooManySessions(slot string, n int) *Error {
	return errorf(CodeUnavailable, `Slot "%s" has %d sessions, the most it may have (maxSessionsPerSlot), and all have a stream open`, slot, n)
}

// Withdrawn answers a call its own client cancelled before it was sent on.
func Withdrawn() *Error {
	return &Error{Code: CodeUnavailable, Message: "The request was cancelled before it reached the provider"}
}

// CrashedClaim refuses a claim the slot could not handle.
func CrashedClaim(slot string) *Error {
	return errorf(CodeInternal, `Slot "%s" failed while deciding about this provider; connect again`, slot)
}

// UpgradeToPrefix answers a WebSocket upgrade on the bare provider prefix.
func UpgradeToPrefix(prefix, shared string) string {
	return fmt.Sprintf(`"%s" is a prefix and not an endpoint: connect to %s/<name> to publish one slot, or to %s to publish many over one socket.`, prefix, prefix, shared)
}

// UpgradeEmptySlot answers an upgrade whose slot name is empty.
func UpgradeEmptySlot(target, prefix, shared string) string {
	return fmt.Sprintf(`"%s" has an empty slot name: connect to %s/<name> to publish one slot, or to %s to publish many over one socket.`, target, prefix, shared)
}

// UpgradeExtraSegments answers an upgrade whose slot name holds a raw slash.
func UpgradeExtraSegments(target, prefix, encoded string) string {
	return fmt.Sprintf(`"%s" has too many path segments: percent-encode the slot name, as in %s/%s.`, target, prefix, encoded)
}

// LooksLikeProvider hints at a mistyped provider URL on a client's connect line.
func LooksLikeProvider(prefix, shared string) string {
	return fmt.Sprintf(`this looks like a provider URL but was accepted as a CLIENT slot; providers connect to %s (MultiplexTransport) or to %s/<name> (DirectTransport)`, shared, prefix)
}

// SlotGone answers a call that found its slot ended.
func SlotGone() *Error {
	return &Error{Code: CodeUnavailable, Message: "The slot has just been reset; send the request again"}
}

// TooManyNames refuses one more slot on a shared socket.
func TooManyNames(slot string, n int) *Error {
	return errorf(CodeUnavailable, `Slot "%s" cannot be announced: this socket has named %d slots, the most one socket may name`, slot, n)
}

// MissingURI answers a subscription without a usable uri.
func MissingURI() *Error {
	return &Error{Code: CodeInvalidParams, Message: "Missing required parameter: uri"}
}

// URITooLong answers a subscription to an over-long uri, counted in UTF-16 units.
func URITooLong(n, limit int) *Error {
	return errorf(CodeInvalidParams, "The uri is %d characters long, more than the %d it may have (maxResourceUriLength)", n, limit)
}

// SubscriptionLimit answers a subscription over a bound.
func SubscriptionLimit(key string, limit int) *Error {
	return errorf(CodeUnavailable, "Subscription limit reached: %s is %d; unsubscribe from something first", key, limit)
}

// NoDiscovery answers a client that asks for a revision without initialize; it
// then opens with one.
func NoDiscovery(latest string) *Error {
	return errorf(CodeMethodNotFound, "Method not found: server/discover. Open with initialize; the newest revision served here is %s", latest)
}

// NobodyToAsk answers a provider's request while no client's call is in flight.
func NobodyToAsk(method []byte) *Error {
	return errorf(CodeMethodNotFound, "No client can be asked (%s): a request is relayed only to the client whose call is in flight, on a stream it has open", method)
}

// AmbiguousAsk answers a provider's request while several clients wait for it.
func AmbiguousAsk(method []byte) *Error {
	return errorf(CodeMethodNotFound, "No client can be asked (%s): calls of several clients are in flight, and the request does not say which it belongs to", method)
}

// CannotAsk answers a provider's request to a client without the capability.
func CannotAsk(method []byte) *Error {
	return errorf(CodeMethodNotFound, "Method not found: the client did not declare the capability for %s", method)
}

// AskUnanswered answers a provider whose client stayed silent.
func AskUnanswered(after time.Duration) *Error {
	return errorf(CodeUnavailable, "The client did not answer within %dms (providerRequestTimeoutMs)", after.Milliseconds())
}

// CallEnded answers a provider's request about a call that has ended.
func CallEnded() *Error {
	return &Error{Code: CodeUnavailable, Message: "The call this request belongs to has ended"}
}

// Unreachable answers a request a bridge could not bring to its broker.
func Unreachable(url string, cause error) *Error {
	return errorf(CodeUnavailable, "Cannot reach the broker at %s: %v. Start it, or name another one with --url; the next message tries again.", url, cause)
}

// AnswerLost answers a request whose response broke off on the way.
func AnswerLost(url string, cause error) *Error {
	return errorf(CodeUnavailable, "The answer from %s was lost: %v. The request may have been carried out.", url, cause)
}

// RefusedHTTP answers a request that was refused without a JSON-RPC message.
func RefusedHTTP(url, status string) *Error {
	return errorf(CodeUnavailable, "%s answered %s; is it a broker's?", url, status)
}
