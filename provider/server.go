package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
)

// MaxConcurrentCalls is the number of tool calls one Serve runs at a time;
// further ones are answered with error -32000.
const MaxConcurrentCalls = 64

// latestRevision is offered to clients that ask for a revision unknown here.
const latestRevision = "2025-11-25"

var revisions = []string{"2024-11-05", "2025-03-26", "2025-06-18", latestRevision}

// Tool describes a tool to clients.
type Tool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema"` // a JSON object; empty means {"type":"object"}
}

// ToolFunc performs one call. Calls run concurrently. ctx ends when the caller
// cancels, when the connection to the broker ends and when Serve ends; the
// outcome of such a call is discarded. An error becomes a result with IsError; a
// nil Result with a nil error is an empty result. A panic is answered with
// -32603.
type ToolFunc func(ctx context.Context, call *Call) (*Result, error)

// Server is an MCP server that offers tools over any Transport. It speaks the
// revisions 2024-11-05 to 2025-11-25, without prompts and resources. It may be
// served on several transports at once.
type Server struct {
	// Logger receives refusals and panics; nil means slog.Default(). Set it
	// before Serve.
	Logger *slog.Logger

	name, version string

	mu       sync.Mutex
	tools    []registeredTool // in the order added
	sessions map[*session]struct{}
}

type registeredTool struct {
	Tool
	run ToolFunc
}

// NewServer returns a server without tools. Name and version are what it tells
// clients about itself.
func NewServer(name, version string) *Server {
	return &Server{name: name, version: version, sessions: map[*session]struct{}{}}
}

// AddTool offers a tool, in place of one with the same name. Clients of a served
// transport are told that the list has changed. It panics when the name is
// empty, f is nil or the schema is not a JSON object.
func (s *Server) AddTool(t Tool, f ToolFunc) {
	if len(t.InputSchema) == 0 {
		t.InputSchema = json.RawMessage(`{"type":"object"}`)
	}
	var object map[string]json.RawMessage
	switch {
	case t.Name == "":
		panic("provider: AddTool: tool without a name")
	case f == nil:
		panic(fmt.Sprintf("provider: AddTool %q: nil function", t.Name))
	case json.Unmarshal(t.InputSchema, &object) != nil || object == nil:
		panic(fmt.Sprintf("provider: AddTool %q: InputSchema is not a JSON object", t.Name))
	}
	added := registeredTool{Tool: t, run: f}

	s.mu.Lock()
	same := func(r registeredTool) bool { return r.Name == t.Name }
	if i := slices.IndexFunc(s.tools, same); i >= 0 {
		s.tools[i] = added
	} else {
		s.tools = append(s.tools, added)
	}
	var open []*session
	for ss := range s.sessions {
		open = append(open, ss)
	}
	s.mu.Unlock()
	for _, ss := range open {
		ss.toolsChanged()
	}
}

// Serve connects the transport that open returns and answers its messages until
// ctx ends, which is the normal end and returns nil. Otherwise the error
// tells why Connect failed, ctx expired while connecting, or the transport
// ended: a *CloseError, an *OverflowError, or ErrClosed after a normal close. A
// Multiplex does not end by itself.
//
// open must give ev to the transport, and may wrap its functions. Serve closes
// the transport and returns after the last running call has returned.
func (s *Server) Serve(ctx context.Context, open func(ev Events) Transport) error {
	ss := newSession(s)
	t := open(ss.events())
	ss.transport = t
	s.track(ss, true)
	defer ss.stop()
	defer s.track(ss, false)

	if err := t.Connect(ctx); err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil
		}
		return fmt.Errorf("serve %s: %w", s.name, err)
	}
	var ended <-chan struct{} // never, for a transport that reconnects
	if r, ok := t.(interface{ reconnects() bool }); !ok || !r.reconnects() {
		ended = ss.ended
	}
	select {
	case <-ctx.Done():
	case <-ended:
	}
	ss.cancelCalls()
	closeErr := t.Close()
	if w, ok := t.(interface{ wait() }); ok {
		w.wait()
	}
	if ctx.Err() != nil {
		return nil
	}
	return errors.Join(ss.reason(), closeErr)
}

func (s *Server) track(ss *session, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if on {
		s.sessions[ss] = struct{}{}
	} else {
		delete(s.sessions, ss)
	}
}

func (s *Server) tool(name string) (registeredTool, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.tools, func(r registeredTool) bool { return r.Name == name })
	if i < 0 {
		return registeredTool{}, false
	}
	return s.tools[i], true
}

func (s *Server) list() []Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	tools := make([]Tool, 0, len(s.tools))
	for _, r := range s.tools {
		tools = append(tools, r.Tool)
	}
	return tools
}

func (s *Server) log() *slog.Logger {
	if s.Logger == nil {
		return slog.Default()
	}
	return s.Logger
}
