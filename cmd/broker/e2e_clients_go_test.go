//lint:file-ignore SA1019 clients of today use what the newest revision deprecates

package main_test

import (
	"context"
	"io"
	"os/exec"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Rows 44 to 46, spec 01 5: the official Go client over every transport it has.
func TestGoSDKEveryTransport(t *testing.T) {
	b := relayingBroker(t)
	for _, tt := range []struct {
		name, carrier string
		transport     func(slot string, tp *tap) mcp.Transport
	}{
		{"http", "POST", func(slot string, tp *tap) mcp.Transport {
			return &mcp.StreamableClientTransport{Endpoint: b.mcp(slot), HTTPClient: tp.client()}
		}},
		{"sse", "GET", func(slot string, tp *tap) mcp.Transport {
			return &mcp.SSEClientTransport{Endpoint: b.sse(slot), HTTPClient: tp.client()}
		}},
		{"bridge", "", func(slot string, _ *tap) mcp.Transport {
			path, args := b.bridge(slot)
			return &mcp.CommandTransport{Command: exec.Command(path, args...), TerminateDuration: patience}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			slot, tp := "go-"+tt.name, newTap(t)
			serveWorkshop(t, b.direct(slot))
			got := visitGo(t, tt.transport(slot, tp))
			if tt.carrier != "" {
				got.Carried = tp.carried()
			}
			expectVisit(t, got, fullVisit(tt.carrier))
		})
	}
}

// Spec 01 5.7: the broker's own standard input and output as a transport of the
// official Go client.
func TestGoSDKStdioProvider(t *testing.T) {
	p := newBroker(t, "--port", "0")
	p.cmd.Env = append(p.cmd.Env, "MCP_BROKER_SERVER_REQUESTS=relay", "MCP_BROKER_STDIO_PROVIDER=workshop")
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	reader, writer := io.Pipe()
	p.cmd.Stdout = io.MultiWriter(p.stdout, writer)
	b := runBroker(p)
	go func() {
		<-b.exited
		_ = writer.Close()
	}()
	serveWorkshop(t, b.direct("workshop"))

	expectVisit(t, visitGo(t, &mcp.IOTransport{Reader: reader, Writer: stdin}), fullVisit(""))
	if code := b.exit(patience); code != 0 { // the host has gone
		t.Errorf("exit code %d", code)
	}
}

// visitGo does with the official Go client all there is to do in a workshop.
func visitGo(t *testing.T, transport mcp.Transport) visit {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	steps, updates := make(chan float64, 8), make(chan string, 8)
	client := mcp.NewClient(&mcp.Implementation{Name: "go", Version: "1.0.0"}, visitorOptions(steps, updates))
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	v := visit{Server: session.InitializeResult().ServerInfo.Name, Revision: session.InitializeResult().ProtocolVersion}
	list, err := session.ListTools(ctx, nil)
	if err != nil {
		t.Fatalf("list tools: %v", err)
	}
	for _, tool := range list.Tools {
		v.Tools = append(v.Tools, tool.Name)
	}
	use := func(tool, say string) string {
		r, err := session.CallTool(ctx, call(tool, map[string]any{"text": say}))
		if err != nil {
			t.Fatalf("call %s: %v", tool, err)
		}
		return r.Content[0].(*mcp.TextContent).Text
	}
	v.Echo = use("echo", "héllo <&>")
	v.Progress, v.Counted = count(t, use, steps)
	if err := session.Subscribe(ctx, &mcp.SubscribeParams{URI: level}); err != nil {
		t.Fatalf("subscribe: %v", err)
	}
	use("raise", "")
	v.Updated = within(t, updates, "no update")
	if err := session.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: level}); err != nil {
		t.Errorf("unsubscribe: %v", err)
	}
	v.Asked, v.Confirmed = use("ask", "who?"), use("confirm", "sure?")
	if err := session.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	return v
}

func visitorOptions(steps chan<- float64, updates chan<- string) *mcp.ClientOptions {
	return &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) { steps <- req.Params.Progress },
		ResourceUpdatedHandler:      func(_ context.Context, req *mcp.ResourceUpdatedNotificationRequest) { updates <- req.Params.URI },
		CreateMessageHandler: func(_ context.Context, req *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			said := req.Params.Messages[0].Content.(*mcp.TextContent).Text
			return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: "sampled: " + said}}, nil
		},
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ann"}}, nil
		},
	}
}
