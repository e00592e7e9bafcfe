package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"time"

	"mcpbroker/actors/wire"
	"mcpbroker/config"
)

const (
	sessionHeader   = "Mcp-Session-Id"
	versionHeader   = "Mcp-Protocol-Version"
	clientRevision  = "2025-11-25"
	maxAnswerBytes  = 64 << 20
	farewellTimeout = time.Second // for the end of a session
)

// client is one MCP session with a slot, over Streamable HTTP. Its methods are
// for one goroutine.
type client struct {
	at       address
	slot     string
	endpoint string
	http     *http.Client
	session  string
	revision string // negotiated; empty until the session is open
	lastID   int
	farewell time.Duration // bounds the end of the session
	note     noteFunc      // takes the notifications that come with an answer; may be nil
	reached  bool          // there is somebody at the address
}

// noteFunc takes a notification.
type noteFunc func(method string, params json.RawMessage)

// message is a JSON-RPC message of any kind.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// errSessionGone: the broker does not know the session any more.
var errSessionGone error = &refusedError{text: "The broker has forgotten the session: it was restarted, or ended the session"}

// connect opens a session with a slot. The caller closes the client.
func (p *program) connect(ctx context.Context, at address, slot string) (*client, error) {
	endpoint, err := at.endpoint(slot)
	if err != nil {
		return nil, err
	}
	c := &client{at: at, slot: slot, endpoint: endpoint, http: newHTTPClient(at.cert), farewell: cmp.Or(p.farewell, farewellTimeout)}
	if err := c.open(ctx, p.version); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// newHTTPClient trusts the certificates in a file besides those the machine
// trusts. A file that cannot be read adds none: the handshake will tell.
func newHTTPClient(cert string) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 64
	t.DisableCompression = true // a stream must not wait for a full block
	t.DialContext = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
	if pem, err := config.ReadRegular(cert, config.MaxPEMBytes); cert != "" && err == nil {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		pool.AppendCertsFromPEM(pem)
		t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	// A redirect would turn the POST into a GET, and tell the session to whoever it
	// leads to.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: t, CheckRedirect: stay}
}

func (c *client) open(ctx context.Context, version string) error {
	result, err := c.request(ctx, "initialize", map[string]any{
		"protocolVersion": clientRevision,
		"capabilities":    map[string]any{},
		"clientInfo":      map[string]any{"name": "broker-cli", "version": version},
	})
	if err != nil {
		return err
	}
	var answer struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if err := json.Unmarshal(result, &answer); err != nil || answer.ProtocolVersion == "" {
		return c.unfit("its answer to initialize names no protocol version")
	}
	c.revision = answer.ProtocolVersion
	return c.notify(ctx, "notifications/initialized")
}

// unfit is why a session cannot be opened with who answers, or does not: the broker, or
// the provider of a slot.
func (c *client) unfit(why string) error {
	if c.slot == brokerSlot {
		return &unreachableError{c.at.base, why}
	}
	return &refusedError{text: fmt.Sprintf("The provider of slot %q cannot be asked: %s", c.slot, why)}
}

// close ends the session, if there is one, and lets go of the connections.
func (c *client) close() {
	defer c.http.CloseIdleConnections()
	if c.session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.farewell)
	defer cancel()
	if resp, err := c.do(ctx, http.MethodDelete, nil); err == nil {
		_ = resp.Body.Close()
	}
}

// request returns the result as it was sent. An error response is a
// *refusedError.
func (c *client) request(ctx context.Context, method string, params any) (json.RawMessage, error) {
	c.lastID++
	id := strconv.Itoa(c.lastID)
	m, err := c.post(ctx, encode(map[string]any{"jsonrpc": "2.0", "id": c.lastID, "method": method, "params": params}), id)
	switch {
	case err != nil:
		return nil, err
	case m == nil:
		return nil, &refusedError{text: fmt.Sprintf("The answer to %s holds no response", method)}
	case m.Error != nil:
		return nil, &refusedError{text: m.Error.Message, code: m.Error.Code}
	}
	return m.Result, nil
}

func (c *client) notify(ctx context.Context, method string) error {
	_, err := c.post(ctx, encode(map[string]any{"jsonrpc": "2.0", "method": method}), "")
	return err
}

