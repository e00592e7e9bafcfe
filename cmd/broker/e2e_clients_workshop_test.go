//lint:file-ignore SA1019 clients of today use what the newest revision deprecates

package main_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbroker/provider"
)

const level = "workshop://level" // the resource clients watch

// serveWorkshop puts a server of the official Go SDK into a slot, with something for every message
// a client can send or be sent: echo, count (reports progress until enough is
// called), raise (updates the level), ask (samples) and confirm (elicits).
func serveWorkshop(t *testing.T, url string) {
	t.Helper()
	accept := func(context.Context, *mcp.SubscribeRequest) error { return nil }
	forget := func(context.Context, *mcp.UnsubscribeRequest) error { return nil }
	server := mcp.NewServer(&mcp.Implementation{Name: "workshop", Version: "1.0.0"},
		&mcp.ServerOptions{SubscribeHandler: accept, UnsubscribeHandler: forget})
	server.AddResource(&mcp.Resource{URI: level, Name: "level"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: level, Text: "full"}}}, nil
	})
	addWorkshopTools(server)
	(&toolbox{server: server}).serve(t, func(ev provider.Events) provider.Transport { return provider.NewDirect(url, ev) })
}

func addWorkshopTools(server *mcp.Server) {
	addTool(server, "echo", func(_ context.Context, _ *mcp.CallToolRequest, in words) (string, error) {
		return in.Text, nil
	})
	enough := make(chan struct{}, 1)
	addTool(server, "count", func(ctx context.Context, req *mcp.CallToolRequest, _ words) (string, error) {
		for i := range 3 {
			if err := progress(ctx, req, i+1); err != nil {
				return "", err
			}
		}
		select { // clients forget about progress once they have the answer
		case <-enough:
			return "counted", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	addTool(server, "enough", func(context.Context, *mcp.CallToolRequest, words) (string, error) {
		enough <- struct{}{}
		return "stopped", nil
	})
	addTool(server, "raise", func(ctx context.Context, _ *mcp.CallToolRequest, _ words) (string, error) {
		return "raised", server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: level})
	})
	addTool(server, "ask", func(ctx context.Context, req *mcp.CallToolRequest, in words) (string, error) {
		answer, err := req.Session.CreateMessage(ctx, &mcp.CreateMessageParams{
			MaxTokens: 16,
			Messages:  []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: in.Text}}},
		})
		if err != nil {
			return "", err
		}
		return answer.Content.(*mcp.TextContent).Text, nil
	})
	addTool(server, "confirm", func(ctx context.Context, req *mcp.CallToolRequest, in words) (string, error) {
		answer, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: in.Text, RequestedSchema: confirmSchema})
		if err != nil {
			return "", err
		}
		return fmt.Sprint(answer.Action, " ", answer.Content["name"]), nil
	})
}

type words struct {
	Text string `json:"text"`
}

var confirmSchema = map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}}

func addTool(server *mcp.Server, name string, run func(context.Context, *mcp.CallToolRequest, words) (string, error)) {
	mcp.AddTool(server, &mcp.Tool{Name: name}, func(ctx context.Context, req *mcp.CallToolRequest, in words) (*mcp.CallToolResult, any, error) {
		said, err := run(ctx, req, in)
		return text(said), nil, err
	})
}

// visit is all a client saw of a workshop.
type visit struct {
	Server, Revision string
	Tools            []string
	Echo, Counted    string
	Progress         []float64
	Updated          string            // URI of the update that raise caused
	Asked, Confirmed string            // what ask and confirm answered
	Carried          map[string]string // question to the HTTP method whose stream brought it
}

// The questions a server asks its client.
const (
	sampling    = "sampling/createMessage"
	elicitation = "elicitation/create"
)

// fullVisit is what a client with every capability sees. carrier is the HTTP
// method that opens the stream of a call, empty without HTTP (row 46: a question
// comes on the stream of the call it belongs to).
func fullVisit(carrier string) visit {
	v := visit{
		Server: "workshop", Revision: "2025-11-25", Tools: []string{"ask", "confirm", "count", "echo", "enough", "raise"},
		Echo: "héllo <&>", Counted: "counted", Progress: []float64{1, 2, 3}, Updated: level, Asked: "sampled: who?", Confirmed: "accept Ann",
	}
	if carrier != "" {
		v.Carried = map[string]string{sampling: carrier, elicitation: carrier}
	}
	return v
}

// count has a client count: with the call in flight it sees all progress.
func count(t *testing.T, use func(tool, say string) string, steps <-chan float64) (progress []float64, answer string) {
	t.Helper()
	answered := make(chan string, 1)
	go func() { answered <- use("count", "") }()
	for range 3 {
		progress = append(progress, within(t, steps, "no progress"))
	}
	use("enough", "")
	return progress, within(t, answered, "no answer")
}

func expectVisit(t *testing.T, got, want visit) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the client saw (-want +got):\n%s", diff)
	}
}

// relayingBroker runs a broker that puts providers' questions to clients.
func relayingBroker(t *testing.T) *broker {
	t.Helper()
	p := newBroker(t, "--port", "0")
	p.cmd.Env = append(p.cmd.Env, "MCP_BROKER_SERVER_REQUESTS=relay")
	return runBroker(p)
}

func (b *broker) sse(slot string) string { return "http://127.0.0.1:" + b.port + "/" + slot + "/sse" }

func (b *broker) url() string { return "http://127.0.0.1:" + b.port }

// bridge is the command line of "broker bridge" to a slot of b.
func (b *broker) bridge(slot string) (command string, args []string) {
	return b.cmd.Path, []string{"bridge", "--url", b.url(), slot}
}

// tap notes what the event streams of an HTTP client carry.
type tap struct {
	base    *http.Transport
	mu      sync.Mutex
	streams []*tapped
}

type tapped struct {
	io.ReadCloser
	method string
	text   *transcript
}

func newTap(t *testing.T) *tap {
	tp := &tap{base: &http.Transport{}}
	t.Cleanup(tp.base.CloseIdleConnections)
	return tp
}

func (tp *tap) client() *http.Client { return &http.Client{Transport: tp} }

// RoundTrip implements http.RoundTripper.
func (tp *tap) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := tp.base.RoundTrip(r)
	if err != nil || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return resp, err
	}
	s := &tapped{ReadCloser: resp.Body, method: r.Method, text: newTranscript()}
	resp.Body = s
	tp.mu.Lock()
	defer tp.mu.Unlock()
	tp.streams = append(tp.streams, s)
	return resp, nil
}

func (s *tapped) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	_, _ = s.text.Write(p[:n])
	return n, err
}

// carried tells which streams brought the questions.
func (tp *tap) carried() map[string]string {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	found := map[string]string{}
	for _, s := range tp.streams {
		for _, question := range []string{sampling, elicitation} {
			if strings.Contains(s.text.String(), `"method":"`+question+`"`) {
				found[question] += s.method
			}
		}
	}
	return found
}
