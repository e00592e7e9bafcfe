package firmware

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/firmware/firmwaretest"
)

// These tests say that the ESP-IDF component is consistent, not that it works:
// there is no ESP-IDF here.

// spec 04 7.2: the component's folder alone satisfies a compiler that knows the types
// of ESP-IDF.
func TestComponentTypes(t *testing.T) {
	require(t, "gcc", "gcc")
	build(t, "idf-syntax")
}

// component returns the complete folder.
func component(t *testing.T) string {
	t.Helper()
	build(t, "idf-component")
	return filepath.Join(firmwaretest.Dir(t), "build", "espressif", "components", "mcplink")
}

func read(t *testing.T, elements ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// setting is a config entry of a Kconfig file.
type setting struct {
	kind, fallback string
	prompt         bool
	low, high      int
}

// settings reads a Kconfig file of plain entries.
func settings(t *testing.T, text string) map[string]*setting {
	t.Helper()
	all := map[string]*setting{}
	var s *setting
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		switch words[0] {
		case "config":
			s = &setting{}
			if all[words[1]] != nil {
				t.Errorf("%s is declared twice", words[1])
			}
			all[words[1]] = s
		case "bool", "int", "string":
			s.kind, s.prompt = words[0], strings.Contains(line, `"`)
		case "default":
			s.fallback = words[1]
		case "range":
			s.low, s.high = number(t, words[1]), number(t, words[2])
		}
	}
	return all
}

// used collects the settings that files mention, ESP-IDF's own aside.
func used(t *testing.T, foreign []string, files ...string) []string {
	t.Helper()
	names := map[string]bool{}
	for _, file := range files {
		for _, m := range regexp.MustCompile(`\bCONFIG_([A-Z0-9_]+)`).FindAllStringSubmatch(read(t, file), -1) {
			names[m[1]] = true
		}
	}
	for _, name := range foreign {
		delete(names, name)
	}
	return slices.Sorted(maps.Keys(names))
}

func glob(t *testing.T, patterns ...string) []string {
	t.Helper()
	var files []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("files %s: %v", pattern, err)
		}
		files = append(files, found...)
	}
	return files
}

// spec 04 7.2: every setting that is used is declared, and every declared one is used,
// and its default is one that its range allows.
func TestComponentSettings(t *testing.T) {
	dir := component(t)
	station := filepath.Join(dir, "examples", "station", "main")
	for kconfig, files := range map[string][]string{
		filepath.Join(dir, "Kconfig"):               glob(t, dir+"/*.c", dir+"/port/*.[ch]", dir+"/src/*.[ch]", dir+"/include/*.h", dir+"/CMakeLists.txt"),
		filepath.Join(station, "Kconfig.projbuild"): glob(t, station+"/*.c", station+"/CMakeLists.txt"),
	} {
		declared := settings(t, read(t, kconfig))
		uses := used(t, []string{"MBEDTLS_CERTIFICATE_BUNDLE"}, files...)
		if d := cmp.Diff(slices.Sorted(maps.Keys(declared)), uses); d != "" {
			t.Errorf("%s: settings declared (-) and used (+):\n%s", filepath.Base(kconfig), d)
		}
		for name, s := range declared {
			if err := s.check(); err != nil {
				t.Errorf("%s: %s: %v", filepath.Base(kconfig), name, err)
			}
		}
	}
}

func (s *setting) check() error {
	switch {
	case !s.prompt:
		return fmt.Errorf("it has no prompt, so nobody can change it")
	case s.kind == "bool" && s.fallback != "y" && s.fallback != "n":
		return fmt.Errorf("default %s of a bool", s.fallback)
	case s.kind == "string" && !strings.HasPrefix(s.fallback, `"`):
		return fmt.Errorf("default %s of a string", s.fallback)
	case s.kind == "int":
		n, err := strconv.Atoi(s.fallback)
		if err != nil || n < s.low || n > s.high {
			return fmt.Errorf("default %s outside of %d..%d", s.fallback, s.low, s.high)
		}
	}
	return nil
}

