//lint:file-ignore SA1019 an independent WebSocket implementation judges ours

package ingress_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"nhooyr.io/websocket"

	"mcpbroker"
	"mcpbroker/brokertest"
	"mcpbroker/config"
)

// Spec 01 1.1 W1, W5, section 9 items 11, 13, 23, F-01 and F-02: accepted provider
// targets, the slot each claims, and the one connect line it logs.
func TestProviderTargets(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	for _, c := range []struct{ target, slot string }{
		{"/provider/plain", "plain"},
		{"/provider/a%2Fb", "a/b"},
		{"/provider/%2Fsite-a%2Fline-3", "/site-a/line-3"},
		{"/provider/%zz", "%zz"},
		{"/provider/%", "%"},
		{"/provider/%ff", "%ff"},
		{"/provider/q?token=1", "q"},
		{"/provider/a+b", "a+b"},
		{"/provider/%C3%A9", "é"},
		{"/provider/Case", "Case"},
		{"/provider/case", "case"},
		{"/provider/providers", "providers"},
	} {
		p := brokertest.DialRaw(t, b.WSURL()+c.target)
		b.Connected(t, c.slot)
		line := `[broker] ws connect path="` + c.target + `" role=dedicated-provider slot="` + c.slot + `"`
		if got := b.Log.Lines(line); len(got) != 1 || got[0] != line {
			t.Errorf("%s: connect lines %q, want exactly %q", c.target, got, line)
		}
		p.Drop()
		b.Empty(t, c.slot)
	}
	for _, target := range []string{"/providers", "/providers?x=1"} {
		brokertest.DialRaw(t, b.WSURL()+target)
		b.Log.Wait(t, `[broker] ws connect path="`+target+`" role=multiplex-provider slot="(announced per envelope)"`)
	}
}

// Spec 01 1.1 W2 to W4 and 1.2: refused targets, answered before the handshake.
func TestRefusedTargets(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	for _, c := range []struct {
		target string
		tokens []string
	}{
		{"/provider", []string{`"/provider"`, "/provider/<name>", "/providers", "prefix", "not an endpoint"}},
		{"/provider/", []string{`"/provider/"`, "/provider/<name>", "empty slot name"}},
		{"/provider/?x=1", []string{`"/provider/?x=1"`, "/provider/<name>", "empty slot name"}},
		{"/provider/a/b", []string{`"/provider/a/b"`, "percent-encode", "/provider/a%2Fb"}},
		{"/provider/a/", []string{`"/provider/a/"`, "percent-encode", "/provider/a%2F"}},
		{"/provider/a%20b/c", []string{`"/provider/a%20b/c"`, "percent-encode", "/provider/a%20b%2Fc"}},
	} {
		a := b.Refused(t, c.target)
		if a.Status != http.StatusBadRequest || a.Header.Get("Content-Type") != "text/html" || a.Header.Get("Content-Length") == "" {
			t.Errorf("%s: %d %v", c.target, a.Status, a.Header)
		}
		for _, token := range c.tokens {
			if !strings.Contains(a.Body, token) {
				t.Errorf("%s: body %q lacks %q", c.target, a.Body, token)
			}
		}
		b.Log.Wait(t, `[broker] ws upgrade REFUSED path="`+c.target+`": `+a.Body)
	}
	alive(t, b)
}

// Spec 01 1.6 and section 9 item 21: a changed path moves the endpoint, and the
// diagnosis names the effective one.
func TestProviderPathsMove(t *testing.T) {
	paths := config.Default().Paths
	paths.Provider, paths.Providers = "/in/one", "/in/many"
	b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{mcpbroker.WithPaths(paths)}})

	brokertest.DialRaw(t, b.WSURL()+"/in/one/s")
	b.Connected(t, "s")
	m := brokertest.DialRaw(t, b.WSURL()+"/in/many")
	m.Text(`{"provider":"m","payload":{"jsonrpc":"2.0","method":"notifications/register"}}`)
	b.Connected(t, "m")

	a := b.Refused(t, "/in/one")
	for _, token := range []string{"/in/one/<name>", "/in/many"} {
		if a.Status != http.StatusBadRequest || !strings.Contains(a.Body, token) {
			t.Errorf("/in/one: %d %q, want 400 with %q", a.Status, a.Body, token)
		}
	}
	if b.Refused(t, "/provider/x"); len(b.Log.Lines("dedicated-provider")) != 1 {
		t.Error("the default prefix still admits providers")
	}
}

// Spec 01 1.3: the first subprotocol is echoed, no extension is negotiated, the
// origin of an upgrade is not checked.
func TestHandshakeNegotiation(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	conn, resp, err := websocket.Dial(t.Context(), b.ProviderURL("s"), &websocket.DialOptions{
		Subprotocols:    []string{"mcp", "other"},
		CompressionMode: websocket.CompressionContextTakeover,
		HTTPHeader:      http.Header{"Origin": {"https://elsewhere.example"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	equal(t, "subprotocol", conn.Subprotocol(), "mcp")
	equal(t, "extensions", strings.Join(resp.Header.Values("Sec-WebSocket-Extensions"), ","), "")
}

// Spec 01 1.3: handshakes that are not WebSocket's are answered and closed.
func TestBadHandshakes(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	const ok = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
	for _, c := range []struct {
		name, method, drop, put string
		status                  int
	}{
		{"no key", "GET", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", "", 400},
		{"bad key", "GET", "dGhlIHNhbXBsZSBub25jZQ==", "short", 400},
		{"old version", "GET", "Version: 13", "Version: 7", 400},
		{"other method", "POST", "", "", 405},
	} {
		head := strings.Replace(ok, c.drop, c.put, 1)
		if c.drop == "" {
			head = ok
		}
		a := b.Exchange(t, c.method+" /provider/s HTTP/1.1\r\nHost: x\r\n"+head+"\r\n")
		if a.Status != c.status {
			t.Errorf("%s: status %d, want %d", c.name, a.Status, c.status)
		}
	}
	alive(t, b)
}

// F-02, section 1.1: an absolute-form target is classified by its path.
func TestAbsoluteFormUpgrade(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	u := url.URL{Scheme: "http", Host: b.Host(), Path: "/provider"}
	if a := b.Refused(t, u.String()); a.Status != http.StatusBadRequest || !strings.Contains(a.Body, "not an endpoint") {
		t.Errorf("%s: %d %s", u.String(), a.Status, a.Body)
	}
}