// encode writes JSON as it was meant: without escapes for HTML.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("a message that does not encode: " + err.Error()) // they are made of maps, strings and checked JSON
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// post sends one message and returns the response to id, nil if there is none.
func (c *client) post(ctx context.Context, body []byte, id string) (*message, error) {
	resp, err := c.do(ctx, http.MethodPost, body)
	if err != nil {
		return nil, c.lost(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if s := resp.Header.Get(sessionHeader); s != "" {
		c.session = s
	}
	switch kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); {
	case resp.StatusCode == http.StatusAccepted, resp.StatusCode == http.StatusNoContent:
		return nil, nil
	case resp.StatusCode != http.StatusOK:
		return nil, c.refusal(resp)
	case kind == "text/event-stream":
		return c.await(ctx, resp.Body, id)
	case kind != "application/json":
		return nil, &unreachableError{c.at.base, fmt.Sprintf("what answers there is no broker, it sends %q", kind)}
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes))
	if err != nil {
		return nil, c.lost(ctx, err)
	}
	var m message
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, &unreachableError{c.at.base, "what answers there is no broker, its JSON is broken"}
	}
	return &m, nil
}

// await reads the events of an answer until the response to id.
func (c *client) await(ctx context.Context, body io.Reader, id string) (*message, error) {
	for events := wire.NewEventReader(body, maxAnswerBytes); ; {
		ev, err := events.Next()
		if errors.Is(err, io.EOF) && ctx.Err() == nil {
			return nil, nil
		}
		if err != nil {
			return nil, c.lost(ctx, err)
		}
		m, ok := decodeEvent(ev)
		switch {
		case !ok:
		case m.Method == "" && string(m.ID) == id:
			return &m, nil
		case m.Method != "" && m.ID == nil && c.note != nil:
			c.note(m.Method, m.Params)
		}
	}
}

func decodeEvent(ev wire.ServerEvent) (m message, ok bool) {
	return m, (ev.Name == "" || ev.Name == "message") && json.Unmarshal(ev.Data, &m) == nil
}

// listen opens the event stream. Its notifications go to note, on a goroutine of
// its own, until the channel tells that the stream has ended, and closes.
func (c *client) listen(ctx context.Context, note noteFunc) (<-chan error, error) {
	resp, err := c.do(ctx, http.MethodGet, nil)
	if err != nil {
		return nil, c.lost(ctx, err)
	}
	if resp.StatusCode != http.StatusOK {
		defer func() { _ = resp.Body.Close() }()
		return nil, c.refusal(resp)
	}
	ended := make(chan error, 1)
	go func() {
		defer close(ended)
		defer func() { _ = resp.Body.Close() }()
		for events := wire.NewEventReader(resp.Body, maxAnswerBytes); ; {
			ev, err := events.Next()
			if err != nil {
				ended <- err
				return
			}
			if m, ok := decodeEvent(ev); ok && m.Method != "" && m.ID == nil {
				note(m.Method, m.Params)
			}
		}
	}()
	return ended, nil
}

func (c *client) do(ctx context.Context, method string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	switch method {
	case http.MethodPost:
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
	case http.MethodGet:
		r.Header.Set("Accept", "text/event-stream")
	}
	if c.session != "" {
		r.Header.Set(sessionHeader, c.session)
	}
	if c.revision != "" {
		r.Header.Set(versionHeader, c.revision)
	}
	return c.http.Do(r.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { c.reached = true },
	})))
}

// lost explains a request that got no whole answer.
func (c *client) lost(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	var late *lateError
	switch {
	case errors.Is(cause, errInterrupted):
		return errInterrupted
	case errors.As(cause, &late) && c.revision != "":
		return &refusedError{text: late.Error()}
	case errors.As(cause, &late) && c.reached:
		return c.unfit(late.Error() + " to initialize")
	case cause != nil:
		err = cause
	}
	var u *url.Error // repeats the method and the URL
	if errors.As(err, &u) {
		err = u.Err
	}
	return &unreachableError{c.at.base, err.Error()}
}

// refusal explains an HTTP answer that is not the one asked for: in the words of
// the broker where it is one.
func (c *client) refusal(resp *http.Response) error {
	if resp.StatusCode == http.StatusNotFound && c.session != "" {
		return errSessionGone
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var m message
	if json.Unmarshal(body, &m) == nil && m.Error != nil {
		return &refusedError{text: m.Error.Message, code: m.Error.Code}
	}
	var failure struct {
		Description string `json:"error_description"`
	}
	if json.Unmarshal(body, &failure) == nil && failure.Description != "" {
		return &refusedError{text: failure.Description}
	}
	why := fmt.Sprintf("%s answers HTTP %s", c.endpoint, resp.Status)
	if to := resp.Header.Get("Location"); to != "" {
		why += ", and redirects to " + to
	}
	return &unreachableError{c.at.base, why}
}
