package brokertest

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Client is a raw Streamable HTTP client of one endpoint.
type Client struct {
	t       testing.TB
	URL     string
	Session string      // Mcp-Session-Id sent with every request, unless empty
	Header  http.Header // sent with every request
	http    *http.Client
}

// Close lets the client's idle connections go before the test ends.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Answer is an HTTP response, read to its end.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// NewClient returns a client without a session.
func NewClient(t testing.TB, url string) *Client { return NewClientVia(t, url, nil) }

// DialFunc replaces the network; nil is TCP.
type DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// NewClientVia is NewClient over another network.
func NewClientVia(t testing.TB, url string, dial DialFunc) *Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 64, DialContext: dial}
	t.Cleanup(transport.CloseIdleConnections)
	return &Client{t: t, URL: url, Header: http.Header{}, http: &http.Client{Transport: transport}}
}

// InitializeFrame opens a session.
const InitializeFrame = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`

// Initialize opens a session and keeps its id. The answer is returned as it is:
// a session exists even if no provider is connected.
func (c *Client) Initialize() Answer {
	c.t.Helper()
	a := c.Post(InitializeFrame)
	if c.Session = a.Header.Get("Mcp-Session-Id"); c.Session == "" {
		c.t.Fatalf("initialize opened no session: %d %s", a.Status, a.Body)
	}
	return a
}

// Post sends one message and waits for the answer.
func (c *Client) Post(body string) Answer { c.t.Helper(); return c.Do(http.MethodPost, body) }

// Do sends a request of any method.
func (c *Client) Do(method, body string) Answer {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*patience)
	defer cancel()
	a, err := c.Try(ctx, method, body)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, c.URL, err)
	}
	return a
}

// Try is Do for requests that may fail, and for other goroutines than the test's.
func (c *Client) Try(ctx context.Context, method, body string) (Answer, error) {
	resp, err := c.send(ctx, method, body)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return Answer{resp.StatusCode, resp.Header, string(text)}, err
}

func (c *Client) send(ctx context.Context, method, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.URL, bytes.NewReader([]byte(body)))
	if err != nil {
		return nil, err
	}
	r.Header = c.Header.Clone()
	if c.Session != "" {
		r.Header.Set("Mcp-Session-Id", c.Session)
	}
	return c.http.Do(r)
}

// Start sends a request from a goroutine; its answer arrives on the channel, a
// zero Answer if it failed.
func (c *Client) Start(body string) <-chan Answer {
	answers := make(chan Answer, 1)
	go func() {
		a, _ := c.Try(context.Background(), http.MethodPost, body)
		answers <- a
	}()
	return answers
}

// Stream is an open event stream.
type Stream struct {
	t      testing.TB
	Header http.Header
	Status int
	body   io.ReadCloser
	lines  *bufio.Reader
	cancel context.CancelFunc
}

// Listen opens the GET stream of the session.
func (c *Client) Listen() *Stream {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	resp, err := c.send(ctx, http.MethodGet, "")
	if err != nil {
		cancel()
		c.t.Fatalf("open the stream: %v", err)
	}
	s := &Stream{t: c.t, Header: resp.Header, Status: resp.StatusCode, body: resp.Body, lines: bufio.NewReader(resp.Body), cancel: cancel}
	c.t.Cleanup(s.Close)
	return s
}

// Next returns the next block of the stream, without its blank line: an event or
// a comment. It is empty at the end of the stream, and when nothing came within
// 30 s.
func (s *Stream) Next() string {
	late := time.AfterFunc(patience, s.cancel)
	defer late.Stop()
	var block strings.Builder
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil || line == "\n" {
			return strings.TrimSuffix(block.String(), "\n")
		}
		block.WriteString(line)
	}
}

// Close leaves the stream.
func (s *Stream) Close() {
	s.cancel()
	_ = s.body.Close()
}
