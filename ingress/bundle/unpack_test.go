package bundle

import (
	"archive/zip"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// tree lists a directory: modes of files, slashes behind directories.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		info, err := d.Info()
		switch {
		case err != nil:
			return err
		case d.IsDir():
			found[name+"/"] = ""
		default:
			found[name] = info.Mode().String()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// spec 03 10.2 item 24: modes are kept, and nothing but permissions of them.
func TestUnpack(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no such modes here")
	}
	o := signed(t, sound(t,
		part{name: "bin/run", body: "#!/bin/sh", change: unix(0o100750)},
		part{name: "bin/setuid", change: unix(0o104711)},
		part{name: "locked", body: "x", change: unix(0o100000)},
		part{name: "unreadable", body: "x", change: unix(0o100044)},
		part{name: "empty/", change: unix(0o040700)},
		part{name: "deep/er/", change: func(h *zip.FileHeader) { h.ExternalAttrs = 0x10 }},
		part{name: "ünïcode name", body: "x"},
	))
	l, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"bin/": "", "empty/": "", "deep/": "", "deep/er/": ""}
	for name, mode := range map[string]fs.FileMode{
		"manifest.json": 0o644, "index.js": 0o644, "bin/run": 0o750, "bin/setuid": 0o711,
		"locked": 0o600, "unreadable": 0o644, "ünïcode name": 0o644,
	} {
		want[name] = (mode &^ umask(t)).String()
	}
	if diff := cmp.Diff(want, tree(t, l.Dir)); diff != "" {
		t.Errorf("unpacked (-want +got):\n%s", diff)
	}
	if l.Dir != filepath.Join(o.CacheDir, "demo") || l.Command != "node" || !cmp.Equal(l.Args, []string{l.Dir + "/index.js"}) || l.Env != nil {
		t.Errorf("launch %+v", l)
	}
	if info, err := os.Stat(o.CacheDir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("cache directory: %v, %v", info.Mode(), err)
	}
}

// umask is what the user running the tests takes from every mode.
func umask(t *testing.T) fs.FileMode {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "f"), os.O_CREATE|os.O_WRONLY, fs.ModePerm)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return fs.ModePerm &^ info.Mode()
}

// A command that is part of the bundle can be started, whatever system packed it.
func TestCommandIsExecutable(t *testing.T) {
	manifest := strings.Replace(nodeManifest, `"node","args"`, `"bin/run","args"`, 1)
	l, err := Open(t.Context(), signed(t, makeZip(t, part{name: "manifest.json", body: manifest}, part{name: "bin/run", body: "#!/bin/sh"},
		part{name: "bin/other", body: "#!/bin/sh"})))
	if err != nil {
		t.Fatal(err)
	}
	if l.Command != filepath.Join(l.Dir, "bin", "run") {
		t.Errorf("command %s", l.Command)
	}
	for name, want := range map[string]fs.FileMode{"run": 0o755, "other": 0o644} {
		if info, err := os.Stat(filepath.Join(l.Dir, "bin", name)); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != want&^umask(t) {
			t.Errorf("%s: mode %v, %v", name, info.Mode(), err)
		}
	}
}

// A newer bundle takes the place of the older one as a whole.
func TestUnpackReplaces(t *testing.T) {
	o := signed(t, sound(t, part{name: "one", body: "1"}))
	if _, err := Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	next := signed(t, sound(t, part{name: "two", body: "2"}))
	next.CacheDir = o.CacheDir
	for range 2 {
		l, err := Open(t.Context(), next)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"index.js", "manifest.json", "two"}
		if got := names(t, l.Dir); !cmp.Equal(got, want) {
			t.Errorf("unpacked %v", got)
		}
	}
	if got := names(t, o.CacheDir); !cmp.Equal(got, []string{"demo"}) {
		t.Errorf("the cache holds %v", got)
	}
}

