// Package bridge connects the standard input and output of a host to a slot of a
// broker that is already running, over Streamable HTTP. To the host it is an MCP
// server on stdio; to the broker it is one client with one session.
//
// The bridge outlives its broker: a session the broker does not know any more is
// followed by another one, opened with the host's own initialize, and a request
// is sent again only if it was refused for its session (HTTP 404).
package bridge

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"mcpbroker/actors/wire"
)

// Bounds of a bridge.
const (
	MaxMessageBytes = 64 << 20         // of one line, and of one answer; the broker has its own
	MaxCalls        = 1024             // requests in flight
	DefaultGrace    = 5 * time.Second  // for answers owed to a host that has ended
	DefaultWait     = 30 * time.Second // of initialize for a broker that is away
	NoteTimeout     = 10 * time.Second
	readAhead       = 16              // lines read and not yet looked at
	deleteTimeout   = time.Second     // for the end of the session
	goodbyeTimeout  = 2 * time.Second // for a host that does not read: for what is on its way, and for the last message
)

// Config of a bridge.
type Config struct {
	URL    string       // of the slot's endpoint, see Endpoint
	Client *http.Client // nil is one of the bridge's own
	Log    *slog.Logger // nil is silent; one line per change of state

	// Grace is how long answers owed to a host that has ended are waited for; 0 means
	// DefaultGrace.
	Grace time.Duration
	// Wait is how long initialize waits for a broker that cannot be reached: hosts
	// give a server up whose handshake fails. 0 means DefaultWait, less is not at all.
	Wait time.Duration
	// Retry is the delay before attempt n, from 0, to open the event stream
	// again. Nil means 250 ms doubling to 10 s, each times a random factor from 0.5
	// to 1.0.
	Retry func(n int) time.Duration
}

// Endpoint is the Streamable HTTP endpoint of a slot of the broker at base.
func Endpoint(base, slot string) (string, error) {
	u, err := url.Parse(base)
	switch {
	case err != nil:
		return "", fmt.Errorf("%q is not a URL: %w", base, errors.Unwrap(err))
	case u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("%q must begin with http:// or https://", base)
	case u.Hostname() == "":
		return "", fmt.Errorf("%q names no host", base)
	case u.User != nil:
		return "", errors.New("a URL with credentials is not taken: they would show up in messages")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", fmt.Errorf("%q must not have a query or a fragment", base)
	case slot == "":
		return "", errors.New("the slot's name is empty")
	}
	return strings.TrimRight(u.String(), "/") + "/" + url.PathEscape(slot) + "/mcp", nil
}

// Run bridges until in ends, out fails or ctx is done. Answers owed are waited for
// up to the grace, then the session is ended. It returns the error of in or out. A Read
// or Write that blocks at the end is left behind.
func Run(ctx context.Context, cfg Config, in io.Reader, out io.Writer) error {
	b := newBridge(cfg)
	defer b.http.CloseIdleConnections()
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(running, func() { time.AfterFunc(goodbyeTimeout, func() { close(b.abandoned) }) })

	written, faults := make(chan error, 1), make(chan error, 1)
	go func() { written <- b.write(out, cancel) }()
	lines := make(chan input, readAhead)
	go func() {
		defer close(lines)
		defer time.AfterFunc(b.cfg.Grace, cancel) // also where serve is still busy
		b.read(running, in, lines, faults)
		close(b.hostEnded)
	}()
	b.serve(running, lines)
	b.answers.Wait()
	cancel()
	b.streams.Wait()
	b.end(context.WithoutCancel(ctx))

	close(b.out)
	late := time.NewTimer(goodbyeTimeout) // for the last message, which the writer has in hand
	defer late.Stop()
	select {
	case err := <-written:
		select {
		case fault := <-faults:
			err = errors.Join(fault, err)
		default:
		}
		return err
	case <-late.C:
		return errors.New("write to the host: it does not read its last messages")
	}
}

// bridge is one run.
type bridge struct {
	cfg  Config
	http *http.Client

	out       chan []byte   // to the one goroutine that writes to the host
	broken    chan struct{} // closed when it cannot
	abandoned chan struct{} // closed when it has had its time
	hostEnded chan struct{} // closed when the host sends nothing more

	answers sync.WaitGroup // requests in flight
	streams sync.WaitGroup // the event stream, and what a new session needs
	calls   calls
	setup   setup

	renewing chan struct{} // holds one token: who has it may open a session

	mu          sync.Mutex
	session     session
	initialize  []byte // the host's last, to open a session with
	initialized bool   // the host said so
	listening   bool
	trouble     string // what was last logged about the connection
	wake        chan struct{}
}

func newBridge(cfg Config) *bridge {
	if cfg.Client == nil {
		cfg.Client = newClient()
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Grace == 0 {
		cfg.Grace = DefaultGrace
	}
	if cfg.Wait == 0 {
		cfg.Wait = DefaultWait
	}
	if cfg.Retry == nil {
		cfg.Retry = retryDelay
	}
	b := &bridge{
		cfg: cfg, http: lasting(cfg.Client),
		out: make(chan []byte), broken: make(chan struct{}), abandoned: make(chan struct{}), hostEnded: make(chan struct{}),
		renewing: make(chan struct{}, 1), wake: make(chan struct{}, 1),
	}
	b.renewing <- struct{}{}
	return b
}

// input is a line of the host, or why there is none.
type input struct {
	line []byte
	err  error // wire.ErrTooLong
}

// read is the one goroutine that reads the host.
func (b *bridge) read(ctx context.Context, in io.Reader, lines chan<- input, faults chan<- error) {
	for r := wire.NewLineReader(in, MaxMessageBytes); ; {
		line, err := r.Next()
		if err != nil && !errors.Is(err, wire.ErrTooLong) {
			if !errors.Is(err, io.EOF) {
				faults <- fmt.Errorf("read from the host: %w", err)
			}
			return
		}
		select {
		case lines <- input{line, err}:
		case <-ctx.Done():
			return
		}
	}
}

// write is the one goroutine that writes to the host. Frames become one line
// each (F-29).
func (b *bridge) write(out io.Writer, stop func()) error {
	w := bufio.NewWriterSize(out, 64<<10)
	for frame := range b.out {
		_, _ = w.Write(wire.OneLine(frame)) // an error stays until Flush
		_ = w.WriteByte('\n')
		if err := w.Flush(); err != nil {
			close(b.broken)
			stop()
			return fmt.Errorf("write to the host: %w", err)
		}
	}
	return nil
}

// send hands a frame to the writer. A host that does not read holds up whoever
// sends, and so the broker, which has bounds for that.
func (b *bridge) send(frame []byte) {
	select {
	case b.out <- frame:
	case <-b.broken:
	case <-b.abandoned:
	}
}

func (b *bridge) refuse(err *wire.Error, id []byte) { b.send(err.Response(id)) }
