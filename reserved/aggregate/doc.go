// Package aggregate is the server behind the slot _all: one MCP server that
// unites the tools and prompts, and on request the resources, of every slot that
// joined it (spec 03 section 3).
//
// It is a client of its members, by the messages any session sends to a slot, and
// a slot to its own sessions. Between the two it changes one name and nothing
// else of a call: metadata, progress, cancellation and what a provider asks its
// client pass through.
//
// core.go and the files beside it hold the pure state and its Step; actor.go is
// the shell that performs the effects, and memberref.go the address that members
// answer to. A panic in Step leaves the state as the last message left it and
// sends nothing.
package aggregate
