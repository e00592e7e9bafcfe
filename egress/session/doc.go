// Package session is the actor behind one client of a slot, whatever transport
// the client uses: a transport gives it frames with a sink for each, and at most
// one stream for what nobody asked for.
//
// It owns the client's calls in flight, the negotiated revision, and the bounded
// history from which a stream resumes. It takes the messages of
// actors/msg/session.go from its transport and joins its slot through the
// registry.
package session
