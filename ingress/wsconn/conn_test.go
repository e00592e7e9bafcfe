//lint:file-ignore SA1019 an independent WebSocket implementation judges ours

package wsconn_test

import (
	"context"
	"errors"
	"fmt"
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
	"mcpbroker/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

const limit = 1 << 16

// pair returns both ends of one WebSocket.
func pair(t *testing.T, protocols ...string) (*wsconn.Conn, *websocket.Conn) {
	t.Helper()
	conns := make(chan *wsconn.Conn, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := wsconn.Accept(w, r, limit)
		if err != nil {
			t.Errorf("accept: %v", err)
		}
		if err := c.Open(); err != nil {
			t.Errorf("open: %v", err)
		}
		conns <- c
	}))
	t.Cleanup(server.Close)
	peer, _, err := websocket.Dial(t.Context(), server.URL, &websocket.DialOptions{Subprotocols: protocols})
	if err != nil {
		t.Fatal(err)
	}
	peer.SetReadLimit(-1)
	t.Cleanup(func() { _ = peer.CloseNow() })
	c := <-conns
	t.Cleanup(c.Terminate)
	return c, peer
}

// Closing is known before the peer has its close frame.
func TestClosing(t *testing.T) {
	c, peer := pair(t)
	go func() { _, _ = c.Read() }()
	for range 2 {
		if err := c.WriteBatch(func(write func([]byte) error) error { return write([]byte("\x88\x00")) }); err != nil {
			t.Fatal(err)
		}
		if _, _, err := peer.Read(t.Context()); err != nil || c.Closing() {
			t.Fatalf("while it is open: %v, closing %t", err, c.Closing())
		}
	}
	if err := peer.Close(websocket.StatusNormalClosure, ""); err != nil || !c.Closing() {
		t.Errorf("closed: %v, closing %t", err, c.Closing())
	}
}

// Messages of every size and both kinds arrive whole; an idle connection's small
// buffers do not show.
func TestRead(t *testing.T) {
	c, peer := pair(t)
	for _, size := range []int{0, 1, 125, 126, 2047, 2048, 2049, limit - 1, limit} {
		want := strings.Repeat("x", size)
		for _, kind := range []websocket.MessageType{websocket.MessageText, websocket.MessageBinary} {
			go func() { _ = peer.Write(context.Background(), kind, []byte(want)) }()
			got, err := c.Read()
			if err != nil || string(got) != want {
				t.Fatalf("%d bytes: %d bytes, %v", size, len(got), err)
			}
		}
	}
}

// A message kept from an earlier Read is not overwritten by a later one.
func TestReadOwnsItsBytes(t *testing.T) {
	c, peer := pair(t)
	go func() {
		_ = peer.Write(context.Background(), websocket.MessageText, []byte("first"))
		_ = peer.Write(context.Background(), websocket.MessageText, []byte("other"))
	}()
	first, err := c.Read()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(); err != nil || string(first) != "first" {
		t.Errorf("the first message has become %q, %v", first, err)
	}
}

// F-31: a message over the limit ends the connection with 1009.
func TestReadLimit(t *testing.T) {
	c, peer := pair(t)
	go func() { _ = peer.Write(context.Background(), websocket.MessageText, make([]byte, limit+1)) }()
	_, err := c.Read()
	if tooBig := new(wsconn.TooBigError); !errors.As(err, &tooBig) || tooBig.Limit != limit || wsconn.Fault(err) == nil {
		t.Errorf("read: %v", err)
	}
	if code := closeCode(t, peer); code != wire.CloseTooBig {
		t.Errorf("closed with %d", code)
	}
}

func closeCode(t *testing.T, peer *websocket.Conn) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, _, err := peer.Read(ctx)
	return int(websocket.CloseStatus(err))
}

