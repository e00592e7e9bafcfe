package remote

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"testing"
)

// What a network failure comes to is told to clients, without name servers, proxies and
// other settings of the broker's machine.
func TestSentences(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 9), Port: 3128}, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for _, c := range []struct {
		err  error
		want string
	}{
		{io.EOF, "the server closed the connection"},
		{fmt.Errorf("read: %w", io.ErrUnexpectedEOF), "the server closed the connection"},
		{refused, "dial tcp 10.0.0.9:3128: connect: connection refused"},
		{&net.OpError{Op: "proxyconnect", Net: "tcp", Err: refused}, "the proxy that the broker's environment names cannot be reached: connection refused"},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "far.example", Server: "10.0.0.2:53", IsNotFound: true}}, "the host far.example is not known"},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Err: "read udp 10.0.0.5:5353->10.0.0.2:53: i/o timeout", Name: "far.example", Server: "10.0.0.2:53", IsTimeout: true}},
			"the host far.example could not be looked up in time"},
		{&net.DNSError{Err: "server misbehaving", Name: "far.example", Server: "10.0.0.2:53"}, "the host far.example could not be looked up"},
	} {
		equal(t, c.err.Error(), sentence(c.err), c.want)
	}
}

// A proxy with credentials in it is not repeated where it does not parse.
func TestProxyOfEnvironment(t *testing.T) {
	told := func(u *url.URL, err error) string {
		_, err = quietly(func(*http.Request) (*url.URL, error) { return u, err })(nil)
		return fmt.Sprint(err)
	}
	equal(t, "no url", told(nil, errors.New(`invalid proxy address "http://me:pw@proxy:x"`)),
		"the proxy that the broker's environment names (HTTP_PROXY, HTTPS_PROXY) is no url")
	equal(t, "none", told(nil, nil), "<nil>")
}
