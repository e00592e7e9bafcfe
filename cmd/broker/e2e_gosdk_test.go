package main_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbroker/provider"
)

// slotTransport lets a server of the official Go SDK occupy a slot.
type slotTransport struct {
	open   func(provider.Events) provider.Transport
	frames chan []byte
	gone   chan struct{}
	once   sync.Once
	slot   provider.Transport
}

func newSlotTransport(open func(provider.Events) provider.Transport) *slotTransport {
	return &slotTransport{open: open, frames: make(chan []byte), gone: make(chan struct{})}
}

func (s *slotTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	s.slot = s.open(provider.Events{
		Message: func(frame []byte) {
			select {
			case s.frames <- frame:
			case <-s.gone:
			}
		},
		Close: s.leave,
	})
	return s, s.slot.Connect(ctx)
}

func (s *slotTransport) leave() { s.once.Do(func() { close(s.gone) }) }

func (s *slotTransport) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case frame := <-s.frames:
		return jsonrpc.DecodeMessage(frame)
	case <-s.gone:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *slotTransport) Write(_ context.Context, m jsonrpc.Message) error {
	frame, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	return s.slot.Send(frame)
}

func (s *slotTransport) Close() error { s.leave(); return s.slot.Close() }

func (s *slotTransport) SessionID() string { return "" }

// toolbox is a server of the Go SDK with the tools the official clients are
// driven through: echo, count (reports progress) and wait (until cancelled).
type toolbox struct {
	server    *mcp.Server
	cancelled chan struct{} // one value per cancelled wait
}

func newToolbox() *toolbox {
	b := &toolbox{server: mcp.NewServer(&mcp.Implementation{Name: "toolbox", Version: "1.0.0"}, nil), cancelled: make(chan struct{}, 8)}
	mcp.AddTool(b.server, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in struct {
		Message string `json:"message"`
	}) (*mcp.CallToolResult, any, error) {
		return text(in.Message), nil, nil
	})
	mcp.AddTool(b.server, &mcp.Tool{Name: "count"}, func(ctx context.Context, req *mcp.CallToolRequest, in struct {
		To int `json:"to"`
	}) (*mcp.CallToolResult, any, error) {
		for i := range in.To {
			if err := progress(ctx, req, i+1); err != nil {
				return nil, nil, err
			}
		}
		return text(fmt.Sprintf("counted to %d", in.To)), nil, nil
	})
	mcp.AddTool(b.server, &mcp.Tool{Name: "wait"}, func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		if err := progress(ctx, req, 1); err != nil {
			return nil, nil, err
		}
		<-ctx.Done()
		b.cancelled <- struct{}{}
		return nil, nil, ctx.Err()
	})
	return b
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

func progress(ctx context.Context, req *mcp.CallToolRequest, done int) error {
	return req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
		ProgressToken: req.Params.GetProgressToken(), Progress: float64(done),
	})
}

// serve occupies a slot until the test ends.
func (b *toolbox) serve(t *testing.T, open func(provider.Events) provider.Transport) {
	t.Helper()
	session, err := b.server.Connect(t.Context(), newSlotTransport(open), nil)
	if err != nil {
		t.Fatalf("serve the toolbox: %v", err)
	}
	t.Cleanup(func() {
		_ = session.Close()
		_ = session.Wait()
	})
}

func (b *toolbox) serveDirect(t *testing.T, url string) {
	t.Helper()
	b.serve(t, func(ev provider.Events) provider.Transport { return provider.NewDirect(url, ev) })
}

func (b *toolbox) awaitCancelled(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	select {
	case <-b.cancelled:
	case <-ctx.Done():
		t.Fatal("the cancellation did not reach the provider")
	}
}

// recorder notes what a client sent over HTTP and how it was answered.
type recorder struct {
	mu   sync.Mutex
	seen []string
	base *http.Transport
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, fmt.Sprintf("%s %s: %d", req.Method, req.Header.Get("Mcp-Protocol-Version"), resp.StatusCode))
	return resp, nil
}

func (r *recorder) has(line string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.seen, line)
}

func connectGo(t *testing.T, url string, o *mcp.ClientOptions) (*mcp.ClientSession, *recorder) {
	t.Helper()
	rec := &recorder{base: &http.Transport{}}
	t.Cleanup(rec.base.CloseIdleConnections)
	client := mcp.NewClient(&mcp.Implementation{Name: "go", Version: "1.0.0"}, o)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: rec}}, nil)
	if err != nil {
		t.Fatalf("connect the Go SDK client: %v", err)
	}
	return session, rec
}

// spec 01 5 and design decision 12: the official Go client asks for the modern
// revision first, falls back to a session, and then has everything: lists,
// calls, progress, cancellation, the end of its session.
func TestGoSDKClient(t *testing.T) {
	b := startBroker(t)
	tools := newToolbox()
	tools.serveDirect(t, b.direct("toolbox"))

	steps := make(chan float64, 8)
	session, rec := connectGo(t, b.mcp("toolbox"), &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) { steps <- req.Params.Progress },
	})
	if !rec.has("POST 2026-07-28: 400") {
		t.Errorf("the modern revision was not refused: %v", rec.seen)
	}
	if got := session.InitializeResult(); got.ProtocolVersion != "2025-11-25" || got.ServerInfo.Name != "toolbox" {
		t.Errorf("negotiated %+v", got)
	}
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	if diff := cmp.Diff([]string{"count", "echo", "wait"}, names); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	expectText(t, session, "echo", map[string]any{"message": "héllo <&>"}, "héllo <&>")
	expectText(t, session, "count", map[string]any{"to": 3}, "counted to 3")

	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := session.CallTool(ctx, call("wait", map[string]any{}))
		failed <- err
	}()
	for _, want := range []float64{1, 2, 3, 1} { // of count, then of wait
		if got := <-steps; got != want {
			t.Errorf("progress %v, want %v", got, want)
		}
	}
	cancel()
	if err := <-failed; err == nil {
		t.Error("the cancelled call succeeded")
	}
	tools.awaitCancelled(t)

	expectSessionEnds(t, session, b.mcp("toolbox"))
}

func call(tool string, arguments map[string]any) *mcp.CallToolParams {
	p := &mcp.CallToolParams{Name: tool, Arguments: arguments}
	p.SetProgressToken("token of " + tool)
	return p
}

func expectText(t *testing.T, s *mcp.ClientSession, tool string, arguments map[string]any, want string) {
	t.Helper()
	r, err := s.CallTool(t.Context(), call(tool, arguments))
	if err != nil {
		t.Fatalf("call %s: %v", tool, err)
	}
	if diff := cmp.Diff([]mcp.Content{&mcp.TextContent{Text: want}}, r.Content); diff != "" {
		t.Errorf("%s (-want +got):\n%s", tool, diff)
	}
}

// expectSessionEnds closes a client and finds that its session has ended.
func expectSessionEnds(t *testing.T, s *mcp.ClientSession, url string) {
	t.Helper()
	id := s.ID()
	if err := s.Close(); err != nil {
		t.Errorf("close the client: %v", err)
	}
	expectUnknownSession(t, url, id)
}
