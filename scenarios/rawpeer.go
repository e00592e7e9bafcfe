package scenarios

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/coder/websocket"
)

// rawLink is a WebSocket that sends what the script says and nothing else.
type rawLink struct {
	url    string
	client *http.Client

	mu     sync.Mutex
	conn   *websocket.Conn
	cancel context.CancelFunc
	done   chan struct{}
}

func (l *rawLink) open(ctx context.Context, p *peer) {
	ctx, cancel := context.WithCancel(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	done := make(chan struct{})
	l.cancel, l.done = cancel, done
	go func() {
		defer close(done)
		defer cancel()
		l.serve(ctx, p)
	}()
}

func (l *rawLink) serve(ctx context.Context, p *peer) {
	conn, _, err := websocket.Dial(ctx, l.url, &websocket.DialOptions{HTTPClient: l.client, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		p.emit(event{kind: eventFailed, text: err.Error()})
		return
	}
	conn.SetReadLimit(-1)
	defer func() { _ = conn.CloseNow() }()
	l.mu.Lock()
	l.conn = conn
	l.mu.Unlock()
	p.emit(event{kind: eventOpen})
	for {
		_, text, err := conn.Read(ctx)
		if err != nil {
			p.emit(endOf(err))
			return
		}
		p.show(p.id + ": received " + excerpt(string(text)))
		p.frames.add(frameOf(text))
	}
}

func endOf(err error) event {
	var closed websocket.CloseError
	if errors.As(err, &closed) {
		return event{eventClosed, int(closed.Code), closed.Reason}
	}
	return event{kind: eventClosed, code: 1006}
}

func (l *rawLink) send(ctx context.Context, frame []byte) error {
	l.mu.Lock()
	conn := l.conn
	l.mu.Unlock()
	if conn == nil {
		return errors.New("the provider has never connected")
	}
	return conn.Write(ctx, websocket.MessageText, frame)
}

func (l *rawLink) answersPings() bool { return false }

func (l *rawLink) close(code int, reason string) {
	l.mu.Lock()
	conn := l.conn
	l.mu.Unlock()
	if conn != nil {
		_ = conn.Close(websocket.StatusCode(code), reason)
	}
	l.cut()
}

func (l *rawLink) cut() {
	l.mu.Lock()
	cancel, done := l.cancel, l.done
	l.mu.Unlock()
	if cancel != nil {
		cancel()
		<-done
	}
}

// excerpt is the beginning of a long text.
func excerpt(text string) string {
	const most = 300
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "..."
	}
	return text
}
