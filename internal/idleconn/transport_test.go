package idleconn

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbroker/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// deaf is a connection whose reader hears of the end only when we close it, as on a
// machine that has not run the reader yet.
type deaf struct {
	*net.TCPConn
	once   sync.Once
	closed chan struct{}
	heard  chan<- struct{} // gets what the reader would hear
}

func (d *deaf) Read(b []byte) (int, error) {
	n, err := d.TCPConn.Read(b)
	if err != nil {
		d.heard <- struct{}{}
		<-d.closed
	}
	return n, err
}

func (d *deaf) Close() error {
	d.once.Do(func() { close(d.closed) })
	return d.TCPConn.Close()
}

// newTransport is a transport over deaf connections; ended tells when the system knows
// that one has ended.
func newTransport(t *testing.T) (via Transport, ended <-chan struct{}) {
	heard := make(chan struct{}, 16)
	plain := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &deaf{TCPConn: conn.(*net.TCPConn), closed: make(chan struct{}), heard: heard}, nil
	}}
	t.Cleanup(plain.CloseIdleConnections)
	return Transport{plain}, heard
}

func post(via http.RoundTripper, url, body string) (string, error) {
	resp, err := (&http.Client{Transport: via, Timeout: 20 * time.Second}).Post(url, "text/plain", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return string(answer), err
}

// 07 row 1: a POST finds that the connection kept for it has been closed, and is sent
// over a new one, once.
func TestClosedWhileIdle(t *testing.T) {
	took := make(chan string, 16)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		took <- string(body)
		_, _ = w.Write(body)
	}))
	t.Cleanup(s.Close)
	via, ended := newTransport(t)
	for _, body := range []string{"one", "two", "three"} {
		if got, err := post(via, s.URL, body); got != body || err != nil {
			t.Fatalf("%s was answered %q, %v", body, got, err)
		}
		if got := <-took; got != body {
			t.Errorf("the server was sent %q, not %s", got, body)
		}
		s.CloseClientConnections()
		<-ended
	}
	if len(took) != 0 {
		t.Errorf("the server was sent %q as well", <-took)
	}
}
