package wsclient_test

import (
	"net/http"
	"strings"
	"testing"

	"mcpbroker"
	"mcpbroker/brokertest"
)

// W6 of spec 01 1.1, 8.1: any other target is a client of the slot it spells,
// with one connect line; a mistyped provider URL carries the hint.
func TestTargets(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{Plain: true})
	const hint = ` -- this looks like a provider URL but was accepted as a CLIENT slot; providers connect to /providers (MultiplexTransport) or to /provider/<name> (DirectTransport)`
	for _, c := range []struct{ target, slot, hint string }{
		{"/", "", ""},
		{"/x", "x", ""},
		{"/a/b/c", "a/b/c", ""},
		{"//x", "/x", ""},
		{"/x/", "x/", ""},
		{"/%zz", "%zz", ""},
		{"/%ff", "%ff", ""},
		{"/a%2Fb?token=1", "a/b", ""},
		{"/%C3%A9+", "é+", ""},
		{"/x/mcp", "x/mcp", ""},
		{"/_all", "_all", ""},
		{"/provider?x=1", "provider", hint},
		{"/providers/", "providers/", hint},
		{"/providers/foo", "providers/foo", hint},
		{"/%70rovider/x", "provider/x", hint},
		{"/provider2", "provider2", ""},
	} {
		client := brokertest.DialRaw(t, b.WSURL()+c.target)
		client.Text(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
		_, got, err := client.Read()
		if err != nil {
			t.Fatalf("%s: %v", c.target, err)
		}
		brokertest.Equal(t, c.target, string(got), `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Provider \"`+c.slot+`\" not connected. Call providers_list on the _broker slot to see which slots are live."}}`)
		line := `[broker] ws connect path="` + c.target + `" role=client slot="` + c.slot + `"`
		if lines := b.Log.Lines(`path="` + c.target + `"`); len(lines) != 1 || lines[0] != line+c.hint {
			t.Errorf("%s: logged %q", c.target, lines)
		}
		client.Drop()
	}
}

// Spec 01 1.3: the first subprotocol is echoed, no extension is negotiated.
func TestHandshake(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	a := b.Refused(t, "/s", "Sec-WebSocket-Protocol: mcp, other", "Sec-WebSocket-Extensions: permessage-deflate")
	if a.Status != http.StatusSwitchingProtocols {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	brokertest.Equal(t, "subprotocol", a.Header.Get("Sec-WebSocket-Protocol"), "mcp")
	brokertest.Equal(t, "extensions", a.Header.Get("Sec-WebSocket-Extensions"), "")
}

// Spec 01 1.3: by default an upgrade is not origin-checked, for any role.
func TestOriginIgnored(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{mcpbroker.WithAllowedOrigins("https://a.example")}})
	for _, target := range []string{"/s", "/provider/s", "/providers"} {
		brokertest.Dial(t, b.WSURL()+target, http.Header{"Origin": {"https://x.example"}})
	}
	b.Connected(t, "s")
}

// F-44: checkUpgradeOrigins refuses with the words of the HTTP endpoints, clients
// and providers alike; no Origin and an allowed one pass.
func TestCheckUpgradeOrigins(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{Plain: true, Configure: []mcpbroker.Option{
		mcpbroker.WithAllowedOrigins("https://a.example"), mcpbroker.WithCheckUpgradeOrigins(true),
	}})
	const text = `Origin "https://x.example" is not allowed on %s. allowedOrigins (MCP_BROKER_ALLOWED_ORIGINS) is compared verbatim, scheme, port and trailing slash included, and holds: https://a.example.`
	for _, target := range []string{"/s", "/provider/s", "/providers", "/provider", "/a%20b?token=1"} {
		endpoint, _, _ := strings.Cut(target, "?")
		refusal := strings.Replace(text, "%s", endpoint, 1)
		a := b.Refused(t, target, "Origin: https://x.example")
		brokertest.Is(t, target, a, 403, failure("invalid_origin", strings.ReplaceAll(refusal, `"`, `\"`)))
		brokertest.Equal(t, "content type", a.Header.Get("Content-Type"), "application/json; charset=utf-8")
		b.Log.Wait(t, `[broker] ws upgrade REFUSED path="`+target+`": `+refusal)
	}
	if list, err := b.Slots(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("F-06: slots %+v, %v", list, err)
	}
	p := brokertest.Dial(t, b.ProviderURL("s"), http.Header{"Origin": {"https://a.example"}})
	b.Connected(t, "s")
	works(t, p, brokertest.Dial(t, b.ClientURL("s"), nil))
}

// F-44 without an allowed origin: every browser page is refused.
func TestCheckUpgradeOriginsDefault(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{mcpbroker.WithCheckUpgradeOrigins(true)}})
	brokertest.Is(t, "/s", b.Refused(t, "/s", "Origin: null"), 403, failure("invalid_origin",
		`Origin \"null\" is not allowed on /s. No origin is allowed by default; pages served by the broker are not exempt. Add the origin to allowedOrigins or MCP_BROKER_ALLOWED_ORIGINS.`))
}
