package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"
)

// served is a Server on a Direct, and the broker's end of it.
type served struct {
	*peer
	broker *broker
	log    *logbook
	result chan error
	cancel context.CancelFunc
}

func serve(t *testing.T, s *Server) *served {
	t.Helper()
	b := newBroker(t)
	log := newLogbook()
	s.Logger = log.logger()
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() {
		result <- s.Serve(ctx, func(ev Events) Transport {
			return NewDirect(b.url("/provider/demo"), ev, WithLogger(log.logger()))
		})
	}()
	t.Cleanup(cancel)
	return &served{peer: b.accept(), broker: b, log: log, result: result, cancel: cancel}
}

// end cancels Serve, which closes the socket normally and returns nil.
func (s *served) end() {
	s.t.Helper()
	s.cancel()
	s.expectClose(websocket.StatusNormalClosure)
	if err := receive(s.t, s.result); err != nil {
		s.t.Errorf("Serve: %v", err)
	}
}

func demoServer() *Server {
	s := NewServer("demo", "1.2.3")
	s.AddTool(Tool{Name: "echo", Title: "Echo", Description: "says <it> again",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)},
		func(_ context.Context, call *Call) (*Result, error) {
			var args struct{ Text string }
			if err := call.Decode(&args); err != nil {
				return nil, err
			}
			return Text(args.Text), nil
		})
	s.AddTool(Tool{Name: "fail"}, func(context.Context, *Call) (*Result, error) {
		return nil, errors.New("valve <7> is stuck")
	})
	s.AddTool(Tool{Name: "panic"}, func(context.Context, *Call) (*Result, error) { panic("oops") })
	s.AddTool(Tool{Name: "nothing"}, func(context.Context, *Call) (*Result, error) { return nil, nil })
	s.AddTool(Tool{Name: "rich"}, func(context.Context, *Call) (*Result, error) {
		return &Result{
			Content:    []Content{{Type: "image", Data: []byte{1, 2, 3}, MIMEType: "image/png"}, {Text: ""}},
			Structured: json.RawMessage(`{"n":12345678901234567890}`),
		}, nil
	})
	s.AddTool(Tool{Name: "meta"}, func(_ context.Context, call *Call) (*Result, error) {
		return Text(call.Tool, string(call.Arguments), string(call.Meta)), nil
	})
	return s
}

// Exact answers, ids echoed byte for byte.
func TestServerAnswers(t *testing.T) {
	const tools = `{"name":"echo","title":"Echo","description":"says <it> again","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}},` +
		`{"name":"fail","inputSchema":{"type":"object"}},{"name":"panic","inputSchema":{"type":"object"}},` +
		`{"name":"nothing","inputSchema":{"type":"object"}},{"name":"rich","inputSchema":{"type":"object"}},{"name":"meta","inputSchema":{"type":"object"}}`
	tests := []struct{ name, in, want string }{
		{"ping", `{"jsonrpc":"2.0","id":"brk-1","method":"ping"}`, `{"jsonrpc":"2.0","id":"brk-1","result":{}}`},
		{"large id", `{"jsonrpc":"2.0","id":12345678901234567890,"method":"ping"}`, `{"jsonrpc":"2.0","id":12345678901234567890,"result":{}}`},
		{"escaped id", `{"jsonrpc":"2.0","id":"\u0061<&é","method":"ping"}`, `{"jsonrpc":"2.0","id":"\u0061<&é","result":{}}`},
		{"fraction id", `{"jsonrpc":"2.0","id":1.50e1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1.50e1,"result":{}}`},
		{"tools/list", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":1,"result":{"tools":[` + tools + `]}}`},
		{"prompts/list", `{"jsonrpc":"2.0","id":1,"method":"prompts/list"}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found: prompts/list"}}`},
		{"resources/list", `{"jsonrpc":"2.0","id":1,"method":"resources/list"}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found: resources/list"}}`},
		{"call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"<hi>"}}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"<hi>"}]}}`},
		{"call without arguments", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":""}]}}`},
		{"bad arguments", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":[]}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"arguments of echo: they must be an object, not an array"}],"isError":true}}`},
		{"bad argument", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":5}}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"arguments of echo: \"Text\" must be a string, not a number"}],"isError":true}}`},
		{"tool error", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fail"}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"valve <7> is stuck"}],"isError":true}}`},
		{"panic", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"panic"}}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error: tool \"panic\" failed unexpectedly"}}`},
		{"nil result", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nothing"}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`},
		{"rich result", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rich"}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"image","data":"AQID","mimeType":"image/png"},{"type":"text","text":""}],"structuredContent":{"n":12345678901234567890}}}`},
		{"raw arguments and meta", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"meta","arguments":{ "n":1.0},"_meta":{"traceparent":"00-x"}}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"meta"},{"type":"text","text":"{ \"n\":1.0}"},{"type":"text","text":"{\"traceparent\":\"00-x\"}"}]}}`},
		{"unknown tool", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nope"}}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unknown tool: nope"}}`},
		{"no params", `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid params: unexpected end of JSON input"}}`},
		{"not JSON", `{"jsonrpc"`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: frame is not JSON"}}`},
		{"batch", `[]`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: frame is not a JSON-RPC message"}}`},
		{"null id", `{"jsonrpc":"2.0","id":null,"method":"ping"}`,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: id must be a string or a number"}}`},
	}
	s := serve(t, demoServer())
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			// Neither an answer nor a notification is answered.
			s.send(`{"jsonrpc":"2.0","id":"x","result":{}}`)
			s.send(`{"jsonrpc":"2.0","method":"notifications/unheard-of"}`)
			s.send(tt.in)
			s.expect(tt.want)
		})
	}
	if got := len(s.log.containing("tool panicked tool=panic panic=oops")); got != 1 {
		t.Errorf("want one log line about the panic, got %d", got)
	}
	s.end()
}

