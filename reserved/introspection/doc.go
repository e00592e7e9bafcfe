// Package introspection is the slot _broker: an MCP server inside the broker
// that tells clients what the broker is, which slots it has, how to use it and
// what is wrong with it (spec 03 sections 1 and 2). It relays nothing.
//
// It is a slot actor: sessions join it through the registry like any other slot.
// What it reports of other slots is asked of them for each request, so that no
// answer is older than its question.
package introspection
