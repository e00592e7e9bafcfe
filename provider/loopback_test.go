package provider

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// attacher is a broker that notes what a Loopback does.
type attacher struct {
	refuse   error
	onAttach func(p Peer)
	calls    chan string
	peers    chan Peer
}

func newAttacher() *attacher {
	return &attacher{calls: make(chan string, 1024), peers: make(chan Peer, 16)}
}

func (a *attacher) AttachLoopback(slot string, aggregate *bool, p Peer) (Port, error) {
	if a.refuse != nil {
		return nil, a.refuse
	}
	opt := "nil"
	if aggregate != nil {
		opt = fmt.Sprint(*aggregate)
	}
	a.calls <- "attach " + slot + " " + opt
	if a.onAttach != nil {
		a.onAttach(p)
	}
	a.peers <- p
	return &port{a}, nil
}

type port struct{ a *attacher }

func (p *port) Send(frame []byte) error { p.a.calls <- "send " + string(frame); return nil }
func (p *port) Close() error            { p.a.calls <- "close"; return nil }

func (a *attacher) expect(t *testing.T, want ...string) {
	t.Helper()
	for _, w := range want {
		if got := receive(t, a.calls); got != w {
			t.Fatalf("broker: want %q, got %q", w, got)
		}
	}
}

func TestLoopback(t *testing.T) {
	a, r := newAttacher(), newRecorder(t)
	// The broker may deliver before the attachment is complete.
	a.onAttach = func(p Peer) { p.Deliver([]byte(note(0))) }
	l := NewLoopback("clock", a, r.callbacks(), WithAggregate(true))
	send(t, l, note(1))
	connect(t, l)
	if err := l.Connect(t.Context()); !errors.Is(err, ErrConnected) {
		t.Errorf("want ErrConnected, got %v", err)
	}
	send(t, l, note(2))
	a.expect(t, "attach clock true", "send "+note(1), "send "+note(2))
	p := receive(t, a.peers)
	p.Deliver([]byte(note(3)))
	r.expect("open", "message "+note(0), "message "+note(3))

	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	a.expect(t, "close")
	r.expect("close")
	if err := l.Send([]byte(note(4))); !errors.Is(err, ErrClosed) {
		t.Errorf("Send after Close: want ErrClosed, got %v", err)
	}
	p.Deliver([]byte(note(5)))
	p.Closed(1001, "late")
	l.wait()
	r.nothing()
}

func TestLoopbackRefused(t *testing.T) {
	a, r := newAttacher(), newRecorder(t)
	a.refuse = errors.New("taken")
	l := NewLoopback("clock", a, r.callbacks())
	if err := l.Connect(t.Context()); !errors.Is(err, a.refuse) {
		t.Fatalf("want the broker's error, got %v", err)
	}
	a.refuse = nil
	connect(t, l)
	a.expect(t, "attach clock nil")
	r.expect("open")
}

// The broker's end is reported like a socket's, queues what follows, and allows
// another Connect.
func TestLoopbackClosedByBroker(t *testing.T) {
	a, r := newAttacher(), newRecorder(t)
	l := NewLoopback("clock", a, r.callbacks(), WithAggregate(false))
	connect(t, l)
	p := receive(t, a.peers)
	p.Deliver([]byte(note(1)))
	p.Closed(1001, "broker stops")
	p.Closed(1008, "ignored")
	r.expect("open", "message "+note(1), "error connection closed: 1001: broker stops", "close")
	send(t, l, note(2))
	connect(t, l)
	a.expect(t, "attach clock false", "attach clock false", "send "+note(2))
	r.expect("open")
	receive(t, a.peers).Closed(1000, "")
	r.expect("close")
}

func TestLoopbackClosedWhileAttaching(t *testing.T) {
	a, r := newAttacher(), newRecorder(t)
	a.onAttach = func(p Peer) { p.Closed(1008, "changed my mind") }
	l := NewLoopback("clock", a, r.callbacks())
	connect(t, l)
	r.expect("open", "error connection closed: 1008 (policy refusal): changed my mind", "close")
	a.expect(t, "attach clock nil", "close")
}

// Deliver never blocks: a provider that does not keep up loses the slot.
func TestLoopbackOverflow(t *testing.T) {
	a := newAttacher()
	entered, release := make(chan struct{}), make(chan struct{})
	got := make(chan error, 1)
	messages := 0
	l := NewLoopback("clock", a, Events{
		Message: func([]byte) {
			if messages++; messages == 1 {
				close(entered)
				<-release
			}
		},
		Error: func(err error) { got <- err },
	})
	connect(t, l)
	p := receive(t, a.peers)
	p.Deliver([]byte(`1`))
	receive(t, entered)
	for range inboxFrames + 10 {
		p.Deliver([]byte(`22`))
	}
	a.expect(t, "attach clock nil", "close")
	close(release)
	var over *OverflowError
	if err := receive(t, got); !errors.As(err, &over) {
		t.Fatalf("want an OverflowError, got %v", err)
	}
	if diff := cmp.Diff(OverflowError{Slot: "clock", Frames: 256, Bytes: 512}, *over); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	l.wait()
	if messages != inboxFrames+1 {
		t.Errorf("want %d messages before the error, got %d", inboxFrames+1, messages)
	}
}
