package wire

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"
	"time"
)

// introspectionTexts are the exact texts of errors_introspection.go (spec 03 1.3).
var introspectionTexts = []struct {
	name string
	got  *Error
	code int
	want string
}{
	{"UnknownMethod", UnknownMethod([]byte("prompts/list")), -32601, "Method not found: prompts/list"},
	{"MissingName", MissingName(), -32602, "Missing required parameter: name"},
	{"UnknownTool", UnknownTool("nope"), -32602, "Unknown tool: nope"},
	{"ResourceNotFound", ResourceNotFound("broker://x"), -32002, "Resource not found: broker://x"},
	{"InstanceNotFound", InstanceNotFound("broker://x"), -32002, "Instance not found: broker://x"},
	{"NoInventory", NoInventory(2 * time.Second), -32000,
		"The slots could not be listed within 2000ms; the broker is overloaded or stopping, send the request again"},
}

func TestIntrospectionTexts(t *testing.T) {
	have := map[string]bool{}
	for _, row := range introspectionTexts {
		have[row.name] = true
		if row.got.Code != row.code || row.got.Message != row.want {
			t.Errorf("%s: got %d %q, want %d %q", row.name, row.got.Code, row.got.Message, row.code, row.want)
		}
	}
	file, err := parser.ParseFile(token.NewFileSet(), "errors_introspection.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.IsExported() && !have[f.Name.Name] {
			t.Errorf("%s has no row in introspectionTexts", f.Name.Name)
		}
	}
}
