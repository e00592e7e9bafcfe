package wsconn

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/coder/websocket"

	"mcpbroker/actors/wire"
)

// DialConfig is a WebSocket to open.
type DialConfig struct {
	URL         string
	Host        string // of the request, if not the URL's
	Header      http.Header
	Subprotocol string // offered; the server need not take it
	// Transport says how to connect; the connection is not one of its pool.
	Transport *http.Transport
	Redirect  func(r *http.Request, via []*http.Request) error
}

// RefusedError is an HTTP answer that is no handshake. Its body is cut short.
type RefusedError struct{ Response *http.Response }

func (e *RefusedError) Error() string { return "the server answered HTTP " + e.Response.Status }

// Dial opens a WebSocket. ctx bounds the handshake only. A server that refuses it is a
// *RefusedError. Messages of any size are read: see ReadUpTo.
func Dial(ctx context.Context, cfg DialConfig) (*Conn, error) {
	var cork *corkConn
	transport := http1(cfg.Transport)
	connect := transport.DialContext
	if connect == nil {
		connect = new(net.Dialer).DialContext
	}
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := connect(ctx, network, address)
		if err != nil {
			return nil, err
		}
		cork = newCorkConn(conn, nil)
		return cork, nil
	}
	defer transport.CloseIdleConnections()
	ws, resp, err := websocket.Dial(ctx, cfg.URL, &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: transport, CheckRedirect: cfg.Redirect},
		HTTPHeader: cfg.Header, Host: cfg.Host, Subprotocols: []string{cfg.Subprotocol},
		CompressionMode: websocket.CompressionDisabled,
	})
	switch {
	case err == nil:
		ws.SetReadLimit(-1)
		return &Conn{ws: ws, cork: cork}, nil
	case resp != nil && resp.StatusCode != http.StatusSwitchingProtocols:
		return nil, &RefusedError{resp}
	}
	return nil, fmt.Errorf("open WebSocket: %w", err)
}

// http1 copies a transport and leaves HTTP/2 out, in which nothing can be upgraded.
func http1(t *http.Transport) *http.Transport {
	t = t.Clone()
	t.ForceAttemptHTTP2, t.HTTP2 = false, nil
	t.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	if t.TLSClientConfig != nil {
		t.TLSClientConfig.NextProtos = nil
	}
	return t
}

// tailBytes is how much of the end of an over-long message is kept.
const tailBytes = 1 << 10

// ReadUpTo returns the next message. Of one over limit it returns the beginning and the
// end with wire.ErrTooLong, and reading can go on. It belongs to one goroutine.
func (c *Conn) ReadUpTo(limit int) (data, tail []byte, err error) {
	_, reader, err := c.ws.Reader(context.Background())
	if err != nil {
		return nil, nil, err
	}
	scratch := buffers.Get().(*bytes.Buffer)
	defer recycle(scratch)
	if _, err := scratch.ReadFrom(io.LimitReader(reader, int64(limit)+1)); err != nil {
		return nil, nil, err
	}
	if scratch.Len() <= limit {
		return bytes.Clone(scratch.Bytes()), nil, nil
	}
	end := &tailWriter{kept: bytes.Clone(scratch.Bytes()[max(0, scratch.Len()-tailBytes):])}
	if _, err := io.Copy(end, reader); err != nil {
		return nil, nil, err
	}
	return bytes.Clone(scratch.Bytes()[:min(limit, tailBytes)]), end.kept, wire.ErrTooLong
}

// tailWriter keeps the last tailBytes written.
type tailWriter struct{ kept []byte }

func (t *tailWriter) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p[max(0, len(p)-tailBytes):]...)
	t.kept = t.kept[max(0, len(t.kept)-tailBytes):]
	return len(p), nil
}

// Reason words the end of a connection.
func Reason(err error) string {
	var closed websocket.CloseError
	switch {
	case errors.As(err, &closed) && closed.Reason == "":
		return fmt.Sprintf("code %d", closed.Code)
	case errors.As(err, &closed):
		return fmt.Sprintf("code %d, %s", closed.Code, closed.Reason)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection broke"
	}
	return err.Error()
}
