package main

import (
	"testing"
)

// The flag wins over MCP_BROKER_URL, that over the configuration.
func TestAddress(t *testing.T) {
	tests := []struct {
		name, flag, toml string
		environ          []string
		base, endpoint   string
		err              string
	}{
		{name: "defaults", base: "http://127.0.0.1:3000", endpoint: "http://127.0.0.1:3000/a%2Fb/mcp"},
		{name: "flag", flag: "https://h/x/", environ: []string{envURL + "=http://e"}, base: "https://h/x", endpoint: "https://h/x/a%2Fb/mcp"},
		{name: "environment", environ: []string{envURL + "=http://e:1"}, toml: "port = 4000", base: "http://e:1", endpoint: "http://e:1/a%2Fb/mcp"},
		{name: "blank variable", environ: []string{envURL + "= "}, toml: "port = 4000", base: "http://127.0.0.1:4000", endpoint: "http://127.0.0.1:4000/a%2Fb/mcp"},
		{name: "variable of the configuration", environ: []string{"MCP_BROKER_PORT=4001"}, base: "http://127.0.0.1:4001", endpoint: "http://127.0.0.1:4001/a%2Fb/mcp"},
		{name: "path", toml: "host = 'h'\npaths.mcp = '/m'", base: "http://h:3000", endpoint: "http://h:3000/a%2Fb/m"},
		{name: "all interfaces", toml: "host = '0.0.0.0'", base: "http://127.0.0.1:3000", endpoint: "http://127.0.0.1:3000/a%2Fb/mcp"},
		{name: "all interfaces, IPv6", toml: "host = '::'", base: "http://localhost:3000", endpoint: "http://localhost:3000/a%2Fb/mcp"},
		{name: "IPv6", toml: "host = '::1'", base: "http://[::1]:3000", endpoint: "http://[::1]:3000/a%2Fb/mcp"},
		{name: "TLS", toml: "tls.cert = 'c.pem'\ntls.key = 'k.pem'", base: "https://localhost:3000", endpoint: "https://localhost:3000/a%2Fb/mcp"},
		{name: "any port", toml: "port = 0", err: "the configuration lets the broker take any free port; name its address with --url or MCP_BROKER_URL"},
		{name: "bad flag", flag: "h:3000", err: `"h:3000" must begin with http:// or https://`},
		{name: "bad variable", environ: []string{envURL + "=h"}, err: `MCP_BROKER_URL: "h" must begin with http:// or https://`},
		{name: "bad file", toml: "prot = 1", err: "the configuration does not say where the broker is; name it with --url or MCP_BROKER_URL\n" +
			`broker.toml:1:1: unknown key "prot" (did you mean "port"?)`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.environ = tt.environ
			if tt.toml != "" {
				writeFile(t, "broker.toml", tt.toml+"\n")
			}
			at, err := b.address(tt.flag)
			if err != nil || tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Errorf("error %v, want %s", err, tt.err)
				}
				return
			}
			endpoint, err := at.endpoint("a/b")
			if err != nil || at.base != tt.base || endpoint != tt.endpoint {
				t.Errorf("base %q, endpoint %q, error %v", at.base, endpoint, err)
			}
			if wantsCert := tt.name == "TLS"; (at.cert == "c.pem") != wantsCert {
				t.Errorf("trusts %q", at.cert)
			}
		})
	}
}
