// Package remote dials MCP servers elsewhere and keeps one connection to each: a
// session over Streamable HTTP, a stream of the older HTTP+SSE transport, or a
// WebSocket (spec 03 4.2). A connection is a msg.Driver; what it comes to is told to
// the actor of its upstream, and what the server says goes to the slot. Where the
// configuration names no transport, a server that turns out to speak HTTP+SSE in the place
// of Streamable HTTP is spoken to so.
//
// A call never waits in vain: where the server gives no JSON-RPC answer, the caller
// gets an error that says what the server did. Over Streamable HTTP, a session the
// server has forgotten is opened again with the last initialize, the slot is told so,
// and the message the server refused is sent once more; anything that may have been
// carried out is never repeated. One message that cannot be sent costs itself: calls
// under way finish before the connection ends.
package remote
