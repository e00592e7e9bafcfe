package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"mcpbroker/internal/idleconn"
	"mcpbroker/internal/mask"
)

// client sends the requests of one connection: the configured headers, the broker's
// credentials, and nothing of any client of the broker.
type client struct {
	http      *http.Client
	transport *http.Transport
	target    *url.URL
	header    http.Header
	host      string
	tokens    *tokens // nil without client credentials
	secrets   []string
	connected func() // called for each new connection to the server; set before the first request
}

// maxRedirects is how many redirects in a row are followed.
const maxRedirects = 3

func newClient(cfg Config, target *url.URL, opts Options) *client {
	dialer := &net.Dialer{Timeout: cfg.ConnectTimeout, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 15 * time.Second, Count: 3}}
	proxy := quietly(http.ProxyFromEnvironment)
	if cfg.External {
		dialer.Control, proxy = refusePrivate, nil
	}
	transport := &http.Transport{
		Proxy: proxy, DialContext: dialer.DialContext, TLSHandshakeTimeout: cfg.ConnectTimeout,
		ForceAttemptHTTP2: true, HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
		DisableCompression:  true, // an event must not wait for a full block
		MaxIdleConnsPerHost: maxRunning, IdleConnTimeout: 90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
	if opts.TLS != nil {
		transport.TLSClientConfig = opts.TLS.Clone()
	}
	c := &client{
		transport: transport, target: target, header: http.Header{}, connected: func() {},
		http: &http.Client{Transport: idleconn.Transport{Transport: transport}, CheckRedirect: keepOrigin},
	}
	c.header.Set("User-Agent", opts.UserAgent)
	c.identify(cfg)
	return c
}

// identify sets what is sent with every request.
func (c *client) identify(cfg Config) {
	if b := cfg.Auth.Bearer; b != "" {
		c.header.Set("Authorization", "Bearer "+b)
		c.secrets = append(c.secrets, b)
	}
	for name, value := range cfg.Headers {
		if http.CanonicalHeaderKey(name) == "Host" {
			c.host = value
			continue
		}
		c.header.Set(name, value)
		c.secrets = append(c.secrets, value)
		if _, credentials, ok := strings.Cut(value, " "); ok {
			c.secrets = append(c.secrets, credentials)
		}
	}
	if password, ok := c.target.User.Password(); ok {
		c.secrets = append(c.secrets, password)
	}
	for _, values := range c.target.Query() {
		c.secrets = append(c.secrets, values...)
	}
	if cc := cfg.Auth.ClientCredentials; cc != nil && c.header.Get("Authorization") == "" {
		c.tokens = &tokens{cfg: *cc, resource: place(c.target), http: &http.Client{
			Transport: c.http.Transport, Timeout: tokenTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}}
		c.secrets = append(c.secrets, cc.ClientSecret)
	}
}

// mask takes out of a text what the server may have echoed of our secrets.
func (c *client) mask(text string) string {
	return mask.New(append(c.secrets[:len(c.secrets):len(c.secrets)], c.tokens.known()...)).Text(text)
}

// keepOrigin follows a redirect that keeps the method, the body and the origin: a
// session and credentials must not be told to anybody else (07 row 70).
func keepOrigin(r *http.Request, via []*http.Request) error {
	if !kept(r.Response.StatusCode) || len(via) > maxRedirects || !sameOrigin(r.URL, via[0].URL) {
		return http.ErrUseLastResponse
	}
	return nil
}

// unsent is the failure of a request of which nothing was written.
type unsent struct{ error }

func (u unsent) Unwrap() error { return u.error }

// do sends one request. Credentials the server has let expire are renewed once.
func (c *client) do(ctx context.Context, method, url string, body []byte, header ...string) (*http.Response, error) {
	resp, token, err := c.once(ctx, method, url, body, header)
	if err != nil || resp.StatusCode != http.StatusUnauthorized || c.tokens == nil {
		return resp, err
	}
	discard(resp)
	c.tokens.drop(token)
	resp, _, err = c.once(ctx, method, url, body, header)
	return resp, err
}

func (c *client) once(ctx context.Context, method, url string, body []byte, header []string) (*http.Response, string, error) {
	var reached atomic.Bool
	var content io.Reader
	if body != nil {
		content = bytes.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, url, content)
	if err != nil {
		return nil, "", unsent{withoutURL(err)}
	}
	token, err := c.dress(r, header)
	if err != nil {
		return nil, "", unsent{err}
	}
	resp, err := c.http.Do(r.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(conn httptrace.GotConnInfo) {
		reached.Store(true)
		if !conn.Reused {
			c.connected()
		}
	}})))
	if err == nil {
		return resp, token, nil
	}
	// A connection that was kept and had died unnoticed is replaced by the library if
	// nothing was written to it; then it is the dialing that failed.
	var op *net.OpError
	if dialing := errors.As(err, &op) && op.Op == "dial"; dialing || !reached.Load() {
		return nil, "", unsent{withoutURL(err)}
	}
	return nil, "", withoutURL(err)
}

// dress puts the headers on a request, and returns the token among them.
func (c *client) dress(r *http.Request, header []string) (token string, err error) {
	r.Header = c.header.Clone()
	r.Host = c.host
	if c.tokens != nil {
		if token, err = c.tokens.get(r.Context()); err != nil {
			return "", err
		}
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return token, nil
}

func (c *client) close() { c.transport.CloseIdleConnections() }

// discard lets the connection be used again, if the answer ends and little is left of
// it.
func discard(resp *http.Response) {
	if resp.ContentLength >= 0 {
		_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	}
	_ = resp.Body.Close()
}

// quietly keeps a proxy of the environment that is no URL, and may hold credentials, out
// of the error.
func quietly(proxy func(*http.Request) (*url.URL, error)) func(*http.Request) (*url.URL, error) {
	return func(r *http.Request) (*url.URL, error) {
		u, err := proxy(r)
		if err != nil {
			err = errors.New("the proxy that the broker's environment names (HTTP_PROXY, HTTPS_PROXY) is no url")
		}
		return u, err
	}
}

// sentence words a network failure. Clients get to see it: name servers and proxies of
// the broker's machine are not in it.
func sentence(err error) string {
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return "the proxy that the broker's environment names cannot be reached: " + root(op).Error()
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Sprintf("the host %s is not known", dns.Name)
	case errors.As(err, &dns) && dns.IsTimeout:
		return fmt.Sprintf("the host %s could not be looked up in time", dns.Name)
	case errors.As(err, &dns):
		return fmt.Sprintf("the host %s could not be looked up", dns.Name)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the server closed the connection"
	}
	return err.Error()
}

// root is the innermost cause.
func root(err error) error {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}