// A batch arrives in order, whatever its sizes do to the buffer that collects it.
func TestWriteBatch(t *testing.T) {
	c, peer := pair(t)
	sizes := []int{0, 1, 100, 16 << 10, 16<<10 + 1, 10, 1 << 20, 16<<10 - 10, 20, 5}
	go func() {
		err := c.WriteBatch(func(write func([]byte) error) error {
			for i, size := range sizes {
				if err := write([]byte(fmt.Sprint(i, strings.Repeat("x", size)))); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("write: %v", err)
		}
	}()
	for i, size := range sizes {
		kind, got, err := peer.Read(t.Context())
		if err != nil || kind != websocket.MessageText || string(got) != fmt.Sprint(i, strings.Repeat("x", size)) {
			t.Fatalf("message %d: %v, %d bytes, %v", i, kind, len(got), err)
		}
	}
	failed := errors.New("no more")
	if err := c.WriteBatch(func(func([]byte) error) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("a batch that fails: %v", err)
	}
}

// Spec 01 1.3: the first subprotocol is echoed.
func TestSubprotocol(t *testing.T) {
	for _, c := range []struct {
		offered []string
		want    string
	}{{nil, ""}, {[]string{"mcp"}, "mcp"}, {[]string{"mcp", "other"}, "mcp"}} {
		_, peer := pair(t, c.offered...)
		if got := peer.Subprotocol(); got != c.want {
			t.Errorf("offered %q: chose %q, want %q", c.offered, got, c.want)
		}
	}
}

// A ping returns with the pong, or with the end of the connection.
func TestPing(t *testing.T) {
	c, peer := pair(t)
	go func() { _, _ = c.Read() }()
	reading := peer.CloseRead(context.Background())
	if err := c.Ping(); err != nil {
		t.Errorf("ping: %v", err)
	}
	c.Terminate()
	<-reading.Done()
	if err := c.Ping(); err == nil {
		t.Error("a ping on a connection that has ended was answered")
	}
}

// What is written before Open leaves behind the 101 answer, in order.
func TestOpen(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := wsconn.Accept(w, r, limit)
		if err != nil {
			t.Errorf("accept: %v", err)
			return
		}
		for _, message := range []string{"one", "two"} {
			err := c.WriteBatch(func(write func([]byte) error) error { return write([]byte(message)) })
			if err != nil {
				t.Errorf("write: %v", err)
			}
		}
		if err := c.Open(); err != nil {
			t.Errorf("open: %v", err)
		}
		c.Close(wire.CloseGoingAway, "")
	}))
	t.Cleanup(server.Close)
	peer, _, err := websocket.Dial(t.Context(), server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer peer.CloseNow()
	for _, want := range []string{"one", "two"} {
		if _, got, err := peer.Read(t.Context()); err != nil || string(got) != want {
			t.Fatalf("read %q, %v", got, err)
		}
	}
	if code := closeCode(t, peer); code != wire.CloseGoingAway {
		t.Errorf("closed with %d", code)
	}
}

// A handshake that is none of WebSocket's is answered by the library, in full.
func TestNoHandshake(t *testing.T) {
	w := httptest.NewRecorder()
	if _, err := wsconn.Accept(w, httptest.NewRequest(http.MethodGet, "/", nil), limit); err == nil || w.Code < 400 {
		t.Errorf("accepted: %d, %v", w.Code, err)
	}
}

// Spec 01 2.2: a close reason is cut to 123 bytes; Terminate says nothing.
func TestClose(t *testing.T) {
	c, peer := pair(t)
	go c.Close(wire.ClosePolicy, strings.Repeat("é", 80))
	_, _, err := peer.Read(t.Context())
	var closed websocket.CloseError
	if !errors.As(err, &closed) || int(closed.Code) != wire.ClosePolicy || closed.Reason != strings.Repeat("é", 60)+"..." {
		t.Errorf("closed %d %q, %v", closed.Code, closed.Reason, err)
	}
	c, peer = pair(t)
	c.Terminate()
	if code := closeCode(t, peer); code != -1 {
		t.Errorf("terminated with a close frame: %d", code)
	}
}

// Fault tells violations of the protocol from ordinary ends.
func TestFault(t *testing.T) {
	end := func(finish func(peer *websocket.Conn)) error {
		c, peer := pair(t)
		go finish(peer)
		_, err := c.Read()
		return err
	}
	ordinary := map[string]error{
		"close frame":    end(func(p *websocket.Conn) { _ = p.Close(1000, "") }),
		"policy":         end(func(p *websocket.Conn) { _ = p.Close(1008, "x") }),
		"cut":            end(func(p *websocket.Conn) { _ = p.CloseNow() }),
		"EOF":            io.EOF,
		"unexpected EOF": fmt.Errorf("read: %w", io.ErrUnexpectedEOF),
		"own closing":    net.ErrClosed,
		"own stop":       context.Canceled,
		"network":        &net.OpError{Op: "read", Err: errors.New("connection reset by peer")},
	}
	for name, err := range ordinary {
		if err == nil || wsconn.Fault(err) != nil {
			t.Errorf("%s: %v counts as a fault", name, err)
		}
	}
	if err := errors.New("received reserved opcode"); !errors.Is(wsconn.Fault(err), err) {
		t.Errorf("%v does not count as a fault", err)
	}
}

// Bytes that arrive with the handshake belong to the first message.
func TestEarlyBytes(t *testing.T) {
	conns := make(chan *wsconn.Conn, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := wsconn.Accept(w, r, limit)
		if err != nil {
			t.Errorf("accept: %v", err)
		}
		if err := c.Open(); err != nil {
			t.Errorf("open: %v", err)
		}
		conns <- c
	}))
	t.Cleanup(server.Close)
	tcp, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	message := strings.Repeat("early", 600) // more than the idle read buffer holds
	frame := append([]byte{0x81, 0x80 | 126, byte(len(message) >> 8), byte(len(message)), 0, 0, 0, 0}, message...)
	head := "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
	if _, err := tcp.Write(append([]byte(head), frame...)); err != nil {
		t.Fatal(err)
	}
	c := <-conns
	defer c.Terminate()
	got, err := c.Read()
	if err != nil || string(got) != message {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
}
