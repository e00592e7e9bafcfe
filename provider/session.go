package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
)

// JSON-RPC error codes the server answers with.
const (
	codeParse    = -32700
	codeInvalid  = -32600
	codeMethod   = -32601
	codeParams   = -32602
	codeInternal = -32603
	codeBusy     = -32000
)

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type request struct {
	ID     json.RawMessage `json:"id"` // as received, to be echoed unchanged
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// session is one Serve: the server on one transport. Its connection may come and
// go; running calls end with it, because the broker has answered their callers.
type session struct {
	server    *Server
	transport Transport
	ended     chan struct{} // closed by the first end of a connection

	mu          sync.Mutex
	endOnce     sync.Once
	err         error // last one reported by the transport
	initialized bool
	stopped     bool
	calls       map[string]activeCall // by id as received; only these are answered
	active      int                   // functions that have not returned
	workers     sync.WaitGroup
}

type activeCall struct {
	call   *Call
	cancel context.CancelFunc
}

func newSession(s *Server) *session {
	return &session{server: s, ended: make(chan struct{}), calls: map[string]activeCall{}}
}

func (ss *session) events() Events {
	return Events{Message: ss.message, Error: ss.failed, Close: ss.closed}
}

func (ss *session) failed(err error) {
	ss.server.log().Warn("provider: "+err.Error(), "server", ss.server.name)
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.err = err
}

func (ss *session) closed() {
	ss.cancelCalls()
	ss.endOnce.Do(func() { close(ss.ended) })
}

// reason tells why the transport ended.
func (ss *session) reason() error {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.err == nil {
		return ErrClosed
	}
	return ss.err
}

// cancelCalls ends all running calls without answers.
func (ss *session) cancelCalls() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for id, c := range ss.calls {
		c.cancel()
		delete(ss.calls, id)
	}
}

// stop ends the session and waits for running functions.
func (ss *session) stop() {
	ss.mu.Lock()
	ss.stopped = true
	ss.mu.Unlock()
	ss.cancelCalls()
	ss.workers.Wait()
}

