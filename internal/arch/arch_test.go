// Package arch_test holds the source to the structure it was designed with:
// which package may import which, and what a core is made of.
package arch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// goPackage is what go list tells about a package.
type goPackage struct {
	Dir, ImportPath string
	Name            string
	Standard        bool
	Module          *struct{ Path string }
	GoFiles         []string
	Imports         []string
	TestImports     []string
	XTestImports    []string
}

func (p *goPackage) name() string {
	if p.ImportPath == module {
		return "."
	}
	return strings.TrimPrefix(p.ImportPath, module+"/")
}

func goList(args ...string) ([]*goPackage, error) {
	cmd := exec.Command("go", append([]string{"list", "-json=Dir,ImportPath,Name,Standard,Module,GoFiles,Imports,TestImports,XTestImports"}, args...)...)
	cmd.Dir = filepath.Join("..", "..")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, errors.Join(err, errors.New(complaint.String()))
	}
	var packages []*goPackage
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(goPackage)
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
}

var listOwn = sync.OnceValues(func() (map[string]*goPackage, error) {
	packages, err := goList("./...")
	byName := map[string]*goPackage{}
	for _, p := range packages {
		byName[p.name()] = p
	}
	return byName, err
})

func ownPackages(t *testing.T) map[string]*goPackage {
	t.Helper()
	own, err := listOwn()
	if err != nil {
		t.Fatalf("list the packages: %v", err)
	}
	return own
}

// own tells whether an import path belongs to this module, and its name there.
func own(path string) (name string, ok bool) {
	if path == module {
		return ".", true
	}
	return strings.CutPrefix(path, module+"/")
}

// standard tells whether an import path belongs to the standard library, whose
// first element has no dot.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// Every package has its row, every row its package.
func TestTableIsComplete(t *testing.T) {
	packages := ownPackages(t)
	for name := range packages {
		if _, ok := imports[name]; !ok {
			t.Errorf("package %s has no row: add %q with the packages it may import to imports in %s", name, name, tables)
		}
	}
	for name, allowed := range imports {
		if packages[name] == nil {
			t.Errorf("there is no package %s: remove the row %q from imports in %s, or add the package", name, name, tables)
		}
		for _, a := range allowed {
			if packages[a] == nil {
				t.Errorf("row %q of imports allows %s, which does not exist: correct %s", name, a, tables)
			}
		}
	}
}

// Design, section 1: what is not listed is forbidden.
func TestImports(t *testing.T) {
	for name, p := range ownPackages(t) {
		for _, path := range p.Imports {
			if to, ok := own(path); ok && !slices.Contains(imports[name], to) {
				t.Errorf("%s must not import %s; if the design allows it, add %q to the row %q of imports in %s", name, to, to, name, tables)
			}
		}
	}
}

// The actor library stays in actors/rt, the WebSocket library in the places that
// own a socket, each other library where it was chosen for.
func TestExternalImports(t *testing.T) {
	used := map[string]bool{}
	for name, p := range ownPackages(t) {
		for _, path := range p.Imports {
			if _, ok := own(path); ok || standard(path) {
				continue
			}
			used[path] = true
			if !slices.Contains(externals[path], name) {
				t.Errorf("%s must not import %s; if it is the place for it, add %q to the row of %s in externals in %s", name, path, name, path, tables)
			}
		}
		for _, path := range slices.Concat(p.TestImports, p.XTestImports) {
			if _, ok := own(path); ok || standard(path) {
				continue
			}
			used[path] = true
			if !slices.Contains(externals[path], name) && !slices.Contains(testExternals, path) {
				t.Errorf("tests of %s must not import %s; if they need it, add it to testExternals in %s", name, path, tables)
			}
		}
	}
	for path := range externals {
		if !used[path] {
			t.Errorf("nothing imports %s: remove it from externals in %s", path, tables)
		}
	}
}

// What users run contains no library that is there for tests, and no part of the
// actor library with known faults.
func TestLinkedPackages(t *testing.T) {
	linked, err := goList("-deps", "./cmd/broker")
	if err != nil {
		t.Fatalf("list what the broker links: %v", err)
	}
	for _, p := range linked {
		for _, sub := range []string{"router", "remote", "cluster", "scheduler", "persistence"} {
			if strings.HasPrefix(p.ImportPath+"/", "github.com/asynkron/protoactor-go/"+sub+"/") {
				t.Errorf("cmd/broker links %s, which has known faults", p.ImportPath)
			}
		}
		if _, shipped := externals[p.ImportPath]; !shipped && slices.Contains(testExternals, p.ImportPath) {
			t.Errorf("cmd/broker links %s, a library for tests", p.ImportPath)
		}
		if name, ok := own(p.ImportPath); ok && slices.Contains([]string{"brokertest", "bench", "internal/script"}, name) {
			t.Errorf("cmd/broker links %s, a package for tests", name)
		}
	}
}

// Every module that something imports is explained to readers.
func TestDependenciesAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	paths := slices.Sorted(maps.Keys(externals))
	for _, path := range append(paths, testExternals...) {
		if m := moduleOf(path); !strings.Contains(string(text), "`"+m+"`") {
			t.Errorf("docs/dependencies.md does not explain `%s`: say what it is for and why it was chosen", m)
		}
	}
}

// moduleOf drops what follows the repository in a package path, except a major
// version.
func moduleOf(path string) string {
	elements := strings.Split(path, "/")
	n := 2
	if elements[0] == "github.com" {
		n = 3
	}
	if len(elements) > n && strings.HasPrefix(elements[n], "v") {
		n++
	}
	return strings.Join(elements[:min(n, len(elements))], "/")
}
