package scenarios

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
)

// client is an MCP client session of one slot, over Streamable HTTP.
type client struct {
	url     string
	session string
	http    *http.Client
	ids     atomic.Int64
}

// outcome is what came of a call.
type outcome struct {
	err      error // no answer
	isError  bool  // a JSON-RPC error
	code     int
	text     string // of the error or of the result
	progress int    // notifications that came before
}

func (o outcome) String() string {
	switch {
	case o.err != nil:
		return fmt.Sprintf("no answer: %v", o.err)
	case o.isError:
		return fmt.Sprintf("error %d %q", o.code, o.text)
	}
	return fmt.Sprintf("the result %q", o.text)
}

// protocolVersion is the revision scripted clients speak.
const protocolVersion = "2025-11-25"

func newClient(url string) *client {
	return &client{url: url, http: &http.Client{Transport: &http.Transport{}}}
}

// initialize opens the session. The broker opens one even if nobody holds the
// slot.
func (c *client) initialize(ctx context.Context) outcome {
	o := c.call(ctx, "initialize", map[string]any{
		"protocolVersion": protocolVersion, "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "scenario", "version": "1.0.0"},
	}, false)
	if o.err != nil || o.isError {
		return o
	}
	resp, err := c.post(ctx, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	if err != nil {
		return outcome{err: err}
	}
	_ = resp.Body.Close()
	return o
}

// call sends a request and waits for the answer.
func (c *client) call(ctx context.Context, method string, params map[string]any, progress bool) outcome {
	id := c.ids.Add(1)
	sent := map[string]any{}
	for key, value := range params {
		sent[key] = value
	}
	if progress {
		sent["_meta"] = map[string]any{"progressToken": id}
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": sent})
	if err != nil {
		return outcome{err: err}
	}
	resp, err := c.post(ctx, body)
	if err != nil {
		return outcome{err: err}
	}
	defer resp.Body.Close()
	return read(resp)
}

func (c *client) post(ctx context.Context, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		r.Header.Set("Mcp-Session-Id", c.session)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	if id := resp.Header.Get("Mcp-Session-Id"); c.session == "" && id != "" {
		c.session = id
	}
	return resp, nil
}

func (c *client) close() { c.http.CloseIdleConnections() }

// read reads an answer: one JSON message, or an event stream that ends with it.
func read(resp *http.Response) outcome {
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return readStream(resp.Body)
	}
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return outcome{err: err}
	case resp.StatusCode >= http.StatusBadRequest:
		return outcome{err: fmt.Errorf("HTTP %d: %s", resp.StatusCode, excerpt(string(body)))}
	}
	o, _ := answer(body)
	return o
}

func readStream(body io.Reader) outcome {
	lines := bufio.NewReader(body)
	progress := 0
	for {
		line, err := lines.ReadString('\n')
		if data, ok := strings.CutPrefix(line, "data:"); ok {
			o, last := answer([]byte(data))
			if last {
				o.progress = progress
				return o
			}
			progress++
		}
		if err != nil {
			return outcome{err: fmt.Errorf("the event stream ended before the answer: %w", err)}
		}
	}
}

// answer reads a message; it reports false for one that is not an answer.
func answer(text []byte) (outcome, bool) {
	var m struct {
		Method string `json:"method"`
		Result struct {
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
		} `json:"result"`
		Error *struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return outcome{err: fmt.Errorf("the answer is not JSON-RPC: %w", err)}, true
	}
	if m.Error != nil {
		return outcome{isError: true, code: m.Error.Code, text: m.Error.Message}, true
	}
	var parts []string
	for _, item := range m.Result.Content {
		parts = append(parts, item.Text)
	}
	return outcome{text: strings.Join(parts, "\n")}, m.Method == ""
}
