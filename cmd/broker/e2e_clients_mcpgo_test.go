//lint:file-ignore SA1019 clients of today use what the newest revision deprecates

package main_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// Rows 44 to 46, spec 01 5: mcp-go over every transport it has. Its SSE transport
// takes no requests, so that client declares no capability and is never asked.
func TestMCPGoEveryTransport(t *testing.T) {
	b := relayingBroker(t)
	answers := []client.ClientOption{client.WithSamplingHandler(answering{}), client.WithElicitationHandler(answering{})}
	unasked := fullVisit("")
	refused := `calling "%s": Method not found: the client did not declare the capability for %[1]s`
	unasked.Asked, unasked.Confirmed = fmt.Sprintf(refused, sampling), fmt.Sprintf(refused, elicitation)
	unasked.Carried = map[string]string{}
	for _, tt := range []struct {
		name      string
		want      visit
		options   []client.ClientOption
		transport func(slot string, tp *tap) (transport.Interface, error)
	}{
		{"http", fullVisit("POST"), answers, func(slot string, tp *tap) (transport.Interface, error) {
			return transport.NewStreamableHTTP(b.mcp(slot), transport.WithHTTPBasicClient(tp.client()), transport.WithContinuousListening())
		}},
		{"sse", unasked, nil, func(slot string, tp *tap) (transport.Interface, error) {
			return transport.NewSSE(b.sse(slot), transport.WithHTTPClient(tp.client()))
		}},
		{"bridge", fullVisit(""), answers, func(slot string, _ *tap) (transport.Interface, error) {
			path, args := b.bridge(slot)
			return transport.NewStdio(path, []string{"GORACE=atexit_sleep_ms=0"}, args...), nil // mcp-go waits 2 s for its end
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			slot, tp := "mcp-go-"+tt.name, newTap(t)
			serveWorkshop(t, b.direct(slot))
			way, err := tt.transport(slot, tp)
			if err != nil {
				t.Fatal(err)
			}
			got := visitMCPGo(t, way, tt.options...)
			if tt.want.Carried != nil {
				got.Carried = tp.carried()
			}
			expectVisit(t, got, tt.want)
		})
	}
}

// Design decision 12: without the option that opens a stream of its own mcp-go asks
// for the newest revision, and takes the one there is.
func TestMCPGoFallsBack(t *testing.T) {
	b := startBroker(t)
	serveWorkshop(t, b.direct("workshop"))
	tp := newTap(t)
	way, err := transport.NewStreamableHTTP(b.mcp("workshop"), transport.WithHTTPBasicClient(tp.client()))
	if err != nil {
		t.Fatal(err)
	}
	c := client.NewClient(way)
	t.Cleanup(func() { _ = c.Close() })
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	met, err := c.Initialize(t.Context(), hello)
	if err != nil || met.ProtocolVersion != "2025-11-25" {
		t.Fatalf("initialize: %+v, %v", met, err)
	}
	if got := useMCPGo(t, c, "echo", "hello"); got != "hello" {
		t.Errorf("echo said %q", got)
	}
}

// answering is a client's person and model.
type answering struct{}

func (answering) CreateMessage(_ context.Context, r mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	var said string
	switch c := r.Messages[0].Content.(type) {
	case mcp.TextContent:
		said = c.Text
	case map[string]any:
		said, _ = c["text"].(string)
	}
	answer := mcp.SamplingMessage{Role: "assistant", Content: mcp.TextContent{Type: "text", Text: "sampled: " + said}}
	return &mcp.CreateMessageResult{Model: "m", SamplingMessage: answer}, nil
}

func (answering) Elicit(context.Context, mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	answer := mcp.ElicitationResponse{Action: mcp.ElicitationResponseActionAccept, Content: map[string]any{"name": "Ann"}}
	return &mcp.ElicitationResult{ElicitationResponse: answer}, nil
}

// visitMCPGo does with mcp-go all there is to do in a workshop.
func visitMCPGo(t *testing.T, way transport.Interface, options ...client.ClientOption) visit {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := client.NewClient(way, options...)
	if err := c.Start(ctx); err != nil {
		t.Fatalf("start: %v", err)
	}
	steps, updates := make(chan float64, 8), make(chan string, 8)
	c.OnNotification(func(n mcp.JSONRPCNotification) {
		switch n.Method {
		case "notifications/progress":
			steps <- n.Params.AdditionalFields["progress"].(float64)
		case "notifications/resources/updated":
			updates <- n.Params.AdditionalFields["uri"].(string)
		}
	})
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	hello.Params.ClientInfo = mcp.Implementation{Name: "mcp-go", Version: "1.0.0"}
	met, err := c.Initialize(ctx, hello)
	if err != nil {
		t.Fatalf("initialize: %v", err)
	}
	v := visit{Server: met.ServerInfo.Name, Revision: met.ProtocolVersion}
	list, err := c.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		t.Fatalf("list tools: %v", err)
	}
	for _, tool := range list.Tools {
		v.Tools = append(v.Tools, tool.Name)
	}
	use := func(tool, say string) string { return useMCPGo(t, c, tool, say) }
	v.Echo = use("echo", "héllo <&>")
	v.Progress, v.Counted = count(t, use, steps)
	watched := mcp.SubscribeParams{URI: level}
	if err := c.Subscribe(ctx, mcp.SubscribeRequest{Params: watched}); err != nil {
		t.Fatalf("subscribe: %v", err)
	}
	use("raise", "")
	v.Updated = within(t, updates, "no update")
	if err := c.Unsubscribe(ctx, mcp.UnsubscribeRequest{Params: mcp.UnsubscribeParams(watched)}); err != nil {
		t.Errorf("unsubscribe: %v", err)
	}
	v.Asked, v.Confirmed = use("ask", "who?"), use("confirm", "sure?")
	if err := c.Close(); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("close: %v", err)
	}
	return v
}

func useMCPGo(t *testing.T, c *client.Client, tool, say string) string {
	t.Helper()
	var r mcp.CallToolRequest
	r.Params.Name, r.Params.Arguments = tool, map[string]any{"text": say}
	r.Params.Meta = &mcp.Meta{ProgressToken: "token of " + tool}
	answer, err := c.CallTool(t.Context(), r)
	if err != nil {
		t.Fatalf("call %s: %v", tool, err)
	}
	return answer.Content[0].(mcp.TextContent).Text
}
