package firmware

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// serveTCP serves every connection with serve until the test ends, and returns the
// port. It leaves no goroutine behind.
func serveTCP(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			all.Go(func() {
				defer c.Close()
				serve(c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// overTLS gives serve a connection after the handshake.
func overTLS(config *tls.Config, serve func(*tls.Conn)) func(net.Conn) {
	return func(c net.Conn) {
		secure := tls.Server(c, config)
		if secure.Handshake() == nil {
			serve(secure)
		}
	}
}

func withCertificate(cert tls.Certificate) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{cert}}
}

func echoTLS(c *tls.Conn) { _, _ = io.Copy(c, c) }

var mbedtlsFound = sync.OnceValue(func() error {
	return exec.Command("cc", "-x", "c", "-fsyntax-only", "-include", "mbedtls/ssl.h", os.DevNull).Run()
})

// tlsBench runs the bench program of the TLS port and returns what it printed
// after "init: 0 ".
func tlsBench(t *testing.T, args ...string) []string {
	t.Helper()
	require(t, "cc", "gcc")
	if err := mbedtlsFound(); err != nil {
		missing(t, "mbedtls/ssl.h is not installed (Debian package libmbedtls-dev)")
	}
	build(t, "tls-bench")
	path, err := filepath.Abs(filepath.Join("build", "host", "tls_bench"))
	if err != nil {
		t.Fatal(err)
	}
	p := command(t, path, args...).start()
	if code := p.exit(); code != 0 {
		t.Fatalf("tls_bench %s: exit code %d\n%s", strings.Join(args, " "), code, strings.Join(p.all(), "\n"))
	}
	lines := p.all()
	if len(lines) > 0 && lines[0] == "init: 0 " {
		return lines[1:]
	}
	return lines
}

func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("steps of the bench (-want +got):\n%s", diff)
	}
}

// Spec 04 section 6: echo, 20000 bytes across records, open again after close.
func TestTLSCarriesBytes(t *testing.T) {
	ca := newAuthority(t, "test authority")
	port := serveTCP(t, overTLS(withCertificate(ca.server(nil, "broker.test")), echoTLS))
	got := tlsBench(t, "--port", port, "--ca", ca.file, "--verify", "broker.test",
		"open", "echo=1", "echo=20000", "close", "open", "echo=300", "close", "close", "send=x", "read=1")
	wantLines(t, got, "open: 0 ", "echo=1: same 0", "echo=20000: same 0", "close: done",
		"open: 0 ", "echo=300: same 0", "close: done", "close: done", "send=x: -3", "read=1: -3")
}

// Spec 04 section 6: the name is verified, be it a DNS name or an address, apart
// from the host that is dialled; only DNS names are announced.
func TestTLSVerifiesName(t *testing.T) {
	ca := newAuthority(t, "test authority")
	for _, c := range []struct {
		name, verify, want, sni string
		of                      []string
	}{
		{"right", "broker.test", "0 ", "broker.test", []string{"broker.test"}},
		{"wildcard", "a.broker.test", "0 ", "a.broker.test", []string{"*.broker.test"}},
		{"second of two", "b.test", "0 ", "b.test", []string{"a.test", "b.test"}},
		{"wrong", "other.test", "-10 certificate: wrong name", "other.test", []string{"broker.test"}},
		{"common name beside others", "server", "-10 certificate: wrong name", "server", []string{"broker.test"}},
		{"IPv4", "127.0.0.1", "0 ", "", []string{"127.0.0.1"}},
		{"IPv4 wrong", "127.0.0.2", "-10 certificate: wrong name", "", []string{"127.0.0.1"}},
		{"IPv4 as DNS name", "127.0.0.1", "-10 certificate: wrong name", "", []string{"broker.test"}},
		{"IPv6", "2001:db8::1", "0 ", "", []string{"2001:db8::1"}},
		{"IPv6 written out", "2001:0DB8:0:0:0:0:0:1", "0 ", "", []string{"2001:db8::1"}},
		{"IPv6 with IPv4 tail", "2001:db8::1.2.3.4", "0 ", "", []string{"2001:db8::102:304"}},
		{"IPv6 wrong", "2001:db8::2", "-10 certificate: wrong name", "", []string{"2001:db8::1"}},
		{"IPv4 is not mapped", "127.0.0.1", "-10 certificate: wrong name", "", []string{"::1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			announced := make(chan string, 1)
			config := withCertificate(ca.server(nil, c.of...))
			config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
				announced <- hello.ServerName
				return nil, nil
			}
			port := serveTCP(t, overTLS(config, echoTLS))
			wantLines(t, tlsBench(t, "--port", port, "--ca", ca.file, "--verify", c.verify, "open"), "open: "+c.want)
			if got := <-announced; got != c.sni {
				t.Errorf("server name announced: %q, want %q", got, c.sni)
			}
		})
	}
}

