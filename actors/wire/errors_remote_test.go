package wire

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"
)

// remoteTexts are the exact texts of errors_remote.go (spec 03 4.2).
var remoteTexts = []struct {
	name string
	got  *Error
	busy bool
	want string
}{
	{"RemoteRefused", RemoteRefused("s", "503 Service Unavailable", "come back later"), false,
		`Provider "s": the remote server answered HTTP 503 Service Unavailable: come back later`},
	{"RemoteRefused", RemoteRefused("s", "502 Bad Gateway", ""), false,
		`Provider "s": the remote server answered HTTP 502 Bad Gateway`},
	{"RemoteDenied", RemoteDenied("s", "403 Forbidden"), false,
		`Provider "s": the remote server refused the broker's credentials (HTTP 403 Forbidden); check headers and auth of this upstream`},
	{"RemoteUnreachable", RemoteUnreachable("s", "connection refused"), false,
		`Provider "s" cannot be reached: connection refused. The request was not sent.`},
	{"RemoteLost", RemoteLost("s", "the server closed the connection"), false,
		`Provider "s": the answer was lost: the server closed the connection. The request may have been carried out.`},
	{"RemoteBusy", RemoteBusy("s", 64), true,
		`Provider "s" has 64 requests in progress at the remote server, and as many waiting as may; send the request again later`},
}

func TestRemoteTexts(t *testing.T) {
	have := map[string]bool{}
	for _, row := range remoteTexts {
		have[row.name] = true
		if row.got.Code != CodeUnavailable || row.got.Busy != row.busy || row.got.Message != row.want {
			t.Errorf("%s: got %d %q (busy: %v), want %d %q", row.name, row.got.Code, row.got.Message, row.got.Busy, CodeUnavailable, row.want)
		}
	}
	file, err := parser.ParseFile(token.NewFileSet(), "errors_remote.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.IsExported() && !have[f.Name.Name] {
			t.Errorf("%s has no row in remoteTexts", f.Name.Name)
		}
	}
}
