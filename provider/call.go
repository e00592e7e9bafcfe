package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
)

// Call is one tools/call request.
type Call struct {
	Tool string
	// Arguments are the caller's arguments as received; empty when absent.
	Arguments json.RawMessage
	// Meta is the request's _meta object as received, with the broker's
	// additions such as traceparent; empty when absent.
	Meta json.RawMessage

	session *session
	id      string
	token   json.RawMessage // progress token
}

// Decode stores the arguments in v as json.Unmarshal does; absent arguments
// count as an empty object. Its error is meant to be returned by the tool.
func (c *Call) Decode(v any) error {
	args := c.Arguments
	if len(args) == 0 {
		args = json.RawMessage(`{}`)
	}
	if err := json.Unmarshal(args, v); err != nil {
		return fmt.Errorf("arguments of %s: %w", c.Tool, err)
	}
	return nil
}

// ErrCallEnded is returned by Call.Progress after the call was answered or
// cancelled.
var ErrCallEnded = errors.New("provider: call has ended")

// Progress tells the caller how far the call is; done must grow from call to
// call. A total of 0 means unknown, an empty message none. It does nothing when
// the caller did not ask for progress.
func (c *Call) Progress(ctx context.Context, done, total float64, message string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(c.token) == 0 {
		return nil
	}
	params, err := marshal(struct {
		Token   json.RawMessage `json:"progressToken"`
		Done    float64         `json:"progress"`
		Total   float64         `json:"total,omitempty"`
		Message string          `json:"message,omitempty"`
	}{c.token, done, total, message})
	if err != nil {
		return fmt.Errorf("report progress: %w", err)
	}
	if !c.session.running(c) {
		return ErrCallEnded
	}
	return c.session.transport.Send(slices.Concat(
		[]byte(`{"jsonrpc":"2.0","method":"notifications/progress","params":`), params, []byte(`}`)))
}

// perform runs the tool and returns its result or a JSON-RPC error.
func (c *Call) perform(ctx context.Context, run ToolFunc) (result []byte, failure *rpcError) {
	defer func() {
		if p := recover(); p != nil {
			c.session.server.log().Error("provider: tool panicked", "tool", c.Tool, "panic", p, "stack", string(debug.Stack()))
			failure = &rpcError{codeInternal, fmt.Sprintf("Internal error: tool %q failed unexpectedly", c.Tool)}
		}
	}()
	r, err := run(ctx, c)
	switch {
	case err != nil:
		r = errorResult(err)
	case r == nil:
		r = &Result{}
	}
	result, err = marshal(r)
	if err != nil {
		return nil, &rpcError{codeInternal, fmt.Sprintf("Internal error: result of tool %q: %v", c.Tool, err)}
	}
	return result, nil
}
