package wire

import (
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite testdata/errors.golden")

const goldenFile = "testdata/errors.golden"

// texts calls every function of errors.go with fixed arguments.
func texts() []struct {
	name string
	text any // *Error or string
} {
	type row = struct {
		name string
		text any
	}
	const slot, shared, prefix = "pump-1", "/providers", "/provider"
	return []row{
		{"NotConnected", NotConnected(slot)},
		{"Disconnected", Disconnected(slot)},
		{"DisconnectedTooBig", DisconnectedTooBig(slot, 4194304)},
		{"NoAnswer", NoAnswer(slot, 60*time.Second)},
		{"NoAnswerCap", NoAnswerCap(slot, 10*time.Minute, 10)},
		{"SessionClosed", SessionClosed()},
		{"Crashed", Crashed(slot)},
		{"SlotFailed", SlotFailed(slot)},
		{"SlotBusy", SlotBusy(slot, "maxPendingPerSlot", 1024)},
		{"SessionBusy", SessionBusy(256)},
		{"TooManySlots", TooManySlots(slot, 1000)},
		{"TooLarge", TooLarge(4194304)},
		{"DuplicateID", DuplicateID([]byte(`"a"`))},
		{"NullID", NullID()},
		{"NotAMessage", NotAMessage()},
		{"NoBatch", NoBatch()},
		{"BatchTooLarge", BatchTooLarge(51, 50)},
		{"Unparseable", Unparseable(ErrUTF8)},
		{"NotConnected with advice", NotConnected(slot).Advise(AdviceSocket)},
		{"NotConnected with the advice of a host", NotConnected(slot).Advise(AdviceStdio)},
		{"Unscannable", Unscannable(ErrDepth)},
		{"TooManyIsolated", TooManyIsolated("s", 256)},
		{"ManagedSlot", ManagedSlot("s")},
		{"UpstreamLost", UpstreamLost("s", "it exited with code 1")},
		{"UpstreamDown", UpstreamDown("s", "its command exited with code 1", "Next attempt in 30s.")},
		{"NotRelayed", NotRelayed([]byte("sampling/createMessage"))},
		{"NoBrokerMethod", NoBrokerMethod([]byte("broker/x"))},
		{"ReservedSlot", ReservedSlot("_all")},
		{"AlreadyConnected", AlreadyConnected(slot, "Why.", "Recovery.")},
		{"HeldReason", HeldReason("dup")},
		{"EnvelopeOnSlotPath", EnvelopeOnSlotPath("/provider/a", "a", "b", shared)},
		{"EnvelopeReason", EnvelopeReason("/provider/a", shared)},
		{"PlainOnSharedPath", PlainOnSharedPath(shared, prefix, []byte("initialize"))},
		{"PlainOnSharedPath without a method", PlainOnSharedPath(shared, prefix, nil)},
		{"PlainReason", PlainReason(shared, prefix)},
		{"TooManySessions", TooManySessions(slot, 10000)},
		{"Withdrawn", Withdrawn()},
		{"CrashedClaim", CrashedClaim(slot)},
		{"SlotGone", SlotGone()},
		{"NoDiscovery", NoDiscovery("2025-11-25")},
		{"NobodyToAsk", NobodyToAsk([]byte("roots/list"))},
		{"AmbiguousAsk", AmbiguousAsk([]byte("roots/list"))},
		{"CannotAsk", CannotAsk([]byte("roots/list"))},
		{"AskUnanswered", AskUnanswered(time.Minute)},
		{"CallEnded", CallEnded()},
		{"Unreachable", Unreachable("http://localhost:3000/pump-1/mcp", errors.New("connection refused"))},
		{"AnswerLost", AnswerLost("http://localhost:3000/pump-1/mcp", errors.New("unexpected EOF"))},
		{"RefusedHTTP", RefusedHTTP("http://localhost:3000/pump-1/mcp", "502 Bad Gateway")},
		{"MissingURI", MissingURI()},
		{"URITooLong", URITooLong(3000, 2048)},
		{"SubscriptionLimit", SubscriptionLimit("maxSubscriptionsPerClient", 64)},
		{"TooManyNames", TooManyNames(slot, 10000)},
		{"UpgradeToPrefix", UpgradeToPrefix(prefix, shared)},
		{"UpgradeEmptySlot", UpgradeEmptySlot("/provider/?x=1", prefix, shared)},
		{"UpgradeExtraSegments", UpgradeExtraSegments("/provider/a/b", prefix, "a%2Fb")},
		{"LooksLikeProvider", LooksLikeProvider(prefix, shared)},
	}
}

func TestErrorTextsGolden(t *testing.T) {
	var b strings.Builder
	for _, row := range texts() {
		if e, ok := row.text.(*Error); ok {
			fmt.Fprintf(&b, "%s: %d %s\n", row.name, e.Code, e.Message)
			continue
		}
		fmt.Fprintf(&b, "%s: %s\n", row.name, row.text)
	}
	if *update {
		if err := os.WriteFile(goldenFile, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(b.String(), "\n")); diff != "" {
		t.Errorf("texts differ from %s; run with -update if that is meant (-want +got):\n%s", goldenFile, diff)
	}
}

// A text without a golden line could change unseen.
func TestErrorTextsAllGolden(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, row := range texts() {
		have[row.name] = true
	}
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if ok && f.Recv == nil && f.Name.IsExported() && !have[f.Name.Name] {
			t.Errorf("%s has no line in %s", f.Name.Name, goldenFile)
		}
	}
}

// spec 01 section 7 and the texts elsewhere in spec 01 that are exact.
func TestErrorTextsExact(t *testing.T) {
	for _, c := range []struct {
		got  *Error
		code int
		want string
	}{
		{NotConnected("s"), -32000, `Provider "s" not connected`},
		{Disconnected("s"), -32000, `Provider "s" disconnected`},
		{SessionClosed(), -32000, `Session closed`},
		{ReservedSlot("_all"), -32000, `Provider "_all" is reserved by the broker`},
		{NotRelayed([]byte("roots/list")), -32601, `Method not found: the broker does not relay requests opened by a provider (roots/list)`},
	} {
		if c.got.Code != c.code || c.got.Message != c.want {
			t.Errorf("got %d %q, want %d %q", c.got.Code, c.got.Message, c.code, c.want)
		}
	}
	if got, want := HeldReason("dup"), `Slot already held by a live provider; call provider_status on _broker. Slot: "dup"`; got != want {
		t.Errorf("HeldReason = %q, want %q (T4)", got, want)
	}
	if got, want := EnvelopeReason("/provider/a", "/providers"), `Envelope frame on slot-scoped path /provider/a: use DirectTransport here, or connect to /providers`; got != want {
		t.Errorf("EnvelopeReason = %q, want %q (spec 01 2.4)", got, want)
	}
}

// Texts of which the specification fixes the beginning and some words.
func TestErrorTextsTokens(t *testing.T) {
	for _, c := range []struct {
		got    string
		lead   string
		tokens []string
	}{
		{NoAnswer("s", 1500*time.Millisecond).Message, `Provider "s" did not respond within 1500ms.`,
			[]string{"providerRequestTimeoutMs", "broker_diagnose", "_broker"}},
		{NoAnswerCap("s", 2*time.Second, 10).Message, `Provider "s" did not respond within 2000ms.`,
			[]string{"providerRequestTimeoutMs", "broker_diagnose", "_broker"}},
		{AlreadyConnected("s", "w", "r").Message, `Provider "s" is already connected.`, []string{"provider_status", "_broker"}},
		{EnvelopeOnSlotPath("/provider/a", "a", "b", "/providers").Message, ``,
			[]string{`"a"`, `"b"`, "/provider/a", "DirectTransport", "MultiplexTransport", "/providers", "clos"}},
		{PlainOnSharedPath("/providers", "/provider", nil).Message, ``,
			[]string{"(none)", "DirectTransport", "MultiplexTransport", "/providers", "/provider/<name>", "clos"}},
		{UpgradeToPrefix("/provider", "/providers"), `"/provider"`, []string{"/provider/<name>", "/providers", "is a prefix and not an endpoint"}},
		{UpgradeEmptySlot("/provider/", "/provider", "/providers"), `"/provider/"`, []string{"/provider/<name>", "empty slot name"}},
		{UpgradeExtraSegments("/provider/a/b", "/provider", "a%2Fb"), `"/provider/a/b"`, []string{"percent-encode", "/provider/a%2Fb"}},
	} {
		if !strings.HasPrefix(c.got, c.lead) {
			t.Errorf("%q does not begin with %q", c.got, c.lead)
		}
		for _, token := range c.tokens {
			if !strings.Contains(c.got, token) {
				t.Errorf("%q does not name %q", c.got, token)
			}
		}
	}
}

func TestErrorResponse(t *testing.T) {
	for _, c := range []struct {
		err      *Error
		id, want string
	}{
		// T5 of spec 01 11
		{Disconnected("s"), `5`, `{"jsonrpc":"2.0","id":5,"error":{"code":-32000,"message":"Provider \"s\" disconnected"}}`},
		{Disconnected("s"), `"z"`, `{"jsonrpc":"2.0","id":"z","error":{"code":-32000,"message":"Provider \"s\" disconnected"}}`},
		{SessionClosed(), ``, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Session closed"}}`},
		{NotConnected("a\"\n"), `1.5`, `{"jsonrpc":"2.0","id":1.5,"error":{"code":-32000,"message":"Provider \"a\"\n\" not connected"}}`},
		{&Error{Code: 0, Message: ""}, `12345678901234567890`, `{"jsonrpc":"2.0","id":12345678901234567890,"error":{"code":0,"message":""}}`},
	} {
		got := c.err.Response([]byte(c.id))
		if string(got) != c.want {
			t.Errorf("Response(%s) = %s\nwant %s", c.id, got, c.want)
		}
		if f, err := Scan(got); err != nil || f.Shape != Object || !f.Error.Present() {
			t.Errorf("Scan(%s): %v", got, err)
		}
	}
	if got, want := SessionClosed().Error(), "Session closed (-32000)"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
	var target *Error
	if !errors.As(fmt.Errorf("call: %w", NoBatch()), &target) || target.Code != CodeInvalidRequest {
		t.Error("a wrapped *Error is not found by errors.As")
	}
}
