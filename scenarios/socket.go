package scenarios

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/coder/websocket"
)

// socket is a WebSocket that sends what the script says and nothing else.
type socket struct {
	url    string
	client *http.Client

	mu     sync.Mutex
	conn   *websocket.Conn
	cancel context.CancelFunc
	done   chan struct{}
}

// open begins to connect. What comes of it is told, one after the other: that it
// opened or failed, each message, the end.
func (s *socket) open(ctx context.Context, happened func(event), message func(text []byte)) {
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	done := make(chan struct{})
	s.cancel, s.done = cancel, done
	go func() {
		defer close(done)
		defer cancel()
		s.serve(ctx, happened, message)
	}()
}

func (s *socket) serve(ctx context.Context, happened func(event), message func(text []byte)) {
	conn, _, err := websocket.Dial(ctx, s.url, &websocket.DialOptions{HTTPClient: s.client, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		happened(event{kind: eventFailed, text: err.Error()})
		return
	}
	conn.SetReadLimit(-1)
	defer func() { _ = conn.CloseNow() }()
	s.mu.Lock()
	s.conn = conn
	s.mu.Unlock()
	happened(event{kind: eventOpen})
	for {
		_, text, err := conn.Read(ctx)
		if err != nil {
			happened(endOf(err))
			return
		}
		message(text)
	}
}

func endOf(err error) event {
	var closed websocket.CloseError
	if errors.As(err, &closed) {
		return event{eventClosed, int(closed.Code), closed.Reason}
	}
	return event{kind: eventClosed, code: 1006}
}

func (s *socket) current() *websocket.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn
}

func (s *socket) write(ctx context.Context, text []byte) error {
	conn := s.current()
	if conn == nil {
		return errors.New("the connection was never open")
	}
	return conn.Write(ctx, websocket.MessageText, text)
}

func (s *socket) close(code int, reason string) {
	if conn := s.current(); conn != nil {
		_ = conn.Close(websocket.StatusCode(code), reason)
	}
	s.cut()
}

func (s *socket) cut() {
	s.mu.Lock()
	cancel, done := s.cancel, s.done
	s.mu.Unlock()
	if cancel != nil {
		cancel()
		<-done
	}
}
