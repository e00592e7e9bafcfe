//lint:file-ignore SA1019 an independent WebSocket implementation judges ours

package brokertest

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"nhooyr.io/websocket"
)

// Socket is a raw WebSocket peer, a provider or a client. Its reader runs from
// the start, so that pings are answered.
type Socket struct {
	t        testing.TB
	conn     *websocket.Conn
	messages chan []byte
	ended    chan struct{}
	err      error // why the reader ended; valid once ended is closed
}

// patience is how long a peer waits for what a test expects.
const patience = 30 * time.Second

// Dial connects to a WebSocket URL of the broker.
func Dial(t testing.TB, url string, header http.Header) *Socket {
	t.Helper()
	return DialVia(t, url, header, nil)
}

// DialVia is Dial over another network.
func DialVia(t testing.TB, url string, header http.Header, dial DialFunc) *Socket {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	o := &websocket.DialOptions{HTTPHeader: header, CompressionMode: websocket.CompressionDisabled}
	if dial != nil {
		o.HTTPClient = &http.Client{Transport: &http.Transport{DialContext: dial}}
	}
	conn, _, err := websocket.Dial(ctx, url, o)
	if err != nil {
		t.Fatalf("dial %s: %v", url, err)
	}
	conn.SetReadLimit(-1)
	s := &Socket{t: t, conn: conn, messages: make(chan []byte, 1024), ended: make(chan struct{})}
	go s.read()
	t.Cleanup(func() { s.Drop(); <-s.ended })
	return s
}

func (s *Socket) read() {
	defer close(s.ended)
	for {
		_, message, err := s.conn.Read(context.Background())
		if err != nil {
			s.err = err
			return
		}
		s.messages <- message
	}
}

// Send writes one text message.
func (s *Socket) Send(message string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.conn.Write(ctx, websocket.MessageText, []byte(message)); err != nil {
		s.t.Fatalf("send %.200s: %v", message, err)
	}
}

// TrySend writes one message, text or binary, to a peer that may be closing.
func (s *Socket) TrySend(binary bool, message []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	kind := websocket.MessageText
	if binary {
		kind = websocket.MessageBinary
	}
	return s.conn.Write(ctx, kind, message)
}

// Receive returns the next message.
func (s *Socket) Receive() string {
	s.t.Helper()
	select {
	case message := <-s.messages:
		return string(message)
	default:
	}
	select {
	case message := <-s.messages:
		return string(message)
	case <-s.ended:
		select {
		case message := <-s.messages:
			return string(message)
		default:
		}
		s.t.Fatalf("receive: the connection ended: %v", s.err)
	case <-time.After(patience):
		s.t.Fatalf("receive: nothing came within %s", patience)
	}
	return ""
}

// Pending returns a message that has already arrived, "" if none has.
func (s *Socket) Pending() string {
	select {
	case message := <-s.messages:
		return string(message)
	default:
		return ""
	}
}

// Closed waits for the end of the connection and returns the close code and
// reason the peer sent; the code is 1006 when it sent none.
func (s *Socket) Closed() (code int, reason string) {
	s.t.Helper()
	select {
	case <-s.ended:
	case <-time.After(patience):
		s.t.Fatalf("the connection is still open after %s", patience)
	}
	var closed websocket.CloseError
	if errors.As(s.err, &closed) {
		return int(closed.Code), closed.Reason
	}
	return 1006, ""
}

// Close says goodbye with a close frame.
func (s *Socket) Close(code int, reason string) {
	_ = s.conn.Close(websocket.StatusCode(code), reason)
}

// Drop cuts the connection without a close frame.
func (s *Socket) Drop() { _ = s.conn.CloseNow() }
