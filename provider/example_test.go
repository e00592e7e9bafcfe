package provider_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/coder/websocket"

	"mcpbroker/provider"
)

// A server with one tool, published into the slot "demo" until the context ends.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	brokerURL := oneCallBroker(cancel)

	srv := provider.NewServer("demo", "1.0.0")
	srv.AddTool(provider.Tool{Name: "greet", Description: "Greets a person"},
		func(ctx context.Context, call *provider.Call) (*provider.Result, error) {
			var args struct{ Name string }
			if err := call.Decode(&args); err != nil {
				return nil, err
			}
			return provider.Text("Hello, " + args.Name + "!"), nil
		})
	err := srv.Serve(ctx, func(ev provider.Events) provider.Transport {
		return provider.NewDirect(brokerURL+"/provider/demo", ev, provider.WithAggregate(true))
	})
	fmt.Println("served:", err)
	// Output:
	// {"jsonrpc":"2.0","method":"notifications/register","params":{"aggregate":true}}
	// {"jsonrpc":"2.0","id":"brk-1","result":{"content":[{"type":"text","text":"Hello, Ada!"}]}}
	// served: <nil>
}

// oneCallBroker stands in for a broker: it calls the tool once, prints what the
// provider sends and calls done.
func oneCallBroker(done func()) (url string) {
	var srv *httptest.Server
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer func() { go srv.Close() }()
		defer conn.CloseNow()
		ctx := context.Background()
		show := func() {
			_, frame, err := conn.Read(ctx)
			if err != nil {
				fmt.Println(err)
			}
			fmt.Println(string(frame))
		}
		show()
		call := `{"jsonrpc":"2.0","id":"brk-1","method":"tools/call","params":{"name":"greet","arguments":{"name":"Ada"}}}`
		if err := conn.Write(ctx, websocket.MessageText, []byte(call)); err != nil {
			fmt.Println(err)
		}
		show()
		done()
		// Reads until the provider has closed.
		_, _, _ = conn.Read(ctx)
	}))
	return "ws" + strings.TrimPrefix(srv.URL, "http")
}
