package bridge_test

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"mcpbroker/actors/wire"
	"mcpbroker/egress/bridge"
)

// At the end of the input an answer that does not come is given up after the
// grace, with an error for its request.
func TestGrace(t *testing.T) {
	f := newFake(t, legacy(func(_ http.ResponseWriter, r request) { <-r.Context().Done() }))
	h := startWith(t, bridge.Config{URL: f.URL, Grace: 50 * time.Millisecond})
	h.send(initialize)
	h.expect(welcome)
	h.send(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
	if err := h.end(); err != nil {
		t.Error(err)
	}
	h.expect(string(wire.SessionClosed().Response([]byte("1"))))
}

// The input may end while its first message is still on its way.
func TestGraceDuringInitialize(t *testing.T) {
	f := newFake(t, func(_ http.ResponseWriter, r request) { <-r.Context().Done() })
	h := startWith(t, bridge.Config{URL: f.URL, Grace: 50 * time.Millisecond})
	h.send(initialize)
	h.send(initialized)
	if err := h.end(); err != nil {
		t.Error(err)
	}
	h.expect(string(wire.SessionClosed().Response([]byte("0"))))
}

// failing is an output that is gone.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// A host that does not take its answers any more has gone.
func TestOutputFails(t *testing.T) {
	in, w := io.Pipe()
	defer w.Close()
	done := make(chan error, 1)
	go func() { done <- bridge.Run(t.Context(), bridge.Config{URL: "http://127.0.0.1:1/s/mcp"}, in, failing{}) }()
	_, _ = io.WriteString(w, "junk\n")
	if err := receive(t, done, "end"); err == nil || err.Error() != "write to the host: broken pipe" {
		t.Errorf("Run: %v", err)
	}
}

// A fault of the input is reported.
func TestInputFails(t *testing.T) {
	in, w := io.Pipe()
	_ = w.CloseWithError(errors.New("torn"))
	err := bridge.Run(t.Context(), bridge.Config{URL: "http://127.0.0.1:1/s/mcp"}, in, io.Discard)
	if err == nil || err.Error() != "read from the host: torn" {
		t.Errorf("Run: %v", err)
	}
}

func TestEndpoint(t *testing.T) {
	for _, c := range []struct{ base, slot, want, problem string }{
		{"http://localhost:3000", "demo", "http://localhost:3000/demo/mcp", ""},
		{"https://broker.example/mount/", "a/b é%zz", "https://broker.example/mount/a%2Fb%20%C3%A9%25zz/mcp", ""},
		{"http://[::1]:3000", "_all", "http://[::1]:3000/_all/mcp", ""},
		{"localhost:3000", "s", "", `"localhost:3000" must begin with http:// or https://`},
		{"ws://h", "s", "", `"ws://h" must begin with http:// or https://`},
		{"", "s", "", `"" must begin with http:// or https://`},
		{"http://", "s", "", `"http://" names no host`},
		{"http://:80", "s", "", `"http://:80" names no host`},
		{"http://h:port", "s", "", `"http://h:port" is not a URL: invalid port ":port" after host`},
		{"http://u:p@h", "s", "", "a URL with credentials is not taken: they would show up in messages"},
		{"http://h?x", "s", "", `"http://h?x" must not have a query or a fragment`},
		{"http://h", "", "", "the slot's name is empty"},
	} {
		got, err := bridge.Endpoint(c.base, c.slot)
		problem := ""
		if err != nil {
			problem = err.Error()
		}
		if got != c.want || problem != c.problem {
			t.Errorf("Endpoint(%q, %q) = %q, %q, want %q, %q", c.base, c.slot, got, problem, c.want, c.problem)
		}
	}
}
