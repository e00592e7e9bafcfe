package firmware

import (
	"crypto/tls"
	"io"
	"net"
	"sync"
	"testing"
)

// inFrontOf relays what arrives over TLS to a plain port of this machine.
func inFrontOf(port string) func(*tls.Conn) {
	return func(c *tls.Conn) {
		plain, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			return
		}
		var both sync.WaitGroup
		both.Go(func() {
			_, _ = io.Copy(plain, c)
			_ = plain.Close()
		})
		both.Go(func() {
			_, _ = io.Copy(c, plain)
			_ = c.Close()
		})
		both.Wait()
	}
}

var rv32TLS = image{"fw-tls", rv32.qemu, rv32.packaged, rv32.machine}

// Spec 04 13.4 and 15: a board reaches the broker over TLS when the certificate has
// the name it was told, dialling an address that is not in it, and does so again
// after each loss.
func TestBoardTLS(t *testing.T) {
	b := startBroker(t, "")
	ca := newAuthority(t, "test authority")
	relay := inFrontOf(b.port)
	accepted := make(chan *tls.Conn, 64)
	front := serveTCP(t, overTLS(withCertificate(ca.server(nil, "broker.test")), func(c *tls.Conn) {
		accepted <- c
		relay(c)
	}))
	p := startImage(t, rv32TLS, front, "--name", "tls-1", "--tls", "--ca", ca.file, "--verify-name", "broker.test")
	p.awaitConnect(1)
	s := open(t, b.mcp("tls-1"), "tls-1")
	for range 50 {
		s.echo("tls-1", `a "quoted" \ text`)
	}
	for range 4 { // more often than its heap would last if a connection were lost in it
		hangUp(t, latest(accepted))
		p.next(`^event DISCONNECTED error="closed by the peer" code=1006`)
		p.stackWithin(4 << 10)
		s.awaitDevice()
	}
	s.echo("tls-1", "still here")
}

// latest is the connection of a device that is served: it has one at a time, and may
// have been refused on others before.
func latest(accepted <-chan *tls.Conn) *tls.Conn {
	for c := <-accepted; ; c = <-accepted {
		if len(accepted) == 0 {
			return c
		}
	}
}

// hangUp ends a connection as a server does that fails: without a close_notify. What
// the device still sends does not turn that into a reset.
func hangUp(t *testing.T, c *tls.Conn) {
	t.Helper()
	if err := c.NetConn().(*net.TCPConn).CloseWrite(); err != nil {
		t.Errorf("hang up: %v", err)
	}
}

// Spec 04 section 6 and 15: the wrong name and an unknown authority are refused in
// words, as failed attempts; the server sees the alert.
func TestBoardTLSRefuses(t *testing.T) {
	ca := newAuthority(t, "test authority")
	stranger := newAuthority(t, "another authority")
	for _, c := range []struct{ name, file, verify, words string }{
		{"wrong name", ca.file, "other.test", "certificate: wrong name"},
		{"unknown authority", stranger.file, "broker.test", "certificate: unknown authority"},
	} {
		t.Run(c.name, func(t *testing.T) {
			saw := make(chan error, 1)
			config := withCertificate(ca.server(nil, "broker.test"))
			front := serveTCP(t, func(conn net.Conn) {
				err := tls.Server(conn, config).Handshake()
				select {
				case saw <- err:
				default: // a later attempt
				}
			})
			p := startImage(t, rv32TLS, front, "--name", "tls-1", "--tls", "--ca", c.file, "--verify-name", c.verify)
			p.next(`^event RETRY_FAILED error="[^"]*TLS[^"]*"`)
			p.next(`^transport: ` + c.words + `$`)
			if err := <-saw; err == nil {
				t.Error("the server's handshake succeeded, want an alert")
			}
			if n := p.count(`^event CONNECTED`); n != 0 {
				t.Errorf("the board connected %d times", n)
			}
		})
	}
}
