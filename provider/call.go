package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
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
	err := json.Unmarshal(args, v)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		what := strconv.Quote(wrong.Field)
		if wrong.Field == "" {
			what = "they"
		}
		return fmt.Errorf("arguments of %s: %s must be %s, not %s", c.Tool, what, jsonKind(wrong.Type), withArticle(wrong.Value))
	case err != nil:
		return fmt.Errorf("arguments of %s: %w", c.Tool, err)
	}
	return nil
}

func withArticle(noun string) string {
	if strings.HasPrefix(noun, "array") || strings.HasPrefix(noun, "object") {
		return "an " + noun
	}
	return "a " + noun
}

// jsonKind says what JSON a Go type is read from, to people who call tools and
// know nothing of Go.
func jsonKind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "an integer in range"
	case reflect.Float32, reflect.Float64:
		return "a number in range"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "of another type"
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
