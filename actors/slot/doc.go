// Package slot is the actor at the heart of the broker: one named place that a
// provider serves and clients call.
//
// It owns the slot's holder and the takeover decision, the pending calls with
// their ids, progress tokens and deadlines, the remembered initialize, the set of
// sessions that hear the provider's notifications, their resource subscriptions,
// and what the provider asked a client. It takes the messages of
// actors/msg/slot.go and answers sessions, provider sockets and the registry.
//
// core.go and the files beside it hold the pure state and its Step; actor.go is
// the shell that performs the effects. A panic in Step leaves the state as the
// last message left it and sends nothing.
package slot
