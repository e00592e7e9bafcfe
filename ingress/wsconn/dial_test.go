//lint:file-ignore SA1019 an independent WebSocket implementation judges ours

package wsconn_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"nhooyr.io/websocket"

	"mcpbroker/actors/wire"
	"mcpbroker/ingress/wsconn"
)

// dialed returns both ends of a WebSocket that was opened from here.
func dialed(t *testing.T, tls bool) (*wsconn.Conn, *websocket.Conn) {
	t.Helper()
	conns := make(chan *websocket.Conn, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != "k" || r.Host != "other.example" {
			t.Errorf("header %v of %s", r.Header, r.Host)
		}
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"mcp"}, InsecureSkipVerify: true})
		if err != nil {
			t.Error(err)
			return
		}
		c.SetReadLimit(-1)
		conns <- c
	}))
	server.EnableHTTP2 = true
	start := server.Start
	if tls {
		start = server.StartTLS
	}
	start()
	t.Cleanup(server.Close)
	transport := server.Client().Transport.(*http.Transport)
	transport.ForceAttemptHTTP2 = true
	c, err := wsconn.Dial(t.Context(), wsconn.DialConfig{
		URL: "ws" + strings.TrimPrefix(server.URL, "http"), Host: "other.example", Header: http.Header{"X-Key": {"k"}}, Subprotocol: "mcp", Transport: transport,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Terminate)
	peer := <-conns
	t.Cleanup(func() { _ = peer.CloseNow() })
	return c, peer
}

// Batches leave and messages of every size arrive, also where HTTP/2 was on offer.
func TestDial(t *testing.T) {
	for _, tls := range []bool{false, true} {
		c, peer := dialed(t, tls)
		if peer.Subprotocol() != "mcp" {
			t.Errorf("subprotocol %q", peer.Subprotocol())
		}
		for _, size := range []int{0, 1, 125, 126, limit, 1 << 20} {
			want := strings.Repeat("x", size)
			written := make(chan error, 1)
			go func() { // the system may not take all of it before it is read
				written <- c.WriteBatch(func(write func([]byte) error) error { return errors.Join(write([]byte("first")), write([]byte(want))) })
			}()
			for _, want := range []string{"first", want} {
				if _, got, err := peer.Read(t.Context()); err != nil || string(got) != want {
					t.Fatalf("size %d: the peer read %d bytes, %v", size, len(got), err)
				}
			}
			if err := <-written; err != nil {
				t.Fatal(err)
			}
			go func() { written <- peer.Write(t.Context(), websocket.MessageText, []byte(want)) }()
			if got, _, err := c.ReadUpTo(1 << 20); err != nil || string(got) != want {
				t.Fatalf("size %d: read %d bytes, %v", size, len(got), err)
			}
			if err := <-written; err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Of a message over the limit both ends come back, and the next one is read.
func TestReadUpTo(t *testing.T) {
	c, peer := dialed(t, false)
	for _, size := range []int{limit + 1, limit + 1500, 10 * limit} {
		text := "head" + strings.Repeat("x", size-8) + "tail"
		written := make(chan error, 1)
		go func() {
			written <- errors.Join(
				peer.Write(t.Context(), websocket.MessageText, []byte(text)),
				peer.Write(t.Context(), websocket.MessageText, []byte("next")))
		}()
		head, tail, err := c.ReadUpTo(limit)
		if !errors.Is(err, wire.ErrTooLong) || string(head) != text[:1024] || string(tail) != text[size-1024:] {
			t.Errorf("%d bytes: %d bytes of head, %d of tail, %v", size, len(head), len(tail), err)
		}
		if next, _, err := c.ReadUpTo(limit); err != nil || string(next) != "next" {
			t.Errorf("then %q, %v", next, err)
		}
		if err := <-written; err != nil {
			t.Fatal(err)
		}
	}
}

// A refused handshake comes with its answer; a server that is not there does not.
func TestDialRefused(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no entry", http.StatusForbidden) }))
	cfg := wsconn.DialConfig{URL: server.URL, Transport: &http.Transport{}}
	_, err := wsconn.Dial(t.Context(), cfg)
	var refused *wsconn.RefusedError
	if !errors.As(err, &refused) || refused.Error() != "the server answered HTTP 403 Forbidden" {
		t.Fatalf("refused: %v", err)
	}
	if body, _ := io.ReadAll(refused.Response.Body); string(body) != "no entry\n" {
		t.Errorf("body %q", body)
	}
	server.Close()
	gone := errors.New("connection refused") // somebody else may have got the port by now
	cfg.Transport = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, gone }}
	if _, err := wsconn.Dial(t.Context(), cfg); !errors.Is(err, gone) || errors.As(err, &refused) {
		t.Errorf("no server: %v", err)
	}
}

// The end of a connection in words.
func TestReason(t *testing.T) {
	for want, end := range map[string]func(*websocket.Conn){
		"code 1013, busy": func(p *websocket.Conn) { _ = p.Close(websocket.StatusTryAgainLater, "busy") },
		"code 1000":       func(p *websocket.Conn) { _ = p.Close(websocket.StatusNormalClosure, "") },
	} {
		c, peer := dialed(t, false)
		done := make(chan struct{})
		go func() { defer close(done); end(peer) }()
		_, _, err := c.ReadUpTo(limit)
		if got := wsconn.Reason(err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		<-done
	}
	for want, err := range map[string]error{"the connection broke": io.ErrUnexpectedEOF, "context canceled": context.Canceled} {
		if got := wsconn.Reason(err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Terminate ends a read of a dialed connection.
func TestTerminateDialed(t *testing.T) {
	c, _ := dialed(t, true)
	time.AfterFunc(time.Millisecond, c.Terminate)
	if _, _, err := c.ReadUpTo(limit); err == nil {
		t.Error("a message was read")
	}
}
