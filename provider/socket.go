package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coder/websocket"
)

const (
	dialTimeout  = 10 * time.Second
	writeTimeout = 10 * time.Second
	closeTimeout = 2 * time.Second
)

// socket is one open WebSocket. One goroutine reads; write and close may be
// called from any.
type socket struct {
	conn   *websocket.Conn
	limit  int64
	ctx    context.Context // ends with the socket
	cancel context.CancelFunc
}

// dial opens a WebSocket. The result is a *HandshakeError when the broker
// answered with another HTTP status than 101.
func dial(ctx context.Context, url string, opt *options) (*socket, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, resp, err := websocket.Dial(ctx, url, &websocket.DialOptions{
		HTTPClient:      handshakeClient(opt.client),
		HTTPHeader:      opt.handshakeHeader(),
		CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", printable(url), dialError(resp, err))
	}
	conn.SetReadLimit(opt.limit())
	life, end := context.WithCancel(context.Background())
	return &socket{conn: conn, limit: opt.limit(), ctx: life, cancel: end}, nil
}

func dialError(resp *http.Response, err error) error {
	if resp == nil || resp.StatusCode == http.StatusSwitchingProtocols {
		return err
	}
	// The library keeps the first 1024 bytes of the body.
	body, _ := io.ReadAll(resp.Body)
	return &HandshakeError{Status: resp.StatusCode, Body: strings.TrimSpace(string(body))}
}

// handshakeClient returns a client that follows no redirect. Its own transport
// keeps no connection after a refused handshake, so that nothing outlives it.
func handshakeClient(given *http.Client) *http.Client {
	var c http.Client
	if given != nil {
		c = *given
	} else {
		c.Transport = &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			TLSHandshakeTimeout: dialTimeout,
			DisableKeepAlives:   true,
		}
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

// printable returns rawURL for logs and errors, without password and query,
// which may carry credentials.
func printable(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "(malformed URL)"
	}
	u.RawQuery = ""
	return u.Redacted()
}

// write sends one text frame. After an error the socket is unusable. It is not
// dropped here, because a close frame with the broker's reason may be waiting to
// be read; only a write that timed out drops it.
func (s *socket) write(frame []byte) error {
	ctx, cancel := context.WithTimeout(s.ctx, writeTimeout)
	defer cancel()
	if err := s.conn.Write(ctx, websocket.MessageText, frame); err != nil {
		return fmt.Errorf("send frame: %w", err)
	}
	return nil
}

// read returns the next frame, or the end of the socket and its cause.
func (s *socket) read() ([]byte, *CloseError, error) {
	_, frame, err := s.conn.Read(s.ctx)
	if err == nil {
		return frame, nil, nil
	}
	var ce websocket.CloseError
	switch {
	case errors.As(err, &ce):
		return nil, &CloseError{Code: int(ce.Code), Reason: ce.Reason}, err
	case errors.Is(err, websocket.ErrMessageTooBig):
		reason := fmt.Sprintf("incoming frame exceeds the read limit of %d bytes", s.limit)
		return nil, &CloseError{Code: closeTooBig, Reason: reason}, err
	default:
		return nil, &CloseError{Code: closeAbnormal}, err
	}
}

// close performs the closing handshake with code 1000, bounded by closeTimeout.
func (s *socket) close() {
	// Ending the context drops the connection, whatever the handshake waits for.
	expire := time.AfterFunc(closeTimeout, s.cancel)
	defer expire.Stop()
	_ = s.conn.Close(websocket.StatusNormalClosure, "")
	s.cancel()
}

// drop releases the connection without a handshake.
func (s *socket) drop() {
	s.cancel()
	_ = s.conn.CloseNow()
}
