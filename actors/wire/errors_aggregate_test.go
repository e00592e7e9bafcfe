package wire

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"
)

// aggregateTexts are the exact texts of errors_aggregate.go (spec 03 3.5).
var aggregateTexts = []struct {
	name string
	got  *Error
	code int
	want string
}{
	{"UnknownAggregated", UnknownAggregated("tool", "a-b"), -32602, "Unknown aggregated tool: a-b"},
	{"UnknownAggregated", UnknownAggregated("prompt", ""), -32602, "Unknown aggregated prompt: (none)"},
	{"AmbiguousParam", AmbiguousParam("name"), -32602, `The parameter "name" is given more than once`},
	{"LeftOut", LeftOut("pump-1", "its handshake failed"), -32000, `Provider "pump-1" is left out of _all: its handshake failed`},
	{"NoLongerConnected", NoLongerConnected("pump-1"), -32000, `Provider "pump-1" is no longer connected`},
	{"CursorExpired", CursorExpired(), -32602, "The catalog has changed since this cursor was given; list again without a cursor"},
	{"UnknownCursor", UnknownCursor(), -32602, "Unknown cursor; list again without one"},
}

func TestAggregateTexts(t *testing.T) {
	have := map[string]bool{}
	for _, row := range aggregateTexts {
		have[row.name] = true
		if row.got.Code != row.code || row.got.Message != row.want {
			t.Errorf("%s: got %d %q, want %d %q", row.name, row.got.Code, row.got.Message, row.code, row.want)
		}
	}
	file, err := parser.ParseFile(token.NewFileSet(), "errors_aggregate.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.IsExported() && !have[f.Name.Name] {
			t.Errorf("%s has no row in aggregateTexts", f.Name.Name)
		}
	}
}