// Spec 04 section 6: without a name of its own, the dialled host is the name.
func TestTLSVerifiesDialledHost(t *testing.T) {
	ca := newAuthority(t, "test authority")
	port := serveTCP(t, overTLS(withCertificate(ca.server(nil, "127.0.0.1")), echoTLS))
	wantLines(t, tlsBench(t, "--port", port, "--ca", ca.file, "open", "echo=5"), "open: 0 ", "echo=5: same 0")
	port = serveTCP(t, overTLS(withCertificate(ca.server(nil, "broker.test")), echoTLS))
	wantLines(t, tlsBench(t, "--port", port, "--ca", ca.file, "open"), "open: -10 certificate: wrong name")
}

// Spec 04 section 6: the chain is verified, in words.
func TestTLSVerifiesChain(t *testing.T) {
	ca := newAuthority(t, "test authority")
	stranger := newAuthority(t, "another authority")
	namesake := newAuthority(t, "test authority")
	for _, c := range []struct {
		name string
		cert tls.Certificate
		want string
	}{
		{"unknown authority", stranger.server(nil, "broker.test"), "-10 certificate: unknown authority"},
		{"same name, other key", namesake.server(nil, "broker.test"), "-10 certificate: unknown authority"},
		{"self-signed", selfSigned(t, "broker.test"), "-10 certificate: self-signed"},
		{"expired", ca.server(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }, "broker.test"),
			"-10 certificate: expired"},
		{"future", ca.server(func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) }, "broker.test"),
			"-10 certificate: not yet valid"},
		{"for clients", ca.server(func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		}, "broker.test"), "-10 certificate: not for servers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			port := serveTCP(t, overTLS(withCertificate(c.cert), echoTLS))
			got := tlsBench(t, "--port", port, "--ca", ca.file, "--verify", "broker.test", "open", "send=x")
			wantLines(t, got, "open: "+c.want, "send=x: -3")
		})
	}
}

// Spec 04 section 6: a borrowed configuration supplies trust only. That it does not
// verify, or that its callback accepts, opens no door; its callback can refuse.
func TestTLSBorrowsTrustOnly(t *testing.T) {
	ca := newAuthority(t, "test authority")
	stranger := newAuthority(t, "another authority")
	good := ca.server(nil, "broker.test")
	for _, c := range []struct {
		name, kind, verify, want string
		cert                     tls.Certificate
	}{
		{"good", "trust", "broker.test", "0 ", good},
		{"wrong name", "trust", "other.test", "-10 certificate: wrong name", good},
		{"unknown authority", "trust", "broker.test", "-10 certificate: unknown authority", stranger.server(nil, "broker.test")},
		{"callback accepts", "accepting", "broker.test", "0 ", good},
		{"callback accepts a wrong name", "accepting", "other.test", "-10 certificate: wrong name", good},
		{"callback accepts a wrong address", "accepting", "127.0.0.9", "-10 certificate: wrong name", good},
		{"callback accepts an unknown authority", "accepting", "broker.test", "-10 certificate: unknown authority",
			stranger.server(nil, "broker.test")},
		{"callback refuses", "refusing", "broker.test", "-10 certificate: refused", good},
	} {
		t.Run(c.name, func(t *testing.T) {
			port := serveTCP(t, overTLS(withCertificate(c.cert), echoTLS))
			got := tlsBench(t, "--port", port, "--ca", ca.file, "--lend", c.kind, "--verify", c.verify, "open")
			wantLines(t, got, "open: "+c.want)
		})
	}
}

// Spec 04 section 6: TLS 1.2 is the floor; what is no TLS server is refused; a
// handshake that never ends is bounded.
func TestTLSRefusesHandshake(t *testing.T) {
	ca := newAuthority(t, "test authority")
	old := withCertificate(ca.server(nil, "broker.test"))
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	newer := withCertificate(ca.server(nil, "broker.test"))
	newer.MinVersion = tls.VersionTLS13
	for _, c := range []struct {
		name  string
		serve func(net.Conn)
		step  string
		want  string
	}{
		{"TLS 1.1", overTLS(old, echoTLS), "open", "-10 no common TLS version (-0x6e80)"},
		{"TLS 1.3 only", overTLS(newer, echoTLS), "open", "-10 the server refused with an alert (-0x7780)"},
		{"HTTP", func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
			_, _ = io.Copy(io.Discard, c)
		}, "open", "-10 no TLS server, or none we understand (-0x7200)"},
		{"hang-up", func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) }, "open", "-4 connection lost during the handshake"},
		{"silence", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, "open-briefly", "-2 "},
	} {
		t.Run(c.name, func(t *testing.T) {
			port := serveTCP(t, c.serve)
			got := tlsBench(t, "--port", port, "--ca", ca.file, "--verify", "broker.test", c.step)
			wantLines(t, got, c.step+": "+c.want)
		})
	}
}