// spec 04 7: the values that are documented.
func TestComponentDefaults(t *testing.T) {
	got := map[string]string{}
	for name, s := range settings(t, read(t, component(t), "Kconfig")) {
		got[strings.TrimPrefix(name, "MCPLINK_")] = s.fallback
		if s.kind == "int" {
			got[strings.TrimPrefix(name, "MCPLINK_")] = fmt.Sprintf("%s (%d..%d)", s.fallback, s.low, s.high)
		}
	}
	want := map[string]string{
		"RX_BUFFER": "8192 (512..65536)", "REPLY_BUFFER": "4096 (256..65536)", "OUTBOX": "2048 (256..65536)",
		"TASK_STACK": "6144 (3072..32768)", "TASK_PRIORITY": "5 (1..24)", "TASK_CORE": "-1 (-1..1)",
		"POLL_MS": "200 (10..5000)", "MULTIPLEX": "n",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("defaults (-want +got):\n%s", d)
	}
}

// manifest flattens the YAML of a manifest: maps of scalars and lists of scalars or of
// one-line maps, indented by two, which is all it may hold.
func manifest(t *testing.T, text string) map[string]string {
	t.Helper()
	values := map[string]string{}
	var path []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		content := strings.TrimLeft(line, " ")
		depth := (len(line) - len(content)) / 2
		if (len(line)-len(content))%2 != 0 || depth > len(path) || strings.Contains(line, "\t") {
			t.Fatalf("indentation of %q", line)
		}
		path = path[:depth]
		if item, ok := strings.CutPrefix(content, "- "); ok {
			key := strings.Join(path, ".")
			values[key] = strings.TrimPrefix(values[key]+" "+item, " ")
			continue
		}
		key, value, ok := strings.Cut(content, ":")
		if !ok {
			t.Fatalf("no key in %q", line)
		}
		path = append(path, key)
		if value = strings.Trim(strings.TrimSpace(value), `"`); value != "" {
			values[strings.Join(path, ".")] = value
		}
	}
	return values
}

// spec 04 7: manifests of the component and of its example.
func TestComponentManifest(t *testing.T) {
	dir := component(t)
	header := read(t, dir, "include", "mcplink", "mcplink.h")
	version := regexp.MustCompile(`#define MCPLINK_VERSION "(.*)"`).FindStringSubmatch(header)
	if version == nil {
		t.Fatal("the library has no version")
	}
	got := manifest(t, read(t, dir, "idf_component.yml"))
	want := map[string]string{
		"version":                  version[1],
		"description":              got["description"],
		"license":                  "Apache-2.0",
		"tags":                     "mcp websocket",
		"examples":                 "path: examples/station",
		"dependencies.idf.version": ">=5.1",
	}
	if d := cmp.Diff(want, got); d != "" || got["description"] == "" {
		t.Errorf("idf_component.yml (-want +got):\n%s", d)
	}
	main := filepath.Join(dir, "examples", "station", "main")
	got = manifest(t, read(t, main, "idf_component.yml"))
	want = map[string]string{
		"dependencies.idf.version": ">=5.1", "dependencies.mcplink.version": "*",
		"dependencies.mcplink.override_path": "../../../",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the example's idf_component.yml (-want +got):\n%s", d)
	}
	if got := filepath.Join(main, "../../../"); got != dir {
		t.Errorf("the example takes the component from %s", got)
	}
}

// The folder is complete: what its CMake lists name is there, no link leads out of it,
// and no file of the library is missing or another.
func TestComponentFolder(t *testing.T) {
	dir := component(t)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if !e.Type().IsRegular() {
			t.Errorf("%s is not a file", path)
		}
		if filepath.Base(path) == "CMakeLists.txt" {
			checkCMake(t, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	root := firmwaretest.Dir(t)
	for from, to := range map[string]string{
		"src/*.[ch]": "src", "include/mcplink/*.h": "include/mcplink", "ports/idf/*.[ch]": "port",
	} {
		for _, file := range glob(t, filepath.Join(root, from)) {
			if read(t, file) != read(t, dir, to, filepath.Base(file)) {
				t.Errorf("%s of the component is another than the library's", filepath.Base(file))
			}
		}
	}
}

func checkCMake(t *testing.T, path string) {
	t.Helper()
	text := read(t, path)
	if strings.Contains(text, "..") {
		t.Errorf("%s leaves its folder", path)
	}
	for _, name := range regexp.MustCompile(`[\w/]+\.c\b`).FindAllString(text, -1) {
		if strings.HasPrefix(name, "/src/") || strings.HasPrefix(name, "/port/") {
			continue // a pattern
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), name)); err != nil {
			t.Errorf("%s names a file that is not there: %v", path, err)
		}
	}
}
