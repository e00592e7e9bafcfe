package remote

import (
	"encoding/json"
	"net/netip"
	"testing"
)

func jsonNumber(text string) json.Number { return json.Number(text) }

// Spec 03 4.2: the transport where none is configured.
func TestTransportOf(t *testing.T) {
	for url, want := range map[string]string{
		"ws://h/x": WebSocket, "wss://h/sse": WebSocket,
		"http://h/sse": SSE, "https://h/a/sse//": SSE, "https://h/sse?x=1": SSE,
		"http://h/mcp": StreamableHTTP, "http://h/": StreamableHTTP, "http://h/sse/x": StreamableHTTP, "http://h/xsse": StreamableHTTP,
		"http://h/SSE": StreamableHTTP, ":": StreamableHTTP, "": StreamableHTTP,
	} {
		if got := TransportOf(url); got != want {
			t.Errorf("%q: %s, want %s", url, got, want)
		}
	}
}

// A configuration that cannot work ends the attempt at once, without its url, which may
// hold secrets.
func TestBadConfig(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{URL: "http://h:x-secret/"}, "its url does not parse"},
		{Config{URL: "http://h/", Auth: Auth{ClientCredentials: &ClientCredentials{TokenURL: "/token"}}}, "the token url of its client credentials is none"},
		{Config{URL: "/mcp"}, "its url names no host"},
		{Config{URL: "ftp://h/"}, "transport streamable-http needs a url that begins with http:// or https://"},
		{Config{URL: "ws://h/", Transport: SSE}, "transport sse needs a url that begins with http:// or https://"},
		{Config{URL: "http://h/", Transport: WebSocket}, "transport websocket needs a url that begins with ws:// or wss://"},
		{Config{URL: "http://h/", Transport: "carrier pigeon"}, `transport "carrier pigeon" is not one of streamable-http, sse, websocket`},
	} {
		b := newBroker(t)
		b.start(c.cfg)
		b.expectEnd(c.want, false)
	}
}

func TestPrivate(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1": true, "::1": true, "10.1.2.3": true, "172.16.0.1": true, "192.168.0.1": true, "169.254.169.254": true,
		"100.64.0.1": true, "100.127.255.255": true, "0.0.0.0": true, "::": true, "255.255.255.255": true, "224.0.0.1": true, "198.18.0.1": true,
		"fe80::1": true, "fe80::1%eth0": true, "fd00:ec2::254": true, "fec0::1": true, "ff02::1": true, "2001:db8::1": true,
		"::ffff:127.0.0.1": true, "::127.0.0.1": true, "64:ff9b::a00:1": true, "2002:7f00:1::": true,
		"1.1.1.1": false, "172.32.0.1": false, "100.128.0.1": false, "2606:4700:4700::1111": false, "::ffff:1.1.1.1": false,
	} {
		if got := private(netip.MustParseAddr(address)); got != want {
			t.Errorf("private(%s) = %v", address, got)
		}
	}
}
