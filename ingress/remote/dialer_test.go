package remote

import (
	"context"
	"net/http"
	"testing"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
)

// late is an owner that takes its time over the last word of a connection.
type late struct {
	mailbox
	hearing chan struct{} // it is being told
	heard   chan struct{} // closed lets it be told
}

func (l late) Send(message any) {
	if _, last := message.(*msg.UpstreamEnded); last {
		close(l.hearing)
		<-l.heard
	}
	l.mailbox.Send(message)
}

// Stop comes back behind the last word of every connection, also of one that ends by
// itself or that never began.
func TestStopWaitsForLastWord(t *testing.T) {
	s := newServer(t)
	for name, cfg := range map[string]Config{"given up": {URL: s.URL + "/sse"}, "never begun": {URL: "/mcp"}} {
		t.Run(name, func(t *testing.T) {
			s.set(func() {
				s.stream = func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
			})
			b := newBroker(t)
			owner := late{b.owner, make(chan struct{}), make(chan struct{})}
			begun := make(chan struct{})
			go func() {
				defer close(begun)
				b.dialer.Start(cfg, owner, ownGen)()
			}()
			receive(t, owner.hearing, "last word")
			hurried, cancel := context.WithCancel(t.Context())
			cancel()
			if err := b.dialer.Stop(hurried); err == nil {
				t.Error("Stop did not wait")
			}
			close(owner.heard)
			if err := b.dialer.Stop(t.Context()); err != nil {
				t.Error(err)
			}
			if len(b.owner) != 1 {
				t.Errorf("the owner was told %d times", len(b.owner))
			}
			receive(t, begun, "end of Start")
		})
	}
}

// absent is an owner that has stopped: what is sent to it comes back at once.
type absent struct{ mailbox }

func (a absent) Send(message any) {
	a.mailbox.Send(message)
	rt.Refuse(message)
}

// A connection whose owner has stopped when it opens ends.
func TestOpenedForNobody(t *testing.T) {
	b := newBroker(t)
	b.dialer.Start(Config{URL: newServer(t).URL}, absent{b.owner}, ownGen)
	if opened, ok := receive(t, b.owner, "UpstreamOpened").(*msg.UpstreamOpened); !ok {
		t.Fatalf("the owner was told %+v", opened)
	}
	b.expectEnd("<nil>", false)
}