// Spec 04 section 6: close_notify and the end of the inner connection are both
// "closed", and what arrived before is handed out first.
func TestTLSEnds(t *testing.T) {
	ca := newAuthority(t, "test authority")
	config := withCertificate(ca.server(nil, "broker.test"))
	for _, c := range []struct {
		name string
		end  func(*tls.Conn)
	}{
		{"close_notify", func(c *tls.Conn) { _ = c.Close() }},
		{"inner close", func(c *tls.Conn) { _ = c.NetConn().Close() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			port := serveTCP(t, overTLS(config, func(conn *tls.Conn) {
				_, _ = io.ReadFull(conn, make([]byte, 1))
				_, _ = io.WriteString(conn, "bye")
				c.end(conn)
			}))
			got := tlsBench(t, "--port", port, "--ca", ca.file, "--verify", "broker.test",
				"open", "send=x", "read=9", "read=9", "read=9")
			wantLines(t, got, "open: 0 ", "send=x: 1", "read=9: bye", "read=9: -3", "read=9: -3")
		})
	}
}

// Spec 04 section 6: bytes the engine holds decrypted are delivered before the inner
// port is asked: the rest of a record is there without waiting.
func TestTLSDeliversHeldBytes(t *testing.T) {
	ca := newAuthority(t, "test authority")
	port := serveTCP(t, overTLS(withCertificate(ca.server(nil, "broker.test")), func(c *tls.Conn) {
		_, _ = io.WriteString(c, "abcdefgh")
		_, _ = io.Copy(io.Discard, c)
	}))
	got := tlsBench(t, "--port", port, "--ca", ca.file, "--verify", "broker.test",
		"open", "read=3", "peek=3", "peek=3", "peek=3")
	wantLines(t, got, "open: 0 ", "read=3: abc", "peek=3: def", "peek=3: gh", "peek=3: -2")
}

// splitConn lets the first bytes of one write through and the rest only after a
// signal.
type splitConn struct {
	net.Conn
	armed bool
	rest  chan struct{}
}

func (c *splitConn) Write(b []byte) (int, error) {
	if !c.armed || len(b) < 8 {
		return c.Conn.Write(b)
	}
	c.armed = false
	n, err := c.Conn.Write(b[:7])
	if err != nil {
		return n, err
	}
	<-c.rest
	m, err := c.Conn.Write(b[7:])
	return n + m, err
}

// Spec 04 R-27 over TLS: a timeout inside a record loses nothing.
func TestTLSTimeoutInsideRecord(t *testing.T) {
	ca := newAuthority(t, "test authority")
	config := withCertificate(ca.server(nil, "broker.test"))
	port := serveTCP(t, func(c net.Conn) {
		split := &splitConn{Conn: c, rest: make(chan struct{})}
		secure := tls.Server(split, config)
		if secure.Handshake() != nil {
			return
		}
		go func() { // the client speaks once its first read has timed out
			defer close(split.rest)
			_, _ = io.ReadFull(secure, make([]byte, 1))
		}()
		split.armed = true
		_, _ = io.WriteString(secure, "whole")
		_, _ = io.Copy(io.Discard, c)
	})
	got := tlsBench(t, "--port", port, "--ca", ca.file, "--verify", "broker.test",
		"open", "read-briefly=9", "send=x", "read=9")
	wantLines(t, got, "open: 0 ", "read-briefly=9: -2", "send=x: 1", "read=9: whole")
}

// Spec 04 section 6: without tls the port passes everything through.
func TestTLSPassesThrough(t *testing.T) {
	ca := newAuthority(t, "test authority")
	port := serveTCP(t, func(c net.Conn) { _, _ = io.Copy(c, c) })
	got := tlsBench(t, "--port", port, "--ca", ca.file, "open-plain", "echo=20000", "close", "read=1")
	wantLines(t, got, "open-plain: 0 ", "echo=20000: same 0", "close: done", "read=1: -3")
}

// Spec 04 section 6: trust without a certificate in it is refused at init.
func TestTLSRefusesBadTrust(t *testing.T) {
	wantLines(t, tlsBench(t, "open"), "init: -1 one of ca_pem and trust is required")
	for _, text := range []string{"", "no certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"} {
		file := filepath.Join(t.TempDir(), "ca.pem")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		wantLines(t, tlsBench(t, "--ca", file, "open"), "init: -1 no certificate in ca_pem")
	}
}
