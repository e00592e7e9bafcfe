// Package wsconn is the broker's one use of a WebSocket library: text messages
// in and out, pings, close codes. Writes of a batch leave in as few system calls
// as possible; no extension is negotiated.
package wsconn

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"mcpbroker/actors/wire"
)

// WriteTimeout bounds one batch of writes to a peer that does not read.
const WriteTimeout = 10 * time.Second

// The buffers of one connection while it is idle. Large messages pass by them.
const (
	readBuffer  = 2048
	writeBuffer = 128
)

// Conn is one accepted WebSocket.
type Conn struct {
	ws     *websocket.Conn
	cork   *corkConn
	limit  int
	tooBig atomic.Bool // a message passed the limit, and the peer is being told
}

// Accept takes a valid handshake; Open answers it. limit is the largest message in bytes; a
// larger one closes the connection with 1009. The first offered subprotocol is
// echoed. On failure the answer has been written.
func Accept(w http.ResponseWriter, r *http.Request, limit int) (*Conn, error) {
	h := &hijacker{ResponseWriter: w}
	ws, err := websocket.Accept(h, r, &websocket.AcceptOptions{
		Subprotocols:       offered(r),
		InsecureSkipVerify: true, // upgrades are not origin-checked (spec 01 1.3)
		CompressionMode:    websocket.CompressionDisabled,
	})
	if err != nil {
		return nil, fmt.Errorf("accept WebSocket: %w", err)
	}
	ws.SetReadLimit(int64(limit))
	return &Conn{ws: ws, cork: h.cork, limit: limit}, nil
}

// Open sends the 101 answer, and behind it whatever has been written meanwhile.
func (c *Conn) Open() error {
	if err := c.cork.release(); err != nil {
		return fmt.Errorf("answer the handshake: %w", err)
	}
	return nil
}

// offered returns the first subprotocol the client names.
func offered(r *http.Request) []string {
	first, _, _ := strings.Cut(r.Header.Get("Sec-WebSocket-Protocol"), ",")
	if first = strings.TrimSpace(first); first != "" {
		return []string{first}
	}
	return nil
}

// TooBigError tells of a message that passed the read limit.
type TooBigError struct{ Limit int }

// Error implements error.
func (e *TooBigError) Error() string {
	return fmt.Sprintf("a message is larger than the limit of %d bytes (maxMessageBytes)", e.Limit)
}

// Read returns the next message, text or binary. It belongs to one goroutine.
// The error is a *TooBigError for a message larger than the limit.
func (c *Conn) Read() ([]byte, error) {
	data, err := c.read()
	if errors.Is(err, websocket.ErrMessageTooBig) {
		c.tooBig.Store(true)
		err = &TooBigError{c.limit}
	}
	return data, err
}

func (c *Conn) read() ([]byte, error) {
	_, reader, err := c.ws.Reader(context.Background())
	if err != nil {
		return nil, err
	}
	scratch := buffers.Get().(*bytes.Buffer)
	defer recycle(scratch)
	if _, err := scratch.ReadFrom(reader); err != nil {
		return nil, err
	}
	return bytes.Clone(scratch.Bytes()), nil
}

// WriteBatch writes messages in order. It belongs to one goroutine at a time.
func (c *Conn) WriteBatch(frames func(write func(frame []byte) error) error) error {
	c.cork.start()
	return errors.Join(frames(c.write), c.cork.flush())
}

func (c *Conn) write(frame []byte) error {
	return c.ws.Write(context.Background(), websocket.MessageText, frame)
}

// Ping sends a ping and waits for its pong, which a concurrent Read receives, or
// for the end of the connection.
func (c *Conn) Ping() error { return c.ws.Ping(context.Background()) }

// Close sends a close frame and waits up to 5 s for the peer's.
func (c *Conn) Close(code int, reason string) {
	_ = c.ws.Close(websocket.StatusCode(code), wire.CloseReason(reason))
	c.Terminate()
}

// Closing tells that a close frame was sent, mostly in answer to the peer's. Read says so
// as well, but its caller may hear of it after the peer, who is free to connect again.
func (c *Conn) Closing() bool { return c.cork.closing.Load() }

// Terminate cuts the connection: the peer sees 1006. A Close that is waiting for
// the peer's close frame ends too; the library's own CloseNow would wait for it.
func (c *Conn) Terminate() {
	if c.tooBig.Load() {
		c.linger()
	}
	_ = c.cork.Conn.Close()
	_ = c.ws.CloseNow()
}

// lingerTime bounds how long a peer may go on sending what nobody reads.
const lingerTime = time.Second

// linger reads on until the peer has ended: a socket that is closed with bytes
// unread is reset, which can cost the peer the close frame that tells it why.
func (c *Conn) linger() {
	if half, ok := c.cork.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_ = c.cork.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.Copy(io.Discard, c.cork.Conn)
}

// Ending says in words how a connection ended whose Read returned err.
func Ending(err error) string {
	var closed websocket.CloseError
	switch {
	case errors.As(err, &closed) && closed.Reason != "":
		return fmt.Sprintf("it closed the connection with %d %q", closed.Code, closed.Reason)
	case errors.As(err, &closed):
		return fmt.Sprintf("it closed the connection with %d", closed.Code)
	case errors.Is(err, net.ErrClosed), errors.Is(err, context.Canceled):
		return "the broker closed the connection"
	}
	return "the connection was lost"
}

// Fault returns err if it names a violation of the protocol, nil if it is an
// ordinary end: a close frame, a lost connection, our own closing.
func Fault(err error) error {
	var closed websocket.CloseError
	var network net.Error
	switch {
	case errors.As(err, &closed), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, net.ErrClosed), errors.Is(err, context.Canceled), errors.As(err, &network):
		return nil
	}
	return err
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// recycle keeps buffers of ordinary size only.
func recycle(b *bytes.Buffer) {
	const keep = 1 << 20
	if b.Cap() <= keep {
		b.Reset()
		buffers.Put(b)
	}
}

// hijacker hands the library our own connection and small buffers. It holds the
// 101 answer back: the peer counts as connected from then on, and by then it has
// to be what it connected for.
type hijacker struct {
	http.ResponseWriter
	cork *corkConn
}

// WriteHeader implements http.ResponseWriter.
func (h *hijacker) WriteHeader(status int) {
	if status != http.StatusSwitchingProtocols {
		h.ResponseWriter.WriteHeader(status)
	}
}

// Hijack implements http.Hijacker.
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	var answer bytes.Buffer
	answer.WriteString("HTTP/1.1 101 Switching Protocols\r\n")
	_ = h.Header().Write(&answer)
	answer.WriteString("\r\n")
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("take over the connection: %w", err)
	}
	early, _ := rw.Reader.Peek(rw.Reader.Buffered())
	early = bytes.Clone(early)
	h.cork = newCorkConn(conn, answer.Bytes())
	reader := bufio.NewReaderSize(io.MultiReader(bytes.NewReader(early), conn), max(readBuffer, len(early)))
	if _, err := reader.Peek(len(early)); err != nil {
		return nil, nil, fmt.Errorf("take over the connection: %w", err)
	}
	return h.cork, bufio.NewReadWriter(reader, bufio.NewWriterSize(h.cork, writeBuffer)), nil
}
