package brokertest

import (
	"strings"
	"testing"
)

// SSE is a client of the legacy pair: a stream, and posts beside it.
type SSE struct {
	*Stream
	Post     *Client // of the endpoint that the stream named
	Endpoint string  // as it stood in the first event
}

// SSEURL is the legacy stream of a slot.
func (b *Broker) SSEURL(slot string) string { return local(b.Broker.SSEURL(slot)) }

// DialSSE opens a stream and takes its first event.
func (b *Broker) DialSSE(t testing.TB, slot string) *SSE {
	t.Helper()
	return b.DialSSEVia(t, slot, nil)
}

// DialSSEVia is DialSSE over another network.
func (b *Broker) DialSSEVia(t testing.TB, slot string, dial DialFunc) *SSE {
	t.Helper()
	stream := NewClientVia(t, b.SSEURL(slot), dial).Listen()
	first := stream.Next()
	endpoint, ok := strings.CutPrefix(first, "event: endpoint\ndata: ")
	if !ok {
		t.Fatalf("the stream began with %d %q", stream.Status, first)
	}
	return &SSE{Stream: stream, Post: NewClient(t, b.URL()+endpoint), Endpoint: endpoint}
}

// Send posts one message, which must be taken.
func (s *SSE) Send(message string) {
	s.t.Helper()
	if a := s.Post.Post(message); a.Status != 202 || a.Body != "" {
		s.t.Fatalf("post %.200s: %d %s", message, a.Status, a.Body)
	}
}

// Receive returns the data of the next event, which must be a message.
func (s *SSE) Receive() string {
	s.t.Helper()
	block := s.Next()
	data, ok := strings.CutPrefix(block, "event: message\ndata: ")
	if !ok || strings.Contains(data, "\n") {
		s.t.Fatalf("the stream carried %q", block)
	}
	return data
}
