package provider

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"mcpbroker/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// patience bounds every wait of a test that is expected to succeed.
const patience = 30 * time.Second

// broker is a raw WebSocket endpoint: it accepts every upgrade and hands the
// connections to the test.
type broker struct {
	t     *testing.T
	srv   *httptest.Server
	peers chan *peer
}

// peer is the broker's end of one provider socket.
type peer struct {
	t    *testing.T
	req  *http.Request
	conn *websocket.Conn
}

func newBroker(t *testing.T) *broker {
	t.Helper()
	b := &broker{t: t, peers: make(chan *peer, 16)}
	b.srv = httptest.NewServer(b)
	t.Cleanup(b.srv.Close)
	return b
}

func (b *broker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		b.t.Errorf("accept: %v", err)
		return
	}
	b.peers <- &peer{t: b.t, req: r, conn: conn}
}

func (b *broker) url(path string) string {
	return "ws" + strings.TrimPrefix(b.srv.URL, "http") + path
}

func (b *broker) accept() *peer {
	b.t.Helper()
	p := receive(b.t, b.peers)
	b.t.Cleanup(func() { _ = p.conn.CloseNow() })
	return p
}

func (p *peer) expect(want string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	kind, got, err := p.conn.Read(ctx)
	if err != nil {
		p.t.Fatalf("peer: want frame %s, got error %v", want, err)
	}
	if kind != websocket.MessageText || string(got) != want {
		p.t.Fatalf("peer: want text frame\n%s\ngot %v\n%s", want, kind, got)
	}
}

func (p *peer) expectClose(want websocket.StatusCode) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	_, got, err := p.conn.Read(ctx)
	if err == nil {
		p.t.Fatalf("peer: want close %d, got frame %s", want, got)
	}
	if code := websocket.CloseStatus(err); code != want {
		p.t.Fatalf("peer: want close %d, got %v", want, err)
	}
}

func (p *peer) send(frame string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	if err := p.conn.Write(ctx, websocket.MessageText, []byte(frame)); err != nil {
		p.t.Fatalf("peer: send: %v", err)
	}
}

// close sends a close frame and waits for the provider's answer.
func (p *peer) close(code websocket.StatusCode, reason string) {
	_ = p.conn.Close(code, reason)
}

// drop ends the TCP connection without a close frame, as a killed broker does.
func (p *peer) drop() { _ = p.conn.CloseNow() }

// recorder notes the callbacks of one transport.
type recorder struct {
	t      *testing.T
	events chan string
	errs   chan error
}

func newRecorder(t *testing.T) *recorder {
	return &recorder{t: t, events: make(chan string, 1024), errs: make(chan error, 1024)}
}

func (r *recorder) callbacks() Events {
	return Events{
		Message: func(frame []byte) { r.events <- "message " + string(frame) },
		Open:    func() { r.events <- "open" },
		Error: func(err error) {
			r.errs <- err
			r.events <- "error " + err.Error()
		},
		Close: func() { r.events <- "close" },
	}
}

func (r *recorder) expect(want ...string) {
	r.t.Helper()
	for _, w := range want {
		if got := receive(r.t, r.events); got != w {
			r.t.Fatalf("callback: want %q, got %q", w, got)
		}
	}
}

// nothing checks that no callback is waiting to be seen.
func (r *recorder) nothing() {
	r.t.Helper()
	select {
	case got := <-r.events:
		r.t.Fatalf("callback: want none, got %q", got)
	default:
	}
}

func receive[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatal("timed out")
		panic("unreachable")
	}
}

// connect connects tr, and closes it after the peers accepted later are gone.
func connect(t *testing.T, tr Transport) {
	t.Helper()
	t.Cleanup(func() {
		_ = tr.Close()
		tr.(interface{ wait() }).wait()
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := tr.Connect(ctx); err != nil {
		t.Fatalf("connect: %v", err)
	}
}

func send(t *testing.T, tr Transport, frame string) {
	t.Helper()
	if err := tr.Send([]byte(frame)); err != nil {
		t.Fatalf("send %s: %v", frame, err)
	}
}

// note is a distinct valid JSON-RPC notification.
func note(i int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","method":"note/%d"}`, i) }

// logbook collects log lines as "LEVEL message key=value ...".
type logbook struct {
	mu    sync.Mutex
	lines []string
	seen  chan string
}

func newLogbook() *logbook { return &logbook{seen: make(chan string, 1024)} }

func (l *logbook) logger() *slog.Logger { return slog.New(l) }

func (l *logbook) Enabled(context.Context, slog.Level) bool { return true }
func (l *logbook) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logbook) WithGroup(string) slog.Handler            { return l }

func (l *logbook) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += " " + a.String()
		return true
	})
	l.mu.Lock()
	l.lines = append(l.lines, line)
	l.mu.Unlock()
	l.seen <- line
	return nil
}

func (l *logbook) containing(part string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.Contains(line, part) {
			found = append(found, line)
		}
	}
	return found
}

// await waits for a line that contains part.
func (l *logbook) await(t *testing.T, part string) string {
	t.Helper()
	for {
		if line := receive(t, l.seen); strings.Contains(line, part) {
			return line
		}
	}
}
