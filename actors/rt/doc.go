// Package rt is the runtime kit under every actor of the broker: protoactor-go
// with a bounded mailbox that never spins, a dispatcher that reuses grown
// stacks, a guard that answers the caller of a message whose handler panicked,
// supervision with real exponential backoff, one timer per actor, credits
// towards the inside and byte-budgeted outboxes towards the outside.
//
// It is the only package that imports protoactor-go. The library's own bounded
// mailboxes, receive timeouts, futures, stash and backoff have reproduced faults
// and are not used.
package rt
