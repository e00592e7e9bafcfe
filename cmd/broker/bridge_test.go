package main

import (
	"strings"
	"testing"
)

// A command line that cannot work is refused before anything is read.
func TestBridgeRefusedCommandLines(t *testing.T) {
	const see = "\nSee 'broker bridge --help'.\n"
	tests := []struct{ args, want string }{
		{"", "broker bridge: name a slot" + see},
		{"a b", "broker bridge: unexpected argument \"b\"" + see},
		{"a --ulr x", "broker bridge: unknown flag --ulr (did you mean --url?)" + see},
		{"a --url localhost:3000", "broker bridge: \"localhost:3000\" must begin with http:// or https://" + see},
		{"--url http:// a", "broker bridge: \"http://\" names no host" + see},
		{"a --wait -1s", "broker bridge: --wait must not be less than 0s" + see},
		{"a --wait soon", "broker bridge: --wait \"soon\" must be a duration, such as 90s or 5m" + see},
		{"a --url http://u:p@h", "broker bridge: a URL with credentials is not taken: they would show up in messages" + see},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			b := newBench(t)
			b.expect(t, b.do(append([]string{"bridge"}, strings.Fields(tt.args)...)...), 1, "", tt.want)
		})
	}
}

// Without a broker every request is answered with where it was looked for; the
// command ends with its input, and well.
func TestBridgeWithoutBroker(t *testing.T) {
	for _, args := range []string{"a%2F --url http://127.0.0.1:1", "a%2F --wait 0s --url http://127.0.0.1:1", "--url=http://127.0.0.1:1/ a%2F"} {
		b := newBench(t)
		b.stdin = strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"initialize"}`)
		const at = "the broker at http://127.0.0.1:1/a%252F/mcp: "
		if code := b.do(append([]string{"bridge"}, strings.Fields(args)...)...); code != 0 {
			t.Errorf("exit code %d", code)
		}
		if want := `{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"Cannot reach ` + at; !strings.HasPrefix(b.out.String(), want) {
			t.Errorf("standard output %q, want %q", b.out, want)
		}
		if want := "[mcp-broker] bridge: cannot reach " + at; !strings.HasPrefix(b.err.String(), want) {
			t.Errorf("standard error %q, want %q", b.err, want)
		}
	}
}
