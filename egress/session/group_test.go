package session

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/wire"
)

// slotless is a registry that never answers.
type slotless struct{}

func (slotless) Send(any) {}

// A group that has ended takes no session; one that ends lets those without a call
// go at once, and the others when ctx ends.
func TestGroup(t *testing.T) {
	sys := rt.NewSystem(slog.New(slog.DiscardHandler), nil)
	defer sys.Close()
	g := NewGroup(sys, slotless{})
	open := func(ctx context.Context) (*rt.Ref, chan struct{}, error) {
		gone := make(chan struct{})
		ref, err := g.Open(ctx, Config{Slot: "s", Trace: func() string { return "" }}, func() { close(gone) })
		return ref, gone, err
	}
	_, idle, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	busy, cut, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f, err := wire.Scan([]byte(ask))
	if err != nil {
		t.Fatal(err)
	}
	closed := make(closing)
	busy.Send(&msg.ClientFrame{Frame: f, Sink: closed})

	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	ended := make(chan error)
	go func() { ended <- g.End(ctx) }()
	<-idle
	giveUp()
	<-closed
	<-cut
	if err := <-ended; err != nil {
		t.Errorf("End: %v", err)
	}
	if _, _, err := open(t.Context()); !errors.Is(err, rt.ErrStopped) {
		t.Errorf("Open afterwards: %v", err)
	}
}

// closing is a request that is told that its session has ended, and nothing else.
type closing chan struct{}

func (c closing) Reply([]byte)            { panic("answered") }
func (c closing) Event([]byte, mcp.Class) { panic("an event") }
func (c closing) Accepted()               { panic("accepted") }
func (c closing) Refuse(*wire.Error)      { panic("refused") }
func (c closing) Closed()                 { close(c) }
