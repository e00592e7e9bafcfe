package diagnosis

import (
	"strings"
	"testing"

	"mcpbroker/actors/msg"
)

// One fix for each cause: what is said fits the error an upstream is down with, and
// does not send anybody to a place where nothing is to be found.
func TestCauses(t *testing.T) {
	const (
		ran     = "'broker logs up'"
		nothing = "Nothing was run, so there is no output to look at."
		answers = "The server was reached and answered, but not as an MCP server does."
		elsew   = "The server answers that it is to be found elsewhere"
		reach   = "runs and can be reached from this machine"
	)
	tests := []struct {
		kind, err string
		want      []string
		never     string
	}{
		{"stdio", `command "nope" was not found in PATH (/bin)`, []string{nothing, "[[stdioUpstreams]]"}, ran},
		{"stdio", `command "./nope" does not exist`, []string{nothing}, ran},
		{"stdio", `its directory "/x" cannot be used: no such file or directory`, []string{nothing, "set cwd"}, ran},
		{"bundle", `its directory "/x" cannot be used: no such file or directory`, []string{nothing}, "cwd"},
		{"stdio", `its standard output is not JSON-RPC: "Listening on port 3000"`, []string{"has to be JSON-RPC", "npx server"}, ""},
		{"stdio", "it did not answer initialize within 30s", []string{"startTimeoutSeconds", ran}, ""},
		{"stdio", "it exited with code 3; its stderr ends with: no key", []string{ran, "inheritEnv"}, ""},

		{"bundle", `mcpb bundle "up": missing user_config value: "folder", bundle refused`, []string{"Correct userConfig", "'broker bundle inspect "}, "verify"},
		{"bundle", `mcpb bundle "up": bundle file not found at /x.mcpb, bundle refused`, []string{"set path"}, "verify"},
		{"bundle", `mcpb bundle "up": signature file not found at /x.mcpb.sig, bundle refused`, []string{"set signature", "'broker bundle sign "}, "set path"},
		{"bundle", `mcpb bundle "up": public key file not found at /k, bundle refused`, []string{"publicKey"}, "set path"},
		{"bundle", `mcpb bundle "up": public key at /k cannot be used: it holds a private key, bundle refused`, []string{"publicKey"}, "verify"},
		{"bundle", `mcpb bundle "up": detached signature is invalid for the configured public key, bundle refused`, []string{"'broker bundle verify "}, ran},

		{"sse", "the server answered HTTP 404 Not Found: nothing", []string{answers, "transport"}, reach},
		{"websocket", "the server answered HTTP 405 Method Not Allowed", []string{answers}, reach},
		{"websocket", "the server answered HTTP 200 OK", []string{answers}, reach},
		{"streamable-http", "it did not take initialize: the body is not valid JSON: unexpected character at byte 0: <html>", []string{answers}, reach},
		{"sse", "the server answered GET with something else than an event stream; is it a server of transport streamable-http?", []string{answers}, reach},
		{"streamable-http", "it did not take initialize: the server answered HTTP 301 Moved Permanently: only 307 and 308 to the same origin are followed; correct the url", []string{elsew}, reach},
		{"streamable-http", "it did not take initialize: the server answered HTTP 503 Service Unavailable", []string{"it is tried again by itself"}, answers},
		{"streamable-http", "it cannot be reached: http: server gave HTTP response to HTTPS client", []string{"begin with http:// (or ws://) instead of https://"}, reach},
		{"streamable-http", "it did not take initialize: the server answered HTTP 400 Bad Request: Client sent an HTTP request to an HTTPS server", []string{"begin with https:// (or wss://) instead of http://"}, answers},
		{"streamable-http", `it cannot be reached: net/http: invalid header field value for "X-Tok"`, []string{"Correct headers"}, reach},
		{"streamable-http", "it cannot be reached: tls: failed to verify certificate: x509: certificate signed by unknown authority", []string{"not trusted"}, reach},
		{"streamable-http", "it cannot be reached: the host nope.invalid is not known", []string{"No address was found"}, reach},
		{"streamable-http", "it cannot be reached: dial tcp 127.0.0.1:1: connect: connection refused", []string{reach}, answers},
		{"streamable-http", "it did not answer initialize within 30s", []string{"startTimeoutSeconds", "does not answer"}, reach},
		{"streamable-http", "its url is this broker's own address, localhost:3000: a slot cannot relay to its own broker", []string{"http://localhost:3000/_all/mcp"}, reach},
	}
	for _, tt := range tests {
		for _, gaveUp := range []bool{false, true} {
			f := healthy()
			s, i := f.upstream(tt.kind)
			fails(s, i, 2)
			i.Error, i.GaveUp = tt.err, gaveUp
			found := Diagnose(*f, "up").Problems
			if len(found) != 1 {
				t.Errorf("%s: %d problems", tt.err, len(found))
				continue
			}
			p := found[0]
			for _, want := range append(tt.want, "'broker restart up'") {
				if !strings.Contains(p.Fix, want) {
					t.Errorf("%s %s: want %q in the fix: %s", tt.kind, tt.err, want, p.Fix)
				}
			}
			if tt.never != "" && strings.Contains(p.Fix, tt.never) {
				t.Errorf("%s %s: %q does not fit: %s", tt.kind, tt.err, tt.never, p.Fix)
			}
			if !gaveUp && !strings.HasPrefix(p.Symptom, `Upstream "up" is down: `+tt.err) {
				t.Errorf("symptom %q", p.Symptom)
			}
		}
	}
}

// Whatever the error, there is a fix, and it names the entry of the right list.
func TestEveryCauseFits(t *testing.T) {
	lists := map[string]string{"stdio": "[[stdioUpstreams]]", "bundle": "[[mcpbBundles]]", "sse": "[[mcpServers]]"}
	d := newCase(*healthy(), "")
	for kind, list := range lists {
		i := msg.Instance{Slot: "up", Kind: kind, Target: "x"}
		for n, c := range causes {
			if !c.of(&i) {
				continue
			}
			fix := c.fix(d, &i)
			for other, its := range lists {
				if other != kind && strings.Contains(fix, its) {
					t.Errorf("cause %d of %s names %s: %s", n, kind, its, fix)
				}
			}
			if strings.Contains(fix, "[[") && !strings.Contains(fix, list) || fix == "" || strings.Contains(fix, "%!") {
				t.Errorf("cause %d of %s: %q", n, kind, fix)
			}
		}
	}
}

// A file that is only not taken unasked needs no correction, and one that is wrong does.
func TestRefusedConfigurationFix(t *testing.T) {
	for refused, want := range map[string]string{
		"b.toml is empty, which would remove every upstream (a); SIGHUP applies it": "'kill -HUP PID'",
		`b.toml:3:1: unknown key "prot"`:                                            "'broker check b.toml'",
	} {
		problems := configRefused(&diagnosis{Facts: Facts{Configuration: Configuration{File: "b.toml", Refused: refused}}})
		if len(problems) != 1 || !strings.Contains(problems[0].Fix, want) {
			t.Errorf("%q: want %s in %+v", refused, want, problems)
		}
	}
}
