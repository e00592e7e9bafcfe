package provider

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"
)

// spec 01 section 6: the registration goes first, and only when the option was given.
func TestDirectRegistration(t *testing.T) {
	tests := []struct {
		name string
		opts []Option
		want []string
	}{
		{"not given", nil, []string{note(1)}},
		{"true", []Option{WithAggregate(true)},
			[]string{`{"jsonrpc":"2.0","method":"notifications/register","params":{"aggregate":true}}`, note(1)}},
		{"false", []Option{WithAggregate(false)},
			[]string{`{"jsonrpc":"2.0","method":"notifications/register","params":{"aggregate":false}}`, note(1)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBroker(t)
			d := NewDirect(b.url("/provider/demo"), Events{}, append(tt.opts, WithLogger(newLogbook().logger()))...)
			send(t, d, note(1))
			connect(t, d)
			p := b.accept()
			for _, frame := range tt.want {
				p.expect(frame)
			}
		})
	}
}

// spec 01 section 6, regression 31: queued frames follow the registration, in
// order, and later frames follow them.
func TestDirectQueueKeepsTheNewest64(t *testing.T) {
	b := newBroker(t)
	log := newLogbook()
	d := NewDirect(b.url("/provider/demo?token=hidden"), Events{}, WithAggregate(true), WithLogger(log.logger()))
	for i := range queueBound + 2 {
		send(t, d, note(i))
	}
	connect(t, d)
	send(t, d, note(100))

	p := b.accept()
	p.expect(`{"jsonrpc":"2.0","method":"notifications/register","params":{"aggregate":true}}`)
	for i := 2; i < queueBound+2; i++ {
		p.expect(note(i))
	}
	p.expect(note(100))

	want := "WARN provider: queue is full, dropped the oldest frame url=" + b.url("/provider/demo") + " bound=64"
	if diff := cmp.Diff([]string{want, want}, log.containing("queue is full")); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

// spec 01 2.1 and section 6: open comes before the refusal, the error with the
// broker's reason before close.
func TestDirectRefusal(t *testing.T) {
	const reason = `Slot already held by a live provider; call provider_status on _broker. Slot: "demo"`
	b := newBroker(t)
	r := newRecorder(t)
	d := NewDirect(b.url("/provider/demo"), r.callbacks())
	connect(t, d)
	b.accept().close(websocket.StatusPolicyViolation, reason)

	r.expect("open", "error connection closed: 1008 (policy refusal): "+reason, "close")
	var ce *CloseError
	if err := receive(t, r.errs); !errors.As(err, &ce) || !ce.Refused() {
		t.Fatalf("want a refusal, got %#v", err)
	}
	if diff := cmp.Diff(CloseError{Code: 1008, Reason: reason}, *ce); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The reason survives when the refusal meets frames on their way out.
func TestDirectRefusalWhileSending(t *testing.T) {
	for range 20 {
		b := newBroker(t)
		r := newRecorder(t)
		d := NewDirect(b.url("/provider/demo"), r.callbacks(), WithAggregate(true))
		for i := range queueBound {
			send(t, d, note(i))
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			receive(t, b.peers).close(websocket.StatusPolicyViolation, "held")
		}()
		connect(t, d)
		r.expect("open", "error connection closed: 1008 (policy refusal): held", "close")
		<-done
	}
}

// spec 01 2.6: heartbeat pings are answered while a callback works.
func TestDirectAnswersPings(t *testing.T) {
	b := newBroker(t)
	entered, release := make(chan struct{}), make(chan struct{})
	d := NewDirect(b.url("/provider/demo"), Events{Message: func([]byte) { close(entered); <-release }},
		WithLogger(newLogbook().logger()))
	connect(t, d)
	p := b.accept()
	p.send(note(1))
	receive(t, entered)
	p.conn.CloseRead(t.Context())
	for range 3 {
		if err := p.conn.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	close(release)
}

// spec 01 section 6: every code but 1000 is an error before close.
func TestDirectCloseCodes(t *testing.T) {
	tests := []struct {
		name string
		end  func(p *peer)
		want []string
	}{
		{"1000", func(p *peer) { p.close(websocket.StatusNormalClosure, "bye") }, []string{"open", "close"}},
		{"1001", func(p *peer) { p.close(websocket.StatusGoingAway, "stopping") },
			[]string{"open", "error connection closed: 1001: stopping", "close"}},
		{"1005", func(p *peer) { p.close(websocket.StatusNoStatusRcvd, "") },
			[]string{"open", "error connection closed: 1005", "close"}},
		{"1006", func(p *peer) { p.drop() }, []string{"open", "error connection closed: 1006", "close"}},
		{"1009", func(p *peer) { p.send(note(1) + strings.Repeat(" ", 100)) },
			[]string{"open", "error connection closed: 1009: incoming frame exceeds the read limit of 64 bytes", "close"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBroker(t)
			r := newRecorder(t)
			d := NewDirect(b.url("/provider/demo"), r.callbacks(), WithReadLimit(64))
			connect(t, d)
			tt.end(b.accept())
			r.expect(tt.want...)
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			d.wait()
			r.nothing()
		})
	}
}

// spec 01 section 6: no reconnect; frames queue until Connect is called again.
func TestDirectConnectAgain(t *testing.T) {
	b := newBroker(t)
	r := newRecorder(t)
	d := NewDirect(b.url("/provider/demo"), r.callbacks(), WithAggregate(true))
	connect(t, d)
	const register = `{"jsonrpc":"2.0","method":"notifications/register","params":{"aggregate":true}}`
	p := b.accept()
	p.expect(register)
	p.drop()
	r.expect("open", "error connection closed: 1006", "close")

	send(t, d, note(1))
	connect(t, d)
	p = b.accept()
	p.expect(register)
	p.expect(note(1))
	r.expect("open")
	if len(b.peers) != 0 {
		t.Fatal("connected more than once")
	}
}

// Connecting again from the close callback neither deadlocks nor overlaps
// callbacks.
func TestDirectConnectInsideClose(t *testing.T) {
	b := newBroker(t)
	r := newRecorder(t)
	var d *Direct
	var again atomic.Bool
	ev := r.callbacks()
	ev.Close = func() {
		if again.Swap(true) {
			return
		}
		r.events <- "close begins"
		if err := d.Connect(t.Context()); err != nil {
			r.events <- err.Error()
		}
		r.events <- "close ends"
	}
	d = NewDirect(b.url("/provider/demo"), ev)
	connect(t, d)
	b.accept().close(websocket.StatusNormalClosure, "")
	r.expect("open", "close begins", "close ends", "open")
	b.accept()
}

// A local close is normal: code 1000 on the wire, no error, close once.
func TestDirectLocalClose(t *testing.T) {
	b := newBroker(t)
	r := newRecorder(t)
	d := NewDirect(b.url("/provider/demo"), r.callbacks())
	connect(t, d)
	p := b.accept()
	closed := make(chan error, 1)
	go func() { closed <- d.Close() }()
	p.expectClose(websocket.StatusNormalClosure)
	if err := receive(t, closed); err != nil {
		t.Fatal(err)
	}
	r.expect("open", "close")
	if err := d.Send([]byte(note(1))); !errors.Is(err, ErrClosed) {
		t.Errorf("Send after Close: want ErrClosed, got %v", err)
	}
	if err := d.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	d.wait()
	r.nothing()
}

// spec 01 section 6: X-Provider-Token and further headers; no extension is offered.
func TestDirectHeaders(t *testing.T) {
	b := newBroker(t)
	log := newLogbook()
	given := http.Header{"X-Site": {"a"}, "X-Provider-Token": {"loses"}}
	d := NewDirect(b.url("/provider/a%2Fb"), Events{}, WithHeader(given), WithSecret("s3cret-value"), WithLogger(log.logger()))
	connect(t, d)
	p := b.accept()
	got := []string{p.req.RequestURI, p.req.Header.Get("X-Site"), p.req.Header.Get("X-Provider-Token"),
		p.req.Header.Get("Sec-WebSocket-Extensions")}
	if diff := cmp.Diff([]string{"/provider/a%2Fb", "a", "s3cret-value", ""}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	p.drop()
	log.await(t, "socket ended")
	if lines := log.containing("s3cret"); lines != nil {
		t.Errorf("secret in log: %q", lines)
	}
}

// spec 01 1.3: the status and text of a refused handshake are reported, and no
// redirect is followed.
func TestDirectHandshakeRefused(t *testing.T) {
	tests := []struct {
		status int
		body   string
	}{{401, "Unauthorized"}, {403, "Forbidden"}, {307, ""}}
	for _, tt := range tests {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/provider/elsewhere")
			http.Error(w, tt.body, tt.status)
		}))
		r := newRecorder(t)
		d := NewDirect("ws"+strings.TrimPrefix(srv.URL, "http")+"/provider/demo", r.callbacks())
		err := d.Connect(t.Context())
		srv.Close()
		var he *HandshakeError
		if !errors.As(err, &he) {
			t.Fatalf("want a HandshakeError, got %v", err)
		}
		if diff := cmp.Diff(HandshakeError{Status: tt.status, Body: tt.body}, *he); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		r.nothing()
	}
}

func TestDirectConnectTwice(t *testing.T) {
	b := newBroker(t)
	d := NewDirect(b.url("/provider/demo"), Events{}, WithLogger(newLogbook().logger()))
	connect(t, d)
	p := b.accept()
	if err := d.Connect(t.Context()); !errors.Is(err, ErrConnected) {
		t.Fatalf("want ErrConnected, got %v", err)
	}
	send(t, d, note(1))
	p.expect(note(1))
}

// Close while the handshake is under way ends Connect.
func TestDirectCloseWhileConnecting(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-release
	}))
	defer srv.Close()
	defer close(release)
	d := NewDirect("ws"+strings.TrimPrefix(srv.URL, "http")+"/provider/demo", Events{})
	result := make(chan error, 1)
	go func() { result <- d.Connect(context.Background()) }()
	receive(t, arrived)
	_ = d.Close()
	if err := receive(t, result); !errors.Is(err, ErrClosed) {
		t.Fatalf("want ErrClosed, got %v", err)
	}
}

