package provider

import (
	"log/slog"
	"net/http"
)

const defaultReadLimit = 4 << 20

// Option configures a transport or a tunnel.
type Option func(*options)

type options struct {
	aggregate *bool
	secret    string
	header    http.Header
	logger    *slog.Logger
	readLimit int64
	client    *http.Client
}

func newOptions(base options, opts []Option) options {
	for _, o := range opts {
		o(&base)
	}
	return base
}

// WithAggregate states whether the slot joins the aggregate slot _all. Without
// it the slot does not join, and a Direct sends no registration at all. Given
// to a Tunnel it is the default of its slots.
func WithAggregate(join bool) Option {
	return func(o *options) { o.aggregate = &join }
}

// WithSecret authenticates the provider: the secret travels in the
// X-Provider-Token header of the handshake and is never logged. On a tunnel it
// belongs to NewTunnel; Loopback ignores it.
func WithSecret(secret string) Option {
	return func(o *options) { o.secret = secret }
}

// WithHeader adds headers to the handshake. WithSecret wins over an
// X-Provider-Token given here. On a tunnel it belongs to NewTunnel; Loopback
// ignores it.
func WithHeader(h http.Header) Option {
	return func(o *options) { o.header = h.Clone() }
}

// WithLogger sets the logger. The default is slog.Default().
func WithLogger(l *slog.Logger) Option {
	return func(o *options) { o.logger = l }
}

// WithReadLimit sets the largest accepted incoming frame in bytes; values below
// 1 mean the default of 4 MiB. A larger frame ends the connection with 1009. On
// a tunnel it belongs to NewTunnel; Loopback ignores it.
func WithReadLimit(bytes int64) Option {
	return func(o *options) { o.readLimit = bytes }
}

// WithHTTPClient sets the client that performs the handshake, for proxies, TLS
// settings and tests. Redirects are never followed, so that a secret does not
// reach another host. On a tunnel it belongs to NewTunnel; Loopback ignores it.
func WithHTTPClient(c *http.Client) Option {
	return func(o *options) { o.client = c }
}

func (o *options) log() *slog.Logger {
	if o.logger == nil {
		return slog.Default()
	}
	return o.logger
}

func (o *options) limit() int64 {
	if o.readLimit < 1 {
		return defaultReadLimit
	}
	return o.readLimit
}

func (o *options) handshakeHeader() http.Header {
	h := o.header.Clone()
	if h == nil {
		h = http.Header{}
	}
	if o.secret != "" {
		h.Set("X-Provider-Token", o.secret)
	}
	return h
}
