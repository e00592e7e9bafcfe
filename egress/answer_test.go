package egress_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbroker/egress"
)

// oneConn is a listener whose only connection is the server's end of a pipe.
type oneConn struct {
	conn chan net.Conn
	done chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}
func (l *oneConn) Close() error   { close(l.done); return nil }
func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// A body that does not arrive is given up after a minute, and one that arrives
// in pieces within it is whole. A held answer is not cut by the body's deadline.
func TestReadBodyDeadline(t *testing.T) {
	for _, c := range []struct {
		name  string
		pause time.Duration // before the second half of the body
		want  string
	}{
		{"slow", 50 * time.Second, "HTTP/1.1 200 OK"},
		{"stalled", 61 * time.Second, "HTTP/1.1 408 Request Timeout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := net.Pipe()
				l := &oneConn{conn: make(chan net.Conn, 1), done: make(chan struct{})}
				l.conn <- server
				s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if body, ok := egress.ReadBody(w, r, 1<<20); ok {
						select {
						case <-time.After(10 * time.Minute):
							egress.WriteJSON(w, http.StatusOK, body)
						case <-r.Context().Done():
							t.Error("the held request was cut")
						}
					}
				})}
				go func() { _ = s.Serve(l) }()
				defer func() { _ = s.Close(); _ = client.Close() }()

				sent := make(chan struct{})
				go func() {
					defer close(sent)
					fmt.Fprint(client, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n[1")
					<-time.After(c.pause)
					fmt.Fprint(client, ",]")
				}()
				status, err := bufio.NewReader(client).ReadString('\n')
				if err != nil || strings.TrimSpace(status) != c.want {
					t.Errorf("answer %q, %v, want %q", status, err, c.want)
				}
				_ = client.SetWriteDeadline(time.Now()) // nobody reads the rest of a body that was given up
				<-sent
			})
		})
	}
}