// spec 01 section 2: one message per frame; a binary frame is a message too.
func TestDirectMessages(t *testing.T) {
	b := newBroker(t)
	r := newRecorder(t)
	d := NewDirect(b.url("/provider/demo"), r.callbacks())
	connect(t, d)
	p := b.accept()
	r.expect("open")
	big := `{"jsonrpc":"2.0","method":"m","params":{"n":12345678901234567890,"pad":"` + strings.Repeat("x", 1<<20) + `"}}`
	p.send(big)
	p.send(note(2))
	if err := p.conn.Write(t.Context(), websocket.MessageBinary, []byte(note(3))); err != nil {
		t.Fatal(err)
	}
	r.expect("message "+big, "message "+note(2), "message "+note(3))
}

// Without an error callback a refusal reaches the log.
func TestDirectErrorWithoutCallback(t *testing.T) {
	b := newBroker(t)
	log := newLogbook()
	d := NewDirect(b.url("/provider/demo"), Events{}, WithLogger(log.logger()))
	connect(t, d)
	b.accept().close(websocket.StatusPolicyViolation, "no")
	if got, want := log.await(t, "refusal"), "ERROR provider: connection closed: 1008 (policy refusal): no"; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
}

// The broker cannot see a Direct on the tunnels' path that has nothing to say.
func TestDirectWarnsOfTheSharedPath(t *testing.T) {
	for path, want := range map[string]int{
		"/providers": 1, "/providers/": 1, "/providers/pump-1": 1, "/tools/providers": 1,
		"/provider/demo": 0, "/provider/providers": 0, "/my-providers/x": 0,
	} {
		b := newBroker(t)
		log := newLogbook()
		d := NewDirect(b.url(path), Events{}, WithLogger(log.logger()))
		connect(t, d)
		b.accept()
		if got := len(log.containing("the path that tunnels share")); got != want {
			t.Errorf("%s: %d warnings, want %d", path, got, want)
		}
	}
}
