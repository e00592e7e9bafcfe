package mcpbroker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"mcpbroker/config"
	"mcpbroker/egress"
	"mcpbroker/egress/static"
	"mcpbroker/ingress"
)

// Bounds of the HTTP server. A held POST has no bound of its own: the request
// deadline ends it.
const (
	maxHeaderBytes    = 16 << 10
	readHeaderTimeout = 15 * time.Second
	idleTimeout       = 2 * time.Minute
)

func (b *Broker) listen(ctx context.Context) (net.Listener, error) {
	c := b.config
	var material *tls.Config
	if c.Scheme() == config.ProtocolHTTPS {
		pair, err := c.TLS.Pair()
		if err != nil {
			return nil, &TLSError{Cert: c.TLS.Cert, Key: c.TLS.Key, Err: err}
		}
		material = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", net.JoinHostPort(c.Host, strconv.Itoa(c.Port)))
	if err != nil {
		return nil, &ListenError{Host: c.Host, Port: c.Port, Scheme: c.Scheme(), MCPPath: c.Paths.MCP, Err: err}
	}
	if material != nil {
		listener = tls.NewListener(listener, material)
	}
	return listener, nil
}

func (b *Broker) httpServer(run *running) *http.Server {
	paths := ingress.Paths{Provider: b.config.Paths.Provider, Providers: b.config.Paths.Providers}
	router := &egress.Router{
		MCP: strings.Trim(b.config.Paths.MCP, "/"), Slot: run.streamable,
		SSE: strings.Trim(b.config.Paths.SSE, "/"), Stream: egress.SlotFunc(run.sse.ServeStream),
		Messages: strings.Trim(b.config.Paths.Messages, "/"), Post: egress.SlotFunc(run.sse.ServePost),
		Beside:   b.beside(run),
		Fallback: b.files(),
	}
	run.listener = ingress.TolerantListener{Listener: run.listener}
	return &http.Server{
		MaxHeaderBytes:    maxHeaderBytes,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		ConnContext:       ingress.ConnContext,
		ErrorLog:          slog.NewLogLogger(b.log.Handler(), slog.LevelDebug),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.RequestURI = ingress.RawTarget(r)
			if ingress.IsUpgrade(r) {
				b.upgrade(run, w, r, ingress.Classify(egress.Target(r.RequestURI), paths))
				return
			}
			router.ServeHTTP(w, r)
		}),
	}
}

// files serves what is mounted beside MCP.
func (b *Broker) files() *static.Files {
	var mounts []static.Mount
	for _, m := range b.config.WWW.Mounts {
		mounts = append(mounts, static.Mount{Prefix: m.URLPrefix, Dir: m.Dir})
	}
	return static.New(mounts, b.log)
}

func (b *Broker) upgrade(run *running, w http.ResponseWriter, r *http.Request, u ingress.Upgrade) {
	if b.config.CheckUpgradeOrigins {
		if refusal := egress.CheckOrigin(b.config.AllowedOrigins, r.Header["Origin"], egress.Endpoint(r)); refusal != "" {
			b.log.Warn(fmt.Sprintf(`[broker] ws upgrade REFUSED path="%s": %s`, r.RequestURI, refusal))
			w.Header().Set("Connection", "close")
			egress.FailOrigin(w, refusal)
			return
		}
	}
	switch {
	case u.Refusal != "":
		b.log.Warn(fmt.Sprintf(`[broker] ws upgrade REFUSED path="%s": %s`, r.RequestURI, u.Refusal))
		ingress.Refuse(w, http.StatusBadRequest, u.Refusal)
	case u.Role == ingress.Client:
		run.wsclients.Serve(w, r, u.Slot, func() { ingress.LogConnect(run.sys, r, u) })
	default:
		run.providers.Serve(w, r, u)
	}
}

// ListenError is a Start that could not have its address (spec 03 5.6).
type ListenError struct {
	Host    string
	Port    int
	Scheme  string
	MCPPath string
	Err     error
}

func (e *ListenError) Unwrap() error { return e.Err }

func (e *ListenError) Error() string {
	at := fmt.Sprintf("Cannot listen on %s", net.JoinHostPort(e.Host, strconv.Itoa(e.Port)))
	base := e.Scheme + "://" + net.JoinHostPort(reachable(e.Host), strconv.Itoa(e.Port))
	switch {
	case errors.Is(e.Err, syscall.EADDRINUSE):
		return fmt.Sprintf("%s: the address is already in use. Another broker or process holds it. If it is a broker, attach clients to %s/<slot>%s and inspect it at %s/_broker%s rather than start a second one, which would share no slot with it; or pick another port with MCP_BROKER_PORT.",
			at, base, e.MCPPath, base, e.MCPPath)
	case errors.Is(e.Err, syscall.EACCES):
		return at + ": permission denied. Ports under 1024 need privileges; use a higher one (MCP_BROKER_PORT) or put a proxy in front."
	case errors.Is(e.Err, syscall.EADDRNOTAVAIL):
		return at + ": the host address is not available on this machine. Use 127.0.0.1 for this machine only or 0.0.0.0 for all interfaces (MCP_BROKER_HOST)."
	}
	return fmt.Sprintf("%s: %v", at, e.Err)
}

// TLSError is a Start whose certificate or key could not be read.
type TLSError struct {
	Cert, Key string
	Err       error
}

func (e *TLSError) Unwrap() error { return e.Err }

func (e *TLSError) Error() string {
	return fmt.Sprintf("TLS is enabled but the material could not be read: %v. Certificate: %s. Key: %s. Paths in the configuration file are relative to that file, paths in MCP_BROKER_TLS_CERT and MCP_BROKER_TLS_KEY to the working directory. Generate a pair with openssl, or switch TLS off with protocol = \"http\".",
		e.Err, e.Cert, e.Key)
}

// reachable is the name under which this machine reaches a bound address.
func reachable(host string) string {
	switch host {
	case "0.0.0.0", "::", "", "127.0.0.1", "::1":
		return "localhost"
	}
	return host
}
