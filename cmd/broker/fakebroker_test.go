package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
)

// fakeBroker answers MCP over Streamable HTTP with what a test gives it.
type fakeBroker struct {
	t testing.TB
	*httptest.Server

	mu       sync.Mutex
	results  map[string]string // by method, or by "tools/call NAME": the raw result
	asked    []string          // what came, one line each
	noStream bool
	sessions int
	updates  chan string   // messages for the event stream
	streams  chan struct{} // one for each event stream opened
	cut      chan struct{} // ends an event stream
}

func newFakeBroker(t testing.TB) *fakeBroker {
	f := &fakeBroker{
		t: t, results: map[string]string{"resources/subscribe": "{}"},
		updates: make(chan string), streams: make(chan struct{}, 8), cut: make(chan struct{}),
	}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

// tool answers a tool with structured content from a file of testdata/remote.
func (f *fakeBroker) tool(name, file string) {
	f.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		f.t.Fatal(err)
	}
	f.set("tools/call "+name, `{"content":[],"structuredContent":`+string(text)+`,"isError":false}`)
}

// set gives the answer to a method; one that begins with "error " is an error.
func (f *fakeBroker) set(method, result string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.results[method] = result
}

// log returns what came, in its order.
func (f *fakeBroker) log() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.asked, "\n")
}

func (f *fakeBroker) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, fmt.Sprintf(format, args...))
}

// forget makes the broker lose its sessions, as a restart does.
func (f *fakeBroker) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sessions++
}

func (f *fakeBroker) session() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fmt.Sprintf("s-%d", f.sessions)
}

func (f *fakeBroker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.note("%s %s %s %s", r.Method, r.URL.EscapedPath(), r.Header.Get("Mcp-Session-Id"), body)
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Name   string
			Cursor string
		}
	}
	_ = json.Unmarshal(body, &m)
	opens := m.Method == "initialize"
	if s := r.Header.Get("Mcp-Session-Id"); !opens && s != f.session() {
		http.Error(w, `{"error":"unknown_session","error_description":"Session not found or terminated"}`, http.StatusNotFound)
		return
	}
	switch {
	case r.Method == http.MethodGet:
		f.stream(w, r)
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	default:
		key := m.Method
		for _, part := range []string{m.Params.Name, m.Params.Cursor} {
			if part != "" {
				key += " " + part
			}
		}
		f.answer(w, key, m.ID)
	}
}

func (f *fakeBroker) answer(w http.ResponseWriter, key string, id json.RawMessage) {
	f.mu.Lock()
	result, ok := f.results[key]
	f.mu.Unlock()
	switch {
	case !ok && key == "initialize":
		w.Header().Set("Mcp-Session-Id", f.session())
		result = `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"_broker","version":"1.2.3"}}`
	case !ok:
		result = `error {"code":-32601,"message":"Method not found: ` + key + `"}`
	}
	member := `"result":`
	if text, failed := strings.CutPrefix(result, "error "); failed {
		member, result = `"error":`, text
	}
	if events, streamed := strings.CutPrefix(result, "events "); streamed {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, strings.ReplaceAll(events, "$ID", string(id)))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s%s}`, id, member, result)
}

func (f *fakeBroker) stream(w http.ResponseWriter, r *http.Request) {
	if f.noStream {
		http.Error(w, "", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, ": open\n\n")
	_ = http.NewResponseController(w).Flush()
	f.streams <- struct{}{}
	for {
		select {
		case m := <-f.updates:
			fmt.Fprintf(w, "event: message\ndata: %s\n\n", m)
			_ = http.NewResponseController(w).Flush()
		case <-f.cut:
			return
		case <-r.Context().Done():
			return
		}
	}
}
