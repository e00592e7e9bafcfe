package mcpbroker_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"mcpbroker"
	"mcpbroker/provider"
)

// A program that embeds a broker, publishes a tool of its own, and is called by
// an MCP client like any other server.
func Example() {
	ctx := context.Background()
	b, err := mcpbroker.New(mcpbroker.WithHost("127.0.0.1"), mcpbroker.WithPort(0))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := b.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = b.Stop(ctx) }()

	srv := provider.NewServer("greeter", "1.0.0")
	srv.AddTool(provider.Tool{Name: "greet"}, func(_ context.Context, call *provider.Call) (*provider.Result, error) {
		var args struct{ Name string }
		if err := call.Decode(&args); err != nil {
			return nil, err
		}
		return provider.Text("Hello, " + args.Name + "!"), nil
	})
	serving, stop := context.WithCancel(ctx)
	served := make(chan error)
	attached := make(chan struct{})
	go func() {
		served <- srv.Serve(serving, func(ev provider.Events) provider.Transport {
			open := ev.Open
			ev.Open = func() {
				if open != nil {
					open()
				}
				close(attached)
			}
			return provider.NewLoopback("greeter", b, ev)
		})
	}()
	<-attached

	endpoint := fmt.Sprintf("http://%s/greeter/mcp", b.Addr())
	session, _ := post(endpoint, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"example","version":"1"}}}`)
	_, answer := post(endpoint, session, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"greet","arguments":{"name":"Ada"}}}`)
	fmt.Println(answer)

	stop()
	fmt.Println("served:", <-served)
	// Output:
	// {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"Hello, Ada!"}]}}
	// served: <nil>
}

// post sends one message to a Streamable HTTP endpoint.
func post(endpoint, session, message string) (newSession, answer string) {
	r, err := http.NewRequest(http.MethodPost, endpoint, bytes.NewBufferString(message))
	if err != nil {
		return "", err.Error()
	}
	r.Close = true
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err.Error()
	}
	return resp.Header.Get("Mcp-Session-Id"), string(body)
}