func TestServerInitialize(t *testing.T) {
	tests := []struct{ params, want string }{
		{`{"protocolVersion":"2024-11-05"}`, "2024-11-05"},
		{`{"protocolVersion":"2025-03-26"}`, "2025-03-26"},
		{`{"protocolVersion":"2025-06-18"}`, "2025-06-18"},
		{`{"protocolVersion":"2025-11-25"}`, "2025-11-25"},
		{`{"protocolVersion":"2099-01-01"}`, "2025-11-25"},
		{`[]`, "2025-11-25"},
	}
	s := serve(t, NewServer("demo", "1.2.3"))
	for _, tt := range tests {
		s.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":` + tt.params + `}`)
		s.expect(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"` + tt.want +
			`","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"demo","version":"1.2.3"}}}`)
	}
	s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	s.expect(`{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}`)
	s.end()
}

// A tool added or replaced while serving is announced and offered.
func TestServerToolsChange(t *testing.T) {
	srv := NewServer("demo", "1.2.3")
	tool := func(text string) ToolFunc {
		return func(context.Context, *Call) (*Result, error) { return Text(text), nil }
	}
	s := serve(t, srv)
	s.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
	if _, _, err := s.conn.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "two"} {
		srv.AddTool(Tool{Name: "t"}, tool(text))
		s.expect(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`)
		s.expect(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + text + `"}]}}`)
	}
	s.end()
}

func TestAddToolPanics(t *testing.T) {
	ok := func(context.Context, *Call) (*Result, error) { return nil, nil }
	tests := []struct {
		tool Tool
		f    ToolFunc
		want string
	}{
		{Tool{}, ok, "provider: AddTool: tool without a name"},
		{Tool{Name: "t"}, nil, `provider: AddTool "t": nil function`},
		{Tool{Name: "t", InputSchema: json.RawMessage(`[]`)}, ok, `provider: AddTool "t": InputSchema is not a JSON object`},
		{Tool{Name: "t", InputSchema: json.RawMessage(`null`)}, ok, `provider: AddTool "t": InputSchema is not a JSON object`},
	}
	for _, tt := range tests {
		func() {
			defer func() {
				if got := recover(); got != tt.want {
					t.Errorf("want panic %q, got %v", tt.want, got)
				}
			}()
			NewServer("demo", "1").AddTool(tt.tool, tt.f)
		}()
	}
}

// Progress carries the caller's token unchanged, and only when there is one.
func TestServerProgress(t *testing.T) {
	srv := NewServer("demo", "1.2.3")
	kept := make(chan *Call, 1)
	srv.AddTool(Tool{Name: "t"}, func(ctx context.Context, call *Call) (*Result, error) {
		if err := call.Progress(ctx, 1, 2, "half"); err != nil {
			return nil, err
		}
		if err := call.Progress(ctx, 1.5, 0, ""); err != nil {
			return nil, err
		}
		kept <- call
		return Text("done"), nil
	})
	s := serve(t, srv)
	for _, token := range []string{`"tok<1>"`, `12345678901234567890`} {
		s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":` + token + `}}}`)
		s.expect(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + token + `,"progress":1,"total":2,"message":"half"}}`)
		s.expect(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + token + `,"progress":1.5}}`)
		s.expect(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}]}}`)
		if err := receive(t, kept).Progress(t.Context(), 2, 2, ""); !errors.Is(err, ErrCallEnded) {
			t.Errorf("progress after the answer: want ErrCallEnded, got %v", err)
		}
	}
	s.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}`)
	s.expect(`{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"done"}]}}`)
	s.end()
}

// blocker is a tool that runs until its context ends.
type blocker struct {
	started chan string
	ended   chan error
}

func blockingServer() (*Server, *blocker) {
	b := &blocker{started: make(chan string, 128), ended: make(chan error, 128)}
	s := NewServer("demo", "1.2.3")
	s.AddTool(Tool{Name: "block"}, func(ctx context.Context, call *Call) (*Result, error) {
		b.started <- string(call.Arguments)
		<-ctx.Done()
		b.ended <- ctx.Err()
		return Text("too late"), nil
	})
	return s, b
}

