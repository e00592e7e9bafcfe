package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"
)

func envelope(slot, payload string) string {
	return fmt.Sprintf(`{"provider":"%s","payload":%s}`, slot, payload)
}

func announcement(slot string) string {
	return envelope(slot, `{"jsonrpc":"2.0","method":"notifications/register"}`)
}

// spec 01 3.1, 3.3 and section 6: one register envelope per slot, with params
// only when the option was given; a slot added to an open socket is announced at
// once; frames travel unchanged inside the envelope.
func TestTunnelRegistration(t *testing.T) {
	b := newBroker(t)
	tun := NewTunnel(b.url("/providers"), WithSecret("s3cret-value"))
	r := newRecorder(t)
	first := tun.Provider("pump-1", r.callbacks())
	connect(t, first)
	p := b.accept()
	if got := p.req.Header.Get("X-Provider-Token"); got != "s3cret-value" {
		t.Errorf("X-Provider-Token: got %q", got)
	}
	p.expect(announcement("pump-1"))
	r.expect("open")

	second := tun.Provider(`a/b "<é>`, Events{}, WithAggregate(true))
	connect(t, second)
	p.expect(`{"provider":"a/b \"<é>","payload":{"jsonrpc":"2.0","method":"notifications/register","params":{"aggregate":true}}}`)
	connect(t, tun.Provider("x", Events{}, WithAggregate(false)))
	p.expect(envelope("x", `{"jsonrpc":"2.0","method":"notifications/register","params":{"aggregate":false}}`))

	odd := `{ "jsonrpc":"2.0", "id":12345678901234567890, "result":{"z":"<&>","a":1.0e2} }`
	send(t, first, odd)
	p.expect(envelope("pump-1", odd))
	p.send(envelope("pump-1", odd))
	r.expect("message " + odd)
	p.send(`{"extra":1,"payload":[],"jsonrpc":"2.0","provider":"pump-1"}`)
	r.expect("message []")
	if len(b.peers) != 0 {
		t.Fatal("the tunnel opened more than one socket")
	}
}

// spec 01 section 6: after a reconnect all slots are announced again, then the
// queue of the whole tunnel follows; a new registration dials at once.
func TestTunnelAnnouncesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a busy machine might dial by itself before the new registration
		n := newMemoryNet(t)
		log := newLogbook()
		tun := NewTunnel("ws://broker/providers", WithHTTPClient(n.client()), WithLogger(log.logger()))
		ra, rb := newRecorder(t), newRecorder(t)
		a, bb := tun.Provider("a", ra.callbacks()), tun.Provider("b", rb.callbacks())
		connect(t, a)
		connect(t, bb)
		p := <-n.peers
		p.expect(announcement("a"))
		p.expect(announcement("b"))
		if got := tun.LastClose(); got != nil {
			t.Fatalf("LastClose before any: got %v", got)
		}
		p.drop()
		// spec 01 section 6: the close callback only.
		ra.expect("open", "close")
		rb.expect("open", "close")
		if diff := cmp.Diff(&CloseError{Code: 1006}, tun.LastClose()); diff != "" {
			t.Errorf("LastClose (-want +got):\n%s", diff)
		}

		for i := range 33 {
			send(t, a, note(i))
			send(t, bb, note(i))
		}
		connect(t, tun.Provider("c", Events{}))
		p = <-n.peers
		for _, slot := range []string{"a", "b", "c"} {
			p.expect(announcement(slot))
		}
		for i := 1; i < 33; i++ { // the oldest of each slot was dropped
			p.expect(envelope("a", note(i)))
			p.expect(envelope("b", note(i)))
		}
		ra.expect("open")
		rb.expect("open")
		if got := len(log.containing("WARN provider: queue is full, dropped the oldest frame")); got != 2 {
			t.Errorf("want 2 warnings about the queue, got %d", got)
		}
	})
}

// Frames sent before Connect follow the registration, also on an open socket.
func TestTunnelSendBeforeConnect(t *testing.T) {
	b := newBroker(t)
	tun := NewTunnel(b.url("/providers"))
	a, late := tun.Provider("a", Events{}), tun.Provider("late", Events{})
	send(t, late, note(1))
	send(t, a, note(2))
	connect(t, a)
	p := b.accept()
	p.expect(announcement("a"))
	p.expect(envelope("a", note(2)))
	connect(t, late)
	p.expect(announcement("late"))
	p.expect(envelope("late", note(1)))
}