func (ss *session) toolsChanged() {
	ss.mu.Lock()
	tell := ss.initialized && !ss.stopped
	ss.mu.Unlock()
	if tell {
		ss.send([]byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`))
	}
}

// message handles one frame of the broker. It does not wait for tools.
func (ss *session) message(frame []byte) {
	var req request
	if err := json.Unmarshal(frame, &req); err != nil {
		if !json.Valid(frame) {
			ss.fail(nil, &rpcError{codeParse, "Parse error: frame is not JSON"})
			return
		}
		ss.fail(nil, &rpcError{codeInvalid, "Invalid request: frame is not a JSON-RPC message"})
		return
	}
	switch {
	case req.Method == "": // an answer; this server asks nothing
	case req.ID == nil:
		ss.notification(req)
	case !validID(req.ID):
		ss.fail(nil, &rpcError{codeInvalid, "Invalid request: id must be a string or a number"})
	case req.Method == "tools/call":
		ss.call(req)
	default:
		result, failure := ss.answer(req)
		if failure != nil {
			ss.fail(req.ID, failure)
			return
		}
		ss.succeed(req.ID, result)
	}
}

func validID(id json.RawMessage) bool {
	return id[0] == '"' || id[0] == '-' || id[0] >= '0' && id[0] <= '9'
}

func (ss *session) notification(req request) {
	if req.Method != "notifications/cancelled" {
		return
	}
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(req.Params, &p) != nil {
		return
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if c, ok := ss.calls[string(p.RequestID)]; ok {
		c.cancel()
		delete(ss.calls, string(p.RequestID))
	}
}

// answer handles every request but tools/call.
func (ss *session) answer(req request) (result []byte, failure *rpcError) {
	switch req.Method {
	case "initialize":
		return ss.initialize(req.Params), nil
	case "ping":
		return []byte(`{}`), nil
	case "tools/list":
		return encode(map[string]any{"tools": ss.server.list()}), nil
	}
	return nil, &rpcError{codeMethod, "Method not found: " + req.Method}
}

func (ss *session) initialize(params json.RawMessage) []byte {
	var p struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	// Malformed parameters get the latest revision, like an unknown one.
	_ = json.Unmarshal(params, &p)
	if !slices.Contains(revisions, p.ProtocolVersion) {
		p.ProtocolVersion = latestRevision
	}
	ss.mu.Lock()
	ss.initialized = true
	ss.mu.Unlock()
	type info struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	return encode(struct {
		ProtocolVersion string          `json:"protocolVersion"`
		Capabilities    json.RawMessage `json:"capabilities"`
		ServerInfo      info            `json:"serverInfo"`
	}{p.ProtocolVersion, json.RawMessage(`{"tools":{"listChanged":true}}`), info{ss.server.name, ss.server.version}})
}

// call starts a tool.
func (ss *session) call(req request) {
	var p struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Meta      json.RawMessage `json:"_meta"`
	}
	if err := json.Unmarshal(req.Params, &p); err != nil {
		ss.fail(req.ID, &rpcError{codeParams, "Invalid params: " + err.Error()})
		return
	}
	tool, ok := ss.server.tool(p.Name)
	if !ok {
		ss.fail(req.ID, &rpcError{codeParams, "Unknown tool: " + p.Name})
		return
	}
	c := &Call{Tool: p.Name, Arguments: p.Arguments, Meta: p.Meta, session: ss, id: string(req.ID), token: progressToken(p.Meta)}
	ctx, cancel := context.WithCancel(context.Background())
	if failure := ss.begin(c, cancel); failure != nil {
		cancel()
		ss.fail(req.ID, failure)
		return
	}
	go func() {
		defer ss.workers.Done()
		defer cancel()
		result, failure := c.perform(ctx, tool.run)
		if !ss.finish(c) {
			return
		}
		if failure != nil {
			ss.fail(req.ID, failure)
			return
		}
		ss.succeed(req.ID, result)
	}()
}

func progressToken(meta json.RawMessage) json.RawMessage {
	var m struct {
		Token json.RawMessage `json:"progressToken"`
	}
	if len(meta) == 0 || json.Unmarshal(meta, &m) != nil || m.Token == nil || !validID(m.Token) {
		return nil
	}
	return m.Token
}

// begin records c as running, or tells why it may not run.
func (ss *session) begin(c *Call, cancel context.CancelFunc) *rpcError {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	switch _, taken := ss.calls[c.id]; {
	case ss.stopped:
		return &rpcError{codeBusy, "Server is stopping"}
	case taken:
		return &rpcError{codeInvalid, "Invalid request: a call with this id is running"}
	case ss.active == MaxConcurrentCalls:
		return &rpcError{codeBusy, fmt.Sprintf("Server busy: %d calls are running; try again later", MaxConcurrentCalls)}
	}
	ss.active++
	ss.workers.Add(1)
	ss.calls[c.id] = activeCall{c, cancel}
	return nil
}

// finish records that the function of c has returned, and reports whether c is
// still to be answered.
func (ss *session) finish(c *Call) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.active--
	if ss.calls[c.id].call != c {
		return false
	}
	delete(ss.calls, c.id)
	return true
}

func (ss *session) running(c *Call) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.calls[c.id].call == c
}

func (ss *session) succeed(id json.RawMessage, result []byte) {
	ss.send(slices.Concat([]byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"result":`), result, []byte(`}`)))
}

// fail answers with an error; a nil id becomes null.
func (ss *session) fail(id json.RawMessage, e *rpcError) {
	if id == nil {
		id = json.RawMessage(`null`)
	}
	ss.send(slices.Concat([]byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"error":`), encode(e), []byte(`}`)))
}

func (ss *session) send(frame []byte) {
	if err := ss.transport.Send(frame); err != nil {
		ss.server.log().Debug("provider: answer not sent", "server", ss.server.name, "error", err)
	}
}
