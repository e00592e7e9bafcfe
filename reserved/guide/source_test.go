package guide_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every name of the Go packages that a page uses exists, and Go blocks parse.
func TestGoNamesExist(t *testing.T) {
	known := map[string]bool{}
	for pkg, dir := range map[string]string{"provider": "../../provider", "mcpbroker": "../.."} {
		inspect(t, dir, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				known[pkg+"."+n.Name.Name] = n.Recv == nil || known[pkg+"."+n.Name.Name]
			case *ast.TypeSpec:
				known[pkg+"."+n.Name.Name] = true
			}
			return true
		})
	}
	name := regexp.MustCompile(`\b(?:provider|mcpbroker)\.[A-Z]\w*`)
	all, blocks := snippets(t)
	for _, s := range all {
		for _, n := range name.FindAllString(s.text, -1) {
			if !known[n] {
				t.Errorf("%s: there is no %s", s.page, n)
			}
		}
	}
	for _, b := range blocks {
		if b.lang != "go" {
			continue
		}
		if _, err := parser.ParseFile(token.NewFileSet(), b.page+".go", "package p\nfunc f() error {\n"+b.text+"\nreturn err\n}", 0); err != nil {
			t.Errorf("%s: %v in\n%s", b.page, err, b.text)
		}
	}
}

func inspect(t *testing.T, dir string, visit func(ast.Node) bool) {
	t.Helper()
	files := sources(t, dir)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, visit)
	}
}

// sources lists the Go files of a package without its tests.
func sources(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".go") && !strings.HasSuffix(e.Name(), "_test.go") {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	return names
}