// What is in the place of the bundle is replaced, not followed.
func TestUnpackOverLink(t *testing.T) {
	o := signed(t, sound(t))
	elsewhere := t.TempDir()
	write(t, filepath.Join(elsewhere, "precious"), []byte("x"))
	if err := os.MkdirAll(o.CacheDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, filepath.Join(o.CacheDir, "demo")); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	if _, err := Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got := names(t, elsewhere); !cmp.Equal(got, []string{"precious"}) {
		t.Errorf("the target of the link holds %v", got)
	}
	if info, err := os.Lstat(filepath.Join(o.CacheDir, "demo")); err != nil || !info.IsDir() {
		t.Errorf("in its place: %v, %v", info.Mode(), err)
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestUnpackEndsWithItsContext(t *testing.T) {
	o := signed(t, sound(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	a, _, err := readArchive(t.Context(), sound(t), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.unpack(ctx, filepath.Join(o.CacheDir, "demo"), ""); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if got := names(t, o.CacheDir); len(got) != 0 {
		t.Errorf("the cache holds %v", got)
	}
	if err := a.check(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestUnpackCannotWrite(t *testing.T) {
	o := signed(t, sound(t))
	file := write(t, filepath.Join(t.TempDir(), "file"), nil)
	o.CacheDir = filepath.Join(file, "mcpb")
	_, err := Open(t.Context(), o)
	if !errors.Is(err, ErrWrite) || !strings.HasPrefix(err.Error(), `mcpb bundle "demo": the cache directory cannot be made: `) {
		t.Errorf("error %v", err)
	}
	o.CacheDir = "relative"
	_, err = Open(t.Context(), o)
	refused(t, err, ErrWrite, `mcpb bundle "demo": the cache directory "relative" is not absolute, bundle refused.`)
}

// A broker that was killed while it unpacked leaves something behind; another one
// that unpacks now is left alone.
func TestLeftovers(t *testing.T) {
	o := signed(t, sound(t))
	old := []string{".demo~new-1/x", ".demo~old-1/bundle/x", ".demo2~new-1/x"}
	fresh := []string{".demo~new-2/x", ".demo~old-2/bundle/x"}
	for _, name := range append(old, fresh...) {
		if err := os.MkdirAll(filepath.Join(o.CacheDir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	past := time.Now().Add(-2 * leftoverAge)
	for _, name := range old {
		top, _, _ := strings.Cut(name, "/")
		if err := os.Chtimes(filepath.Join(o.CacheDir, top), past, past); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	want := []string{".demo2~new-1", ".demo~new-2", ".demo~old-2", "demo"}
	if got := names(t, o.CacheDir); !cmp.Equal(got, want) {
		t.Errorf("the cache holds %v, want %v", got, want)
	}
}

// spec 03 10.2 item 24: a slot name is never a path.
func TestDirectoryName(t *testing.T) {
	plain := []string{"demo", "pump-1", "a.b_c", "_x", "0", strings.Repeat("a", 64), "console", "com10"}
	for _, name := range plain {
		if got := directoryName(name); got != name {
			t.Errorf("%q becomes %q", name, got)
		}
	}
	seen := make(map[string]string)
	for _, name := range []string{
		"", ".", "..", "../x", "a/b", `a\b`, ".hidden", "dot.", "Demo", "DEMO", "demo ", "ä", "con", "nul.txt", "com1", "lpt9.x",
		strings.Repeat("a", 65), strings.Repeat("a", 66), "a\x00b", "demo~1",
	} {
		got := directoryName(name)
		if !filepath.IsLocal(got) || filepath.Base(got) != got || !strings.Contains(got, "~") || got[0] == '.' || len(got) > 90 {
			t.Errorf("%q becomes %q", name, got)
		}
		if other, ok := seen[strings.ToLower(got)]; ok {
			t.Errorf("%q and %q both become %q", name, other, got)
		}
		seen[strings.ToLower(got)] = name
	}
	if got, want := directoryName("Pump/1"), "pump-1~53f2d473fcd51aac"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
