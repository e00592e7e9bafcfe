package remote

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// The transports of a remote server, as configured.
const (
	StreamableHTTP = "streamable-http"
	SSE            = "sse"
	WebSocket      = "websocket"
)

// Config is one remote server.
type Config struct {
	Name      string            // of its slot
	URL       string            // http, https, ws or wss
	Transport string            // empty is what TransportOf says, and for Streamable HTTP what the server says
	Headers   map[string]string // sent as they are with every request to the server
	Limit     int               // bytes of one message; default 4 MiB
	Auth      Auth

	// External: the URL did not come from the operator, so private targets are
	// refused, also where a public name leads to one, and no proxy is used.
	External bool

	// ConnectTimeout bounds name lookup, TCP and TLS, each; default 10 s.
	ConnectTimeout time.Duration

	guessed bool // the transport, so that the server may know better
}

// Auth is how the broker identifies itself. The zero value is not at all. An
// Authorization header in Config.Headers has precedence.
type Auth struct {
	Bearer            string
	ClientCredentials *ClientCredentials
}

// ClientCredentials are for the OAuth 2.0 grant of that name.
type ClientCredentials struct {
	TokenURL     string
	ClientID     string
	ClientSecret string
	Scopes       []string
}

const (
	defaultLimit          = 4 << 20
	defaultConnectTimeout = 10 * time.Second
)

// TransportOf is the transport of a URL that is configured without one.
func TransportOf(rawURL string) string {
	u, err := url.Parse(rawURL)
	switch {
	case err != nil:
		return StreamableHTTP
	case u.Scheme == "ws", u.Scheme == "wss":
		return WebSocket
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/sse"):
		return SSE
	}
	return StreamableHTTP
}

// complete fills in defaults and says what is wrong with the rest. URLs may hold
// secrets, so no message quotes one.
func (c Config) complete() (Config, *url.URL, error) {
	c.Limit = cmp.Or(c.Limit, defaultLimit)
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, defaultConnectTimeout)
	c.guessed = c.Transport == ""
	c.Transport = cmp.Or(c.Transport, TransportOf(c.URL))
	u, err := url.Parse(c.URL)
	switch {
	case err != nil:
		return c, nil, errors.New("its url does not parse")
	case u.Hostname() == "":
		return c, nil, errors.New("its url names no host")
	}
	u.Fragment = ""
	if cc := c.Auth.ClientCredentials; cc != nil {
		if t, err := url.Parse(cc.TokenURL); err != nil || t.Scheme != "http" && t.Scheme != "https" || t.Hostname() == "" {
			return c, nil, errors.New("the token url of its client credentials is none")
		}
	}
	switch c.Transport {
	case StreamableHTTP, SSE:
		if u.Scheme != "http" && u.Scheme != "https" {
			return c, nil, fmt.Errorf("transport %s needs a url that begins with http:// or https://", c.Transport)
		}
	case WebSocket:
		if u.Scheme != "ws" && u.Scheme != "wss" {
			return c, nil, fmt.Errorf("transport %s needs a url that begins with ws:// or wss://", c.Transport)
		}
	default:
		return c, nil, fmt.Errorf("transport %q is not one of %s, %s, %s", c.Transport, StreamableHTTP, SSE, WebSocket)
	}
	return c, u, nil
}

// withoutURL drops what a *url.Error repeats: the URL, which may hold secrets.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// place is a URL fit for messages: without user, query and fragment.
func place(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// sameOrigin compares scheme, host and port.
func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && portOf(a) == portOf(b)
}

func portOf(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	if u.Scheme == "https" || u.Scheme == "wss" {
		return "443"
	}
	return "80"
}
