package arch_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Design, section 1: a core has no goroutine, no clock, no input or output and
// no actor. It stays testable with a table, and a restart can trust its state.
func TestCoresArePure(t *testing.T) {
	packages := ownPackages(t)
	var files []string
	for name, p := range packages {
		for _, file := range p.GoFiles {
			if isCore(name, file, p.GoFiles) {
				files = append(files, filepath.Join(p.Dir, file))
			}
		}
	}
	if len(files) < len(corePackages)+len(shells) {
		t.Fatalf("found only %d files of cores: correct corePackages and shells in %s", len(files), tables)
	}
	for _, file := range files {
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, complaint := range impurities(set, parsed) {
			t.Errorf("%s; a core returns effects instead, its actor.go performs them", complaint)
		}
	}
}

// Every package with a core.go says which of its files are the shell.
func TestShellsAreListed(t *testing.T) {
	packages := ownPackages(t)
	for name, p := range packages {
		if slices.Contains(p.GoFiles, "core.go") && shells[name] == nil {
			t.Errorf("package %s has a core.go: add %q with the files that are not the core to shells in %s", name, name, tables)
		}
	}
	for name, list := range shells {
		for _, file := range append([]string{"core.go"}, list...) {
			if p := packages[name]; p == nil || !slices.Contains(p.GoFiles, file) {
				t.Errorf("there is no %s/%s: correct the row %q of shells in %s", name, file, name, tables)
			}
		}
	}
	for _, file := range coreFiles {
		dir, base := filepath.Split(file)
		if p := packages[strings.TrimSuffix(dir, "/")]; p == nil || !slices.Contains(p.GoFiles, base) {
			t.Errorf("there is no %s: correct coreFiles in %s", file, tables)
		}
	}
}

func isCore(pkg, file string, beside []string) bool {
	switch {
	case slices.Contains(corePackages, pkg), slices.Contains(coreFiles, pkg+"/"+file):
		return true
	case slices.Contains(beside, "core.go"):
		return !slices.Contains(shells[pkg], file)
	}
	return false
}

// impurities lists what a core must not have, with positions.
func impurities(set *token.FileSet, file *ast.File) []string {
	var found []string
	at := func(p token.Pos, format string, args ...any) {
		position := set.Position(p)
		found = append(found, fmt.Sprintf("%s:%d: %s", filepath.Base(position.Filename), position.Line, fmt.Sprintf(format, args...)))
	}
	timeName := ""
	for _, i := range file.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		if slices.Contains(impure, path) {
			at(i.Pos(), "a core must not import %s", path)
		}
		if path == "time" {
			timeName = "time"
			if i.Name != nil {
				timeName = i.Name.Name
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			at(n.Pos(), "a core must not start a goroutine")
		case *ast.SendStmt:
			at(n.Pos(), "a core must not send on a channel")
		case *ast.SelectStmt:
			at(n.Pos(), "a core must not wait")
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				at(n.Pos(), "a core must not receive from a channel")
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && timeName != "" && x.Name == timeName && slices.Contains(clock, n.Sel.Name) {
				at(n.Pos(), "a core must not use time.%s", n.Sel.Name)
			}
		}
		return true
	})
	return found
}

// The check itself sees each fault.
func TestImpurities(t *testing.T) {
	const source = `package p
import (
	"os"
	clk "time"
)
func f(c chan int, d clk.Duration) {
	go f(c, d)
	c <- 1
	<-c
	select {}
	_ = clk.Now()
	_ = os.Args
}`
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "p.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"p.go:3: a core must not import os",
		"p.go:7: a core must not start a goroutine",
		"p.go:8: a core must not send on a channel",
		"p.go:9: a core must not receive from a channel",
		"p.go:10: a core must not wait",
		"p.go:11: a core must not use time.Now",
	}
	if diff := cmp.Diff(want, impurities(set, file)); diff != "" {
		t.Errorf("impurities (-want +got):\n%s", diff)
	}
}
