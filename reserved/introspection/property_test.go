package introspection

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// TestEveryRequestHasOneAnswer: whatever JSON comes in, a request has exactly one
// answer, which is valid and under its id, and a notification has none.
func TestEveryRequestHasOneAnswer(t *testing.T) {
	w := withSlots(t, nil)
	methods := rapid.SampledFrom([]string{"initialize", "ping", "tools/list", "tools/call", "resources/list", "resources/templates/list",
		"resources/read", "resources/subscribe", "resources/unsubscribe", "notifications/cancelled", "prompts/list"})
	rapid.Check(t, func(t *rapid.T) {
		method := methods.Draw(t, "method")
		id := rapid.SampledFrom([]string{`1`, `"a"`, `-0.5e3`, `12345678901234567890`, `"\u0041\""`}).Draw(t, "id")
		params := value(params(t), 3).Draw(t, "params")
		f, err := wire.Scan(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
		if err != nil {
			t.Skip("not a frame")
		}
		note, _ := wire.Scan(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params))
		if got := w.effects(&msg.ClientNote{Session: 1, Frame: note}); got != nil {
			t.Fatalf("a notification is answered: %q", got)
		}
		got := w.effects(&msg.ClientCall{Session: 1, Client: &ref{"c1", w}, Call: 5, Frame: f})
		if len(got) != 1 {
			t.Fatalf("%s has %d answers: %q", f.Bytes, len(got), got)
		}
		body := strings.TrimPrefix(got[0], "c1 <- ")
		if strings.HasPrefix(body, "failed -") {
			return
		}
		answer, err := wire.Scan([]byte(body))
		if err != nil || !answer.IsResponse() || !bytes.Equal(answer.Raw(answer.ID), []byte(id)) {
			t.Fatalf("the answer to %s is %s (%v)", f.Bytes, body, err)
		}
		checkResult(t, method, answer.Raw(answer.Result))
	})
}

// checkResult: a tool result has one text, isError, and the text of its object.
func checkResult(t *rapid.T, method string, raw []byte) {
	if method != "tools/call" {
		return
	}
	var result struct {
		Content           []struct{ Type, Text string }
		StructuredContent json.RawMessage
		IsError           *bool
	}
	if err := json.Unmarshal(raw, &result); err != nil || len(result.Content) != 1 || result.Content[0].Type != "text" || result.IsError == nil {
		t.Fatalf("the result is %s (%v)", raw, err)
	}
	if object := result.StructuredContent; object != nil && string(object) != result.Content[0].Text {
		t.Fatalf("the text is not the object: %s", raw)
	}
}

// params draws the members that matter, under values of any type.
func params(t *rapid.T) []string {
	return rapid.SampledFrom([][]string{
		{"name", "arguments"}, {"uri"}, {"clientInfo", "protocolVersion"}, {"name"}, {"arguments"}, {"topic", "slot"}, {"requestId"},
	}).Draw(t, "members")
}

// value generates JSON of any shape; objects prefer the given members.
func value(members []string, depth int) *rapid.Generator[string] {
	leaf := rapid.OneOf(
		rapid.SampledFrom([]string{`null`, `true`, `false`, `0`, `-1.5e9`, `""`, `"pump-1"`, `"_broker"`, `"broker_info"`, `"providers_list"`, `"provider_status"`,
			`"broker_guide"`, `"broker_diagnose"`, `"broker://info"`, `"broker://providers"`, `"broker://providers/a%2F"`, `"broker://providers/%zz"`,
			`"broker://guide/index"`, `"2025-06-18"`, `"claude"`, `"deploy"`}),
		rapid.Map(rapid.String(), func(s string) string { return string(wire.AppendString(nil, s)) }),
	)
	if depth == 0 {
		return leaf
	}
	object := rapid.Custom(func(t *rapid.T) string {
		keys := append([]string{"name", "slot", "topic", "arguments", "uri", "version", "x"}, members...)
		var parts []string
		for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom(keys), 0, 4, rapid.ID).Draw(t, "keys") {
			parts = append(parts, fmt.Sprintf("%q:%s", key, value(members, depth-1).Draw(t, key)))
		}
		return "{" + strings.Join(parts, ",") + "}"
	})
	array := rapid.Map(rapid.SliceOfN(leaf, 0, 3), func(items []string) string { return "[" + strings.Join(items, ",") + "]" })
	return rapid.OneOf(object, object, object, leaf, array)
}
