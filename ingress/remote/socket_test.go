//lint:file-ignore SA1019 an independent WebSocket implementation judges ours

package remote

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"nhooyr.io/websocket"

	"mcpbroker/actors/wire"
)

// far is a server over WebSocket, whose connections a test holds.
type far struct {
	*httptest.Server
	url   string
	conns chan *websocket.Conn
	seen  chan http.Header
}

func newFar(t *testing.T, tls bool) *far {
	s := &far{conns: make(chan *websocket.Conn, 4), seen: make(chan http.Header, 4)}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"mcp"}})
		if err != nil {
			t.Error(err)
			return
		}
		c.SetReadLimit(-1)
		s.seen <- r.Header.Clone()
		s.conns <- c
	}))
	if tls {
		s.StartTLS()
	} else {
		s.Start()
	}
	s.url = "ws" + strings.TrimPrefix(s.URL, "http")
	t.Cleanup(s.Close)
	return s
}

func (s *far) conn(t *testing.T) *websocket.Conn {
	t.Helper()
	c := receive(t, s.conns, "connection")
	t.Cleanup(func() { _ = c.CloseNow() })
	return c
}

func say(t *testing.T, c *websocket.Conn, frame string) {
	t.Helper()
	if err := c.Write(context.Background(), websocket.MessageText, []byte(frame)); err != nil {
		t.Fatal(err)
	}
}

func hear(t *testing.T, c *websocket.Conn, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	kind, data, err := c.Read(ctx)
	if err != nil || kind != websocket.MessageText {
		t.Fatalf("read %v: %v", kind, err)
	}
	equal(t, "message for the server", string(data), want)
}

// Spec 03 4.2: text frames both ways, with the configured headers; the server's close is
// the end.
func TestSocket(t *testing.T) {
	for _, tls := range []bool{false, true} {
		s := newFar(t, tls)
		b := newBroker(t)
		if tls {
			b.dialer.opts.TLS = s.Client().Transport.(*http.Transport).TLSClientConfig
		}
		b.start(Config{URL: s.url, Headers: map[string]string{"X-Key": "k-1"}})
		b.attach()
		c := s.conn(t)
		header := receive(t, s.seen, "handshake")
		equal(t, "headers", header.Get("X-Key")+" "+header.Get("User-Agent")+" "+c.Subprotocol(), "k-1 broker/1 mcp")
		b.send(initialize, initialized)
		hear(t, c, initialize)
		hear(t, c, initialized)
		say(t, c, welcome)
		say(t, c, "junk")
		b.expect(welcome, "junk junk")
		_ = c.Close(websocket.StatusTryAgainLater, "too busy")
		b.expectEnd("its socket was closed: code 1013, too busy", false)
	}
}

// 07 row 56: a message over the limit costs its own call, the connection lives.
func TestSocketTooLarge(t *testing.T) {
	const limit = 1 << 10
	s := newFar(t, false)
	b := connect(t, Config{URL: s.url, Limit: limit})
	c := s.conn(t)
	say(t, c, `{"jsonrpc":"2.0","id":"brk-2","result":"`+strings.Repeat("x", 100<<10)+`"}`)
	say(t, c, `{"result":"`+strings.Repeat("x", 100<<10)+`","jsonrpc":"2.0","id":"brk-3"}`)
	say(t, c, response(4, "a"))
	b.expect(refusal(2, wire.TooLarge(limit)), refusal(3, wire.TooLarge(limit)), response(4, "a"))
}

// Stop says goodbye; a peer that does not answer is cut off.
func TestSocketStop(t *testing.T) {
	s := newFar(t, false)
	b := connect(t, Config{URL: s.url})
	c := s.conn(t)
	closed := make(chan error, 1)
	go func() {
		_, _, err := c.Read(context.Background())
		closed <- err
	}()
	b.driver.Stop(patience)
	if code := websocket.CloseStatus(receive(t, closed, "close")); code != websocket.StatusGoingAway {
		t.Errorf("closed with %d", code)
	}
	b.expectEnd("<nil>", false)

	b = connect(t, Config{URL: s.url})
	s.conn(t) // and never read
	b.driver.Stop(20 * time.Millisecond)
	b.expectEnd("<nil>", false)
}

// A peer that does not answer pings is given up.
func TestSocketPing(t *testing.T) {
	s := newFar(t, false)
	b := newBroker(t)
	b.pace.ping = 30 * time.Millisecond
	b.start(Config{URL: s.url})
	b.attach()
	s.conn(t) // its library answers pings while it is read only
	b.expectEnd("it did not answer a WebSocket ping within 30ms", false)
}

// A connection that breaks without a close frame ends at once.
func TestSocketBreaks(t *testing.T) {
	s := newFar(t, false)
	b := connect(t, Config{URL: s.url})
	_ = s.conn(t).CloseNow()
	contains(t, "end", fmt.Sprint(b.ended().Err), "its socket was closed: ")
}

// Spec 06: what was never handed to the WebSocket library goes with the end, once. What
// it was given may have been written.
func TestSocketUnsent(t *testing.T) {
	s := newFar(t, false)
	b := connect(t, Config{URL: s.url})
	c := s.conn(t)
	b.send(`"` + strings.Repeat("x", 64<<20) + `"`) // more than the system takes
	if _, _, err := c.Reader(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.send("1", "2", "3")
	_ = c.CloseNow()
	equal(t, "unsent", string(bytes.Join(b.ended().Unsent, []byte(" "))), "1 2 3")

	b = connect(t, Config{URL: s.url})
	c = s.conn(t)
	b.send("1")
	hear(t, c, "1")
	_ = c.CloseNow()
	equal(t, "unsent when all is written", string(bytes.Join(b.ended().Unsent, []byte(" "))), "")
}

// A handshake that is refused says how, and whether the credentials are to blame.
func TestSocketRefused(t *testing.T) {
	for status, denied := range map[int]bool{401: true, 403: true, 404: false, 200: false} {
		refuse := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", status) })
		s := &httptest.Server{Listener: listen(t), Config: &http.Server{Handler: refuse}}
		s.Start()
		b := newBroker(t)
		b.start(Config{URL: "ws" + strings.TrimPrefix(s.URL, "http")})
		want := fmt.Sprintf("the server answered HTTP %d %s: no", status, http.StatusText(status))
		if !denied {
			want += "; correct url, its path included, or transport"
		}
		b.expectEnd(want, denied)
		s.Close()
		b.start(Config{URL: "ws" + strings.TrimPrefix(s.URL, "http")})
		contains(t, "end", fmt.Sprint(b.ended().Err), "it cannot be reached: ")
	}
}

// A token the server refuses in the handshake is fetched again, once.
func TestSocketToken(t *testing.T) {
	a := newAuthority(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer token-2" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		_ = c.Write(r.Context(), websocket.MessageText, []byte(welcome))
		_, _, _ = c.Read(r.Context())
	}))
	defer s.Close()
	b := connect(t, Config{URL: "ws" + strings.TrimPrefix(s.URL, "http"), Auth: a.credentials()})
	b.expect(welcome)
	b.driver.Stop(patience)
	b.expectEnd("<nil>", false)
}
