package loopback_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbroker"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
	"mcpbroker/brokertest"
	"mcpbroker/ingress/loopback"
	"mcpbroker/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func equal(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

// Spec 01 3.6: a loopback is a provider like any other, without framing.
func TestRelay(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	l := b.Loopback(t, "s")
	if info := b.Connected(t, "s"); info.Transport != msg.Loopback || info.Aggregate {
		t.Errorf("slot %+v", info)
	}
	c := brokertest.NewClient(t, b.MCPURL("s"))
	c.Handshake(l)
	stream := c.Listen()
	stream.Next()
	l.Send(`{"jsonrpc":"2.0","method":"notifications/x"}`)
	equal(t, "event", stream.Next(), "event: message\nid: 1\ndata: "+`{"jsonrpc":"2.0","method":"notifications/x"}`)
	l.Send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	equal(t, "B>P", l.Receive(), `{"jsonrpc":"2.0","id":1,"result":{}}`)
	l.Send(`{"jsonrpc":"2.0","method":"notifications/register","params":{"aggregate":true}}`)
	b.WaitSlot(t, "s", func(i msg.SlotInfo) bool { return i.Aggregate })
}

// Spec 01 2.1 D2: it cannot be taken over, by a socket nor by another loopback,
// and it does not take over a socket.
func TestClaims(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{mcpbroker.WithProviderTakeover("always")}})
	b.Loopback(t, "s")
	b.Dedicated(t, "held")
	if code, reason := brokertest.Dial(t, b.ProviderURL("s"), nil).Closed(); code != 1008 || reason != `Provider "s" is reserved by the broker` {
		t.Errorf("socket: closed %d %q", code, reason)
	}
	for slot, want := range map[string]string{
		"s":       `Provider "s" is reserved by the broker`,
		"_broker": `Provider "_broker" is reserved by the broker`,
		"held":    `Provider "held" is already connected.`,
	} {
		_, err := b.AttachLoopback(slot, nil, &brokertest.Loop{})
		var refusal *wire.Error
		if !errors.As(err, &refusal) || refusal.Code != wire.CodeUnavailable || !strings.HasPrefix(refusal.Message, want) {
			t.Errorf("slot %q: %v", slot, err)
		}
	}
}

// Closing frees the slot at once and fails the calls in flight; a second Close is
// fine, and sending is over.
func TestClose(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	l := b.Loopback(t, "s")
	c := brokertest.NewClient(t, b.MCPURL("s"))
	c.Handshake(l)
	pending := c.Start(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
	l.Receive()
	for range 2 {
		if err := l.Port().Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	equal(t, "the call", c.Await(pending).Body, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Provider \"s\" disconnected"}}`)
	b.Empty(t, "s")
	if err := l.Port().Send([]byte("{}")); !errors.Is(err, loopback.ErrClosed) {
		t.Errorf("send: %v", err)
	}
	b.Loopback(t, "s")
}

// A message that is no JSON is dropped with the slot's warning, as from a socket;
// one over the limit is an error.
func TestBadFrames(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{mcpbroker.WithMaxMessageBytes(2048)}})
	l := b.Loopback(t, "s")
	for _, frame := range []string{"", "{", "\xff", `{"id":1,"id":2}`} {
		if err := l.Port().Send([]byte(frame)); err != nil {
			t.Errorf("send %q: %v", frame, err)
		}
	}
	b.Log.Wait(t, `[broker] provider "s" sent a frame the broker could not route as JSON-RPC`)
	var tooLarge *wire.Error
	if err := l.Port().Send(make([]byte, 2049)); !errors.As(err, &tooLarge) || tooLarge.Code != wire.CodeInvalidRequest {
		t.Errorf("send over the limit: %v", err)
	}
	brokertest.NewClient(t, b.MCPURL("s")).Handshake(l)
}

// Many goroutines may send at once: each frame arrives once, and those of one
// goroutine in order.
func TestConcurrentSends(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	l := b.Loopback(t, "s")
	c := brokertest.NewClient(t, b.MCPURL("s"))
	c.Handshake(l)
	stream := c.Listen()
	stream.Next()
	const senders, each = 8, 50
	var all sync.WaitGroup
	for s := range senders {
		all.Go(func() {
			for n := range each {
				if err := l.Port().Send(fmt.Appendf(nil, `{"method":"n","params":[%d,%d]}`, s, n)); err != nil {
					t.Errorf("send: %v", err)
				}
			}
		})
	}
	all.Wait()
	next := map[int]int{}
	for range senders * each {
		var s, n int
		_, data, _ := strings.Cut(stream.Next(), "data: ")
		if _, err := fmt.Sscanf(data, `{"method":"n","params":[%d,%d]}`, &s, &n); err != nil || next[s] != n {
			t.Fatalf("event %s of sender %d, want number %d (%v)", data, s, next[s], err)
		}
		next[s]++
	}
}

// Bar 3 of the bounds: a loopback that floods waits for its slot, and the end of
// the broker releases it.
func TestBackPressure(t *testing.T) {
	release := make(chan struct{})
	held := make(chan struct{})
	var once sync.Once
	b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{mcpbroker.WithTap(func(_ string, message any) {
		if _, ok := message.(*msg.ProviderFrame); ok {
			once.Do(func() { close(held); <-release })
		}
	})}})
	l := b.Loopback(t, "s")
	const frames = 500
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for range frames {
			if err := l.Port().Send([]byte(`{"method":"n"}`)); err != nil {
				t.Errorf("send: %v", err)
				return
			}
		}
	}()
	<-held
	select {
	case <-sent:
		t.Errorf("%d frames were taken while the slot handled none", frames)
	case <-time.After(50 * time.Millisecond): // time to take more than fit
	}
	close(release)
	<-sent
	b.Stop(t)
	equal(t, "the end", l.End(), "1001 The broker is stopping")
	if err := l.Port().Send([]byte("{}")); !errors.Is(err, loopback.ErrClosed) {
		t.Errorf("send: %v", err)
	}
}