// spec 01 3.4 and section 6: closing one of several says nothing, closing the
// last closes the socket and discards the queue.
func TestTunnelClose(t *testing.T) {
	b := newBroker(t)
	log := newLogbook()
	tun := NewTunnel(b.url("/providers"), WithLogger(log.logger()))
	ra, rb := newRecorder(t), newRecorder(t)
	a, bb := tun.Provider("a", ra.callbacks()), tun.Provider("b", rb.callbacks())
	connect(t, a)
	connect(t, bb)
	p := b.accept()
	p.expect(announcement("a"))
	p.expect(announcement("b"))

	_ = a.Close()
	ra.expect("open", "close")
	if err := a.Send([]byte(note(1))); !errors.Is(err, ErrClosed) {
		t.Errorf("Send after Close: want ErrClosed, got %v", err)
	}
	p.send(envelope("a", note(2)))
	want := `ERROR provider: envelope for a slot that is not connected here, dropped slot=a count=1`
	if got := log.await(t, "not connected here"); got != want {
		t.Errorf("want %q, got %q", want, got)
	}
	send(t, bb, note(3))
	p.expect(envelope("b", note(3)))

	unconnected := tun.Provider("c", Events{})
	send(t, unconnected, note(4))
	closed := make(chan error, 1)
	go func() { closed <- bb.Close() }()
	p.expectClose(websocket.StatusNormalClosure)
	if err := receive(t, closed); err != nil {
		t.Fatal(err)
	}
	rb.expect("open", "close")

	connect(t, unconnected)
	p = b.accept()
	p.expect(announcement("c"))
	connect(t, a)
	p.expect(announcement("a"))
	ra.expect("open")
}

// spec 01 3.5 and section 6: a refusal is an error of its slot, is not delivered
// and not retried; socket and slots stay.
func TestTunnelRefusal(t *testing.T) {
	b := newBroker(t)
	tun := NewTunnel(b.url("/providers"))
	ra, rb := newRecorder(t), newRecorder(t)
	a, bb := tun.Provider("a", ra.callbacks()), tun.Provider("b", rb.callbacks())
	connect(t, a)
	connect(t, bb)
	p := b.accept()
	p.expect(announcement("a"))
	p.expect(announcement("b"))

	p.send(envelope("a", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Provider \"a\" is already connected."}}`))
	p.send(envelope("a", `{"jsonrpc":"2.0","error":{"code":-32001,"message":"no"}}`))
	ra.expect("open",
		`error Tunnel error -32000 on provider "a": Provider "a" is already connected.`,
		`error Tunnel error -32001 on provider "a": no`)
	var te *TunnelError
	if err := receive(t, ra.errs); !errors.As(err, &te) {
		t.Fatalf("want a TunnelError, got %#v", err)
	}
	if diff := cmp.Diff(TunnelError{Slot: "a", Code: -32000, Message: `Provider "a" is already connected.`}, *te); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	for _, answer := range []string{
		`{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"x"}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":"-32000","message":"x"}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32000}}`,
		`{"jsonrpc":"2.0","id":null,"result":{}}`,
		`null`,
	} {
		p.send(envelope("a", answer))
		ra.expect("message " + answer)
	}
	p.send(envelope("b", note(1)))
	rb.expect("open", "message "+note(1))
	send(t, a, note(2))
	p.expect(envelope("a", note(2)))
}

// spec 01 section 6: what is no envelope is dropped, with the first and then one
// in 50 logged.
func TestTunnelStrangeFrames(t *testing.T) {
	b := newBroker(t)
	log := newLogbook()
	r := newRecorder(t)
	tun := NewTunnel(b.url("/providers"), WithLogger(log.logger()))
	connect(t, tun.Provider("a", r.callbacks()))
	p := b.accept()
	strange := []string{`{"jsonrpc":"2.0","method":"x"}`, `[]`, `null`, `{"provider":"","payload":1}`, `{"provider":"a"}`, `{"provider":7,"payload":1}`, "not JSON"}
	for i := range 51 {
		p.send(strange[i%len(strange)])
	}
	p.send(envelope("a", note(1)))
	r.expect("open", "message "+note(1))
	want := []string{
		`ERROR provider: tunnel frame is not an envelope, dropped frame={"jsonrpc":"2.0","method":"x"} count=1`,
		`ERROR provider: tunnel frame is not an envelope, dropped frame=[] count=51`,
	}
	if diff := cmp.Diff(want, log.containing("not an envelope")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTunnelConnectErrors(t *testing.T) {
	b := newBroker(t)
	tun := NewTunnel(b.url("/providers"))
	connect(t, tun.Provider("a", Events{}))
	b.accept()
	if err := tun.Provider("a", Events{}).Connect(t.Context()); !errors.Is(err, ErrConnected) {
		t.Errorf("same slot twice: want ErrConnected, got %v", err)
	}
	if err := tun.Provider("", Events{}).Connect(t.Context()); !errors.Is(err, errNoSlot) {
		t.Errorf("empty slot: got %v", err)
	}
	if err := tun.Provider("b", Events{}).Send([]byte(`{"jsonrpc":`)); err == nil {
		t.Error("a frame that is not JSON was accepted")
	}
}

// A wrong credential ends Connect at once, leaving nothing behind.
func TestTunnelUnauthorized(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
	}))
	defer srv.Close()
	r := newRecorder(t)
	tun := NewTunnel("ws"+strings.TrimPrefix(srv.URL, "http")+"/providers", WithLogger(newLogbook().logger()))
	m := tun.Provider("a", r.callbacks())
	err := m.Connect(context.Background())
	var he *HandshakeError
	if !errors.As(err, &he) || he.Status != 401 || he.Body != "Unauthorized" {
		t.Fatalf("want HTTP 401, got %v", err)
	}
	m.wait()
	r.nothing()
}