func blockCall(id string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"block","arguments":{}}}`
}

// notifications/cancelled ends exactly the named call, which is not answered.
func TestServerCancel(t *testing.T) {
	srv, b := blockingServer()
	s := serve(t, srv)
	s.send(blockCall(`"a"`))
	receive(t, b.started)
	s.send(blockCall(`"a"`))
	s.expect(`{"jsonrpc":"2.0","id":"a","error":{"code":-32600,"message":"Invalid request: a call with this id is running"}}`)
	s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"b"}}`)
	s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled"}`)
	s.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	s.expect(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	if len(b.ended) != 0 {
		t.Fatal("another call was cancelled")
	}
	s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a","reason":"user"}}`)
	if err := receive(t, b.ended); !errors.Is(err, context.Canceled) {
		t.Errorf("want context.Canceled, got %v", err)
	}
	s.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	s.expect(`{"jsonrpc":"2.0","id":2,"result":{}}`)
	s.end()
}

// The 65th call is answered with an error; one that ends makes room.
func TestServerCallBound(t *testing.T) {
	srv, b := blockingServer()
	s := serve(t, srv)
	for i := range MaxConcurrentCalls {
		s.send(blockCall(fmt.Sprint(i)))
		receive(t, b.started)
	}
	s.send(blockCall("64"))
	s.expect(`{"jsonrpc":"2.0","id":64,"error":{"code":-32000,"message":"Server busy: 64 calls are running; try again later"}}`)
	s.end()
	if got := len(b.ended); got != MaxConcurrentCalls {
		t.Errorf("Serve returned with %d of %d calls ended", got, MaxConcurrentCalls)
	}
}

// A refusal, or any end of a Direct, ends Serve with its reason.
func TestServeEndsWithItsTransport(t *testing.T) {
	srv, b := blockingServer()
	s := serve(t, srv)
	s.send(blockCall("1"))
	receive(t, b.started)
	s.close(websocket.StatusPolicyViolation, "no")
	var ce *CloseError
	if err := receive(t, s.result); !errors.As(err, &ce) || *ce != (CloseError{Code: 1008, Reason: "no"}) {
		t.Errorf("want the refusal, got %v", err)
	}
	if got := len(b.ended); got != 1 {
		t.Errorf("Serve returned with %d of 1 calls ended", got)
	}

	s = serve(t, NewServer("demo", "1"))
	s.close(websocket.StatusNormalClosure, "")
	if err := receive(t, s.result); !errors.Is(err, ErrClosed) {
		t.Errorf("after a normal close: want ErrClosed, got %v", err)
	}
}

// On a tunnel Serve lives on: calls end with the socket, unanswered, and the
// next socket is served.
func TestServeOverTunnel(t *testing.T) {
	b := newBroker(t)
	srv, blocked := blockingServer()
	srv.Logger = newLogbook().logger()
	tun := NewTunnel(b.url("/providers"), WithLogger(newLogbook().logger()))
	var opens atomic.Int32
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	result := make(chan error, 1)
	closed := make(chan struct{}, 4)
	go func() {
		result <- srv.Serve(ctx, func(ev Events) Transport {
			ev.Open = func() { opens.Add(1) }
			closing := ev.Close
			ev.Close = func() { closing(); closed <- struct{}{} }
			return tun.Provider("a", ev)
		})
	}()
	p := b.accept()
	p.expect(announcement("a"))
	p.send(envelope("a", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"held"}}`))
	p.send(envelope("a", blockCall("1")))
	receive(t, blocked.started)
	p.drop()
	receive(t, closed)
	receive(t, blocked.ended)

	other := tun.Provider("b", Events{}) // dials at once
	connect(t, other)
	p = b.accept()
	p.expect(announcement("a"))
	p.expect(announcement("b"))
	p.send(envelope("a", `{"jsonrpc":"2.0","id":2,"method":"ping"}`))
	p.expect(envelope("a", `{"jsonrpc":"2.0","id":2,"result":{}}`))
	cancel()
	if err := receive(t, result); err != nil {
		t.Errorf("Serve: %v", err)
	}
	if got := opens.Load(); got != 2 {
		t.Errorf("want 2 opens, got %d", got)
	}
}

func TestServeOverLoopback(t *testing.T) {
	a := newAttacher()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	result := make(chan error, 1)
	go func() {
		result <- demoServer().Serve(ctx, func(ev Events) Transport { return NewLoopback("clock", a, ev) })
	}()
	receive(t, a.peers).Deliver([]byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	a.expect(t, "attach clock nil", `send {"jsonrpc":"2.0","id":1,"result":{}}`)
	cancel()
	if err := receive(t, result); err != nil {
		t.Errorf("Serve: %v", err)
	}
	a.expect(t, "close")
}

// Serve reports why it could not connect, and nothing when it was cancelled.
func TestServeConnectFails(t *testing.T) {
	b := newBroker(t)
	url := b.url("/provider/demo")
	b.srv.Close()
	direct := func(ev Events) Transport { return NewDirect(url, ev) }
	err := NewServer("demo", "1").Serve(context.Background(), direct)
	if err == nil || !strings.HasPrefix(err.Error(), "serve demo: connect provider: dial "+url+": ") {
		t.Errorf("broker is down: got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := NewServer("demo", "1").Serve(ctx, direct); err != nil {
		t.Errorf("cancelled: got %v", err)
	}
}
