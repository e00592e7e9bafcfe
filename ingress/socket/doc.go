// Package socket is the actor behind one provider WebSocket, in both framings of
// the tunnel: dedicated (one slot, plain frames, spec 01 section 2) and
// multiplexed (many slots, envelopes, spec 01 section 3).
//
// It owns the socket's heartbeat, its claims and the generations under which it
// holds slots. It takes the messages of actors/msg/socket.go from its reader,
// claims slots through the registry, and passes scanned frames to their slots.
// Frames to the provider do not pass through the actor: a slot hands them to the
// socket's outbox.
package socket
