// Package msg is the table of contents of the system: every message an actor
// takes, one file per receiver.
//
// Messages are immutable once sent. Requests are named VerbObject, facts in the
// past tense, timers ...Due. A field Gen is the attachment generation of a
// slot's holder; a message of an older generation changes nothing.
package msg

// Ref is the address of an actor. Send never blocks; what is sent to a stopped
// actor is lost. Refs of the same actor are equal.
type Ref interface{ Send(message any) }

// Credit is given back once a frame has been dealt with; until then its reader
// holds one frame less in reserve.
type Credit interface{ Give() }

// control marks messages that may use a mailbox's headroom.
type control struct{}

// ControlMessage implements the marker of actors/rt.
func (control) ControlMessage() {}
