// Package idleconn keeps HTTP requests off connections that the server has closed while
// they were idle.
//
// The standard transport hears of such an end on a goroutine of its own. On a busy
// machine a request can come first: it is written to the dead connection, and whether the
// server has seen it cannot be told any more. The kernel knows better at that moment, so
// it is asked.
package idleconn

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"syscall"
)

// Transport is an http.RoundTripper. A request without a body, or with one that GetBody
// can repeat, is sent over another connection if the one that was kept for it has been
// closed at the other end. Where the system cannot be asked, and for a server that took
// leave over TLS, it is the plain transport.
type Transport struct{ *http.Transport }

// RoundTrip implements http.RoundTripper.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	for {
		var dead atomic.Bool
		resp, err := t.Transport.RoundTrip(guarded(r, &dead))
		if err == nil || !dead.Load() || r.Context().Err() != nil {
			return resp, err
		}
		next, ok := again(r)
		if !ok {
			return resp, err
		}
		r = next
		t.CloseIdleConnections() // they are as old, and it must come to a new one
	}
}

// guarded closes the connection that r is given if it is dead, before a byte is written
// to it: the request fails, and has not been sent.
func guarded(r *http.Request, dead *atomic.Bool) *http.Request {
	return r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) {
			closed := (got.Reused || got.WasIdle) && ended(got.Conn)
			dead.Store(closed)
			if closed {
				_ = got.Conn.Close()
			}
		},
	}))
}

// again is r for another try.
func again(r *http.Request) (*http.Request, bool) {
	if r.Body == nil || r.Body == http.NoBody {
		return r, true
	}
	if r.GetBody == nil {
		return nil, false
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, false
	}
	next := r.Clone(r.Context())
	next.Body = body
	return next, true
}

// ended reports that the peer has closed an idle connection, and has sent nothing before
// that which is still to be read.
func ended(conn net.Conn) bool {
	if secure, ok := conn.(*tls.Conn); ok {
		if secure.ConnectionState().NegotiatedProtocol == "h2" {
			return false // shared by requests: none is idle alone
		}
		conn = secure.NetConn()
	}
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	return err == nil && peerClosed(raw)
}
