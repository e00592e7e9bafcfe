package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"mcpbroker/brokertest"
)

// demoBroker starts a real one with the demo provider, and runs commands against it.
func demoBroker(t *testing.T) (*brokertest.Broker, func(args ...string) (code int, out, err string)) {
	t.Helper()
	b := brokertest.Start(t, brokertest.Options{})
	stop, err := startDemo(context.Background(), b, slog.New(slog.NewTextHandler(io.Discard, nil)), "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return b, func(args ...string) (int, string, string) {
		bench := newBench(t)
		bench.environ = []string{envURL + "=" + b.URL()}
		code := bench.do(args...)
		return code, bench.out.String(), bench.err.String()
	}
}

// The commands against a real broker. What changes from run to run is left out.
func TestRemoteRealBroker(t *testing.T) {
	b, do := demoBroker(t)
	tests := []struct {
		args string
		code int
		want string // a regular expression
	}{
		{"status", 0, `^mcp-broker \S+ at ` + b.URL() + `, up \d+s\n  bound      127\.0\.0\.1, port \d+, no TLS\n  slots      3, 3 connected\n  providers  1 of 1 connected\n  callers    \d+ over HTTP, 0 over WebSocket\n  pending    \d requests?\n  problems   none\n$`},
		{"status -o json", 0, `^\{"name":"mcp-broker","version":"[^"]+","startedAt":"`},
		{"get slots", 0, `^SLOT +TRANSPORT +FOR +_ALL +CALLERS +PENDING +SUBSCRIPTIONS\n(.*\n)*demo +loopback +\d+s +yes +0 +0 +0\n$`},
		{"get sessions", 0, `^SLOT +HTTP +WEBSOCKET +PENDING +SUBSCRIPTIONS\n(.*\n)*_broker +1 +0 +1 +0\n$`},
		{"get slots -o json", 0, `^\{"count":3,"providers":\[\{"name":"`},
		{"describe slot demo", 0, `^slot "demo"\n  transport      loopback\n  connected      for \d+s, since \S+Z\n  _all           member\n(.*\n)*  clients at     ` + b.MCPURL("demo") + `\n  problems       none\n$`},
		{"diagnose demo", 0, `^mcp-broker \S+, up \d+s: 3 slots, 1 of 1 providers connected, \d requests? pending\n(\nnote: .*\n)*\nproblems: none\n$`},
		{"guide host-config", 0, `^# `},
		{"tools demo", 0, `^NAME +ARGUMENTS +DESCRIPTION\necho +message: string +Returns the message it is given\.\nclock +- +Returns .*\n$`},
		{"tools _broker", 0, `\nbroker_diagnose +slot\?: string +\S.*\n`},
		{"call demo echo message=héllo", 0, `^héllo\n$`},
		{"call _broker provider_status name=demo -o json", 0, `^\{"content":\[\{"type":"text","text":"\{.*"structuredContent":\{"name":"demo","transport":"loopback",.*\},"isError":false\}\n$`},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			code, out, err := do(strings.Fields(tt.args)...)
			if code != tt.code || err != "" || !regexp.MustCompile(tt.want).MatchString(out) {
				t.Errorf("exit code %d, standard error %q, standard output\n%s", code, err, out)
			}
		})
	}
	refused := []struct {
		args, err string
		code      int
	}{
		{"call demo echo", "echo needs the argument \"message\", a string\n", 1},
		{"call demo gone", "Unknown tool", 4},
		{"call nobody echo --timeout 5s", "Provider \"nobody\" not connected (-32000). 'broker get slots' lists the slots there are.\n", 4},
		{"describe slot never", "Unknown provider: \"never\".", 4},
		{"diagnose never", "Unknown slot: \"never\".", 4},
		{"guide gone", "Unknown guide topic \"gone\".", 4},
	}
	for _, tt := range refused {
		t.Run(tt.args, func(t *testing.T) {
			code, out, err := do(strings.Fields(tt.args)...)
			if code != tt.code || out != "" || !strings.Contains(err, tt.err) {
				t.Errorf("exit code %d, standard error %q, standard output %q", code, err, out)
			}
		})
	}
}

// Progress of a real call reaches standard error before its answer.
func TestCallProgressRealBroker(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	p := b.Dedicated(t, "slow")
	bench := newBench(t)
	ended := make(chan int, 1)
	go func() { ended <- bench.do("call", "slow", "work", "n:=3", "--url", b.URL()) }()
	brokertest.Respond(p, p.Receive(), `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"slow","version":"1"}}`)
	p.Receive() // notifications/initialized
	request := p.Receive()
	var call struct {
		Params struct {
			Arguments json.RawMessage
			Meta      struct {
				ProgressToken json.RawMessage `json:"progressToken"`
			} `json:"_meta"`
		}
	}
	if err := json.Unmarshal([]byte(request), &call); err != nil || string(call.Params.Arguments) != `{"n":3}` {
		t.Fatalf("the provider received %s", request)
	}
	p.Send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + string(call.Params.Meta.ProgressToken) + `,"progress":1,"total":3}}`)
	for !strings.Contains(bench.err.String(), "progress 1/3\n") {
		select {
		case <-bench.err.changed:
		case <-time.After(30 * time.Second):
			t.Fatalf("no progress; standard error %q", bench.err)
		}
	}
	brokertest.Respond(p, request, `{"content":[{"type":"text","text":"done"}]}`)
	bench.expect(t, <-ended, 0, "done\n", "progress 1/3\n")
}

// "broker watch" follows a real broker by its updates.
func TestWatchRealBroker(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	bench := newBench(t)
	bench.poll = time.Hour
	ended := make(chan int, 1)
	go func() { ended <- bench.do("watch", "--url", b.URL()) }()
	await := func(line string) {
		t.Helper()
		late := time.After(30 * time.Second)
		for !strings.Contains(bench.out.String(), "  "+line+"\n") {
			select {
			case <-bench.out.changed:
			case <-late:
				t.Fatalf("no line %q; standard output\n%s", line, bench.out)
			}
		}
	}
	await("_broker connected, loopback, joined _all")
	p := b.Dedicated(t, "pump-1")
	await("pump-1 connected, ws")
	p.Close(1000, "")
	await("pump-1 disconnected")
	bench.signal <- sigterm
	if code := <-ended; code != 0 || bench.err.String() != "" {
		t.Errorf("exit code %d, standard error %q", code, bench.err)
	}
}
