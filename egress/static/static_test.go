package static_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const (
	html  = "text/html; charset=utf-8"
	plain = "text/plain"
	none  = ""
)

// site is a root mount, a mount below it, and files outside both.
func site(t testing.TB) (root, docs string) {
	t.Helper()
	dir := tree(t, map[string]string{
		"secret.html":             "secret",
		"root/index.html":         "home",
		"root/a b.html":           "blank",
		"root/100%.html":          "percent",
		"root/%2e%2e/x":           "literal escapes",
		"root/..dotted":           "dotted",
		"root/sub/index.html":     "sub",
		"root/sub/é.txt":          "accent",
		"root/bare/page.html":     "page",
		"root/trap/index.html/":   "",
		"root/docs/only-root.txt": "hidden by the longer mount",
		"root/s/mcp":              "unreachable",
		"root/s/sse":              "a file",
		"docs/index.html":         "manual",
		"docs/v1/mcp/deep.md":     "deep",
	})
	return filepath.Join(dir, "root"), filepath.Join(dir, "docs")
}

// Spec 01 5.9, F-39 to F-41: what is found, and what a path may say.
func TestPaths(t *testing.T) {
	root, docs := site(t)
	b := serving(t, "/", root, "/docs", docs)
	for _, c := range []struct {
		method, target string
		status         int
		typ, body      string
	}{
		{"GET", "/", 200, html, "home"},
		{"GET", "/?x=/../y", 200, html, "home"},
		{"GET", "/index.html", 200, html, "home"},
		{"GET", "http://elsewhere/index.html", 200, html, "home"},
		{"GET", "//index.html", 200, html, "home"},
		{"GET", "/sub", 200, html, "sub"}, // no redirect
		{"GET", "/sub/", 200, html, "sub"},
		{"GET", "/sub/./index.html", 200, html, "sub"},
		{"GET", "/bare/page.html", 200, html, "page"},
		{"GET", "/bare", 404, none, "Not found"}, // no listing
		{"GET", "/bare/", 404, none, "Not found"},
		{"GET", "/trap", 404, none, "Not found"}, // F-41
		{"GET", "/trap/index.html", 404, none, "Not found"},
		{"GET", "/index.html/", 404, none, "Not found"},
		{"GET", "/index.html/x", 404, none, "Not found"},
		{"GET", "/missing.html", 404, none, "Not found"},
		{"GET", "/" + strings.Repeat("x", 300), 404, none, "Not found"},

		{"GET", "/docs", 200, html, "manual"},
		{"GET", "/d%6fcs/index.html", 200, html, "manual"},
		{"GET", "/docs/v1/mcp/deep.md", 200, "text/markdown; charset=utf-8", "deep"},
		{"GET", "/docs/only-root.txt", 404, none, "Not found"}, // no fallback to a shorter mount
		{"GET", "/docsx", 404, none, "Not found"},
		{"GET", "/docs/../index.html", 200, html, "home"}, // normalised before it is matched

		// F-40: decoded once, safely.
		{"GET", "/a%20b.html", 200, html, "blank"},
		{"GET", "/a+b.html", 404, none, "Not found"},
		{"GET", "/sub/%C3%A9.txt", 200, "text/plain; charset=utf-8", "accent"},
		{"GET", "/100%.html", 200, html, "percent"},
		{"GET", "/100%25.html", 200, html, "percent"},
		{"GET", "/%252e%252e/x", 200, "application/octet-stream", "literal escapes"},
		{"GET", "/..dotted", 200, "application/octet-stream", "dotted"},
		{"GET", "/../secret.html", 403, none, "Forbidden"},
		{"GET", "/sub/../../secret.html", 403, none, "Forbidden"},
		{"GET", "/%2e%2e/secret.html", 403, none, "Forbidden"},
		{"GET", "/sub/%2E./.%2e/secret.html", 403, none, "Forbidden"},
		{"GET", "/docs/../../secret.html", 403, none, "Forbidden"},
		{"GET", "/%2e%2e%2fsecret.html", 403, none, "Forbidden"},
		{"GET", "/sub%2findex.html", 403, none, "Forbidden"},
		{"GET", "/%2fetc%2fpasswd", 403, none, "Forbidden"},
		{"GET", "/..%5csecret.html", 403, none, "Forbidden"},
		{"GET", `/..\secret.html`, 403, none, "Forbidden"},
		{"GET", "/index.html%00.txt", 403, none, "Forbidden"},
		{"GET", "*", 404, plain, "Not found"},

		// F-39.
		{"POST", "/", 405, none, "Method not allowed: files are read with GET and HEAD"},
		{"DELETE", "/index.html", 405, none, "Method not allowed: files are read with GET and HEAD"},
		{"PUT", "/new.html", 405, none, "Method not allowed: files are read with GET and HEAD"},
		{"OPTIONS", "/index.html", 204, none, ""},

		// F-46: an endpoint wins over a file, by its method.
		{"GET", "/s/mcp", 400, "application/json; charset=utf-8", `{"error":"missing_session","error_description":"Mcp-Session-Id header is required"}`},
		{"POST", "/s/sse", 405, none, "Method not allowed: files are read with GET and HEAD"},
		{"HEAD", "/s/sse", 200, "application/octet-stream", ""},
	} {
		a := ask(t, b, c.method, c.target)
		if typ := a.Header.Get("Content-Type"); a.Status != c.status || typ != c.typ || a.Body != c.body {
			t.Errorf("%s %s:\n got %d %q %q\nwant %d %q %q", c.method, c.target, a.Status, typ, a.Body, c.status, c.typ, c.body)
		}
		if origin := a.Header.Get("Access-Control-Allow-Origin"); origin != "*" {
			t.Errorf("%s %s: Access-Control-Allow-Origin %q", c.method, c.target, origin)
		}
		if allow := a.Header.Get("Allow"); (c.status == 405) != (allow == "GET, HEAD, OPTIONS") {
			t.Errorf("%s %s: Allow %q", c.method, c.target, allow)
		}
	}
}

// Spec 01 5.9: without mounts, and where none matches.
func TestNoMount(t *testing.T) {
	_, docs := site(t)
	missing := filepath.Join(docs, "nowhere")
	for _, c := range []struct {
		mounts       []string
		target       string
		typ, body    string
		status       int
		wantsWarning bool
	}{
		{nil, "/x", none, "", 404, false},
		{nil, "/../x", none, "", 404, false},
		{[]string{"/", missing}, "/x", none, "", 404, true},
		{[]string{"/docs", docs, "/other", missing}, "/x", plain, "Not found", 404, true},
		{[]string{"/docs", docs}, "/", plain, "Not found", 404, false},
		{[]string{"/docs", docs}, "/docsx", plain, "Not found", 404, false},
		{[]string{"/docs", docs}, "/docs/x/../../y", plain, "Not found", 404, false},
		{[]string{"/docs", docs}, "/docs/../../y", plain, "Not found", 404, false},
		{[]string{"/docs", docs}, "/x%2fy", plain, "Not found", 404, false},
		{[]string{"/docs", docs}, "/docs/x%2fy", none, "Forbidden", 403, false},
		{[]string{"/docs/v%31", filepath.Join(docs, "v1")}, "/docs/v1/mcp/deep.md", "text/markdown; charset=utf-8", "deep", 200, false},
	} {
		b := serving(t, c.mounts...)
		a := ask(t, b, "GET", c.target)
		if typ := a.Header.Get("Content-Type"); a.Status != c.status || typ != c.typ || a.Body != c.body {
			t.Errorf("%v, GET %s:\n got %d %q %q\nwant %d %q %q", c.mounts, c.target, a.Status, typ, a.Body, c.status, c.typ, c.body)
		}
		if c.wantsWarning {
			b.Log.Wait(t, "[mcp-broker] www.mounts entry \""+c.mounts[len(c.mounts)-2]+"\" is skipped: ")
		}
		b.Stop(t)
	}
}

// Spec 01 5.9, and what it left to octets: types by extension, never guessed.
func TestTypes(t *testing.T) {
	types := map[string]string{
		"a.html": html, "a.htm": html, "A.HTML": html,
		"a.js": "application/javascript; charset=utf-8", "a.mjs": "application/javascript; charset=utf-8",
		"a.css": "text/css; charset=utf-8", "a.json": "application/json; charset=utf-8", "a.js.map": "application/json; charset=utf-8",
		"a.svg": "image/svg+xml", "a.png": "image/png", "a.ico": "image/x-icon", "a.woff2": "font/woff2", "a.woff": "font/woff",
		"a.txt": "text/plain; charset=utf-8", "a.md": "text/markdown; charset=utf-8", "a.wasm": "application/wasm",
		"a.jpg": "image/jpeg", "a.JPEG": "image/jpeg", "a.webp": "image/webp", "a.gif": "image/gif", "a.glb": "model/gltf-binary",
		"a.pdf": "application/pdf", "a": "application/octet-stream", "a.exe": "application/octet-stream", ".html": html,
	}
	files := map[string]string{}
	for name := range types {
		files[name] = "<html>" // what a browser would guess
	}
	b := serving(t, "/f", tree(t, files))
	for name, want := range types {
		a := ask(t, b, "GET", "/f/"+name)
		if got := a.Header.Get("Content-Type"); a.Status != 200 || got != want {
			t.Errorf("%s: %d %q, want %q", name, a.Status, got, want)
		}
		if got := a.Header.Get("X-Content-Type-Options"); got != "nosniff" {
			t.Errorf("%s: X-Content-Type-Options %q", name, got)
		}
	}
}

// Symbolic links may point anywhere inside the mount, and nowhere else.
func TestLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege")
	}
	dir := tree(t, map[string]string{"out/secret.txt": "secret", "in/real/file.txt": "inside"})
	in := filepath.Join(dir, "in")
	for link, target := range map[string]string{
		"same.txt": "real/file.txt", "dir": "real", "up.txt": "real/../real/file.txt",
		"out.txt": "../out/secret.txt", "outdir": "../out", "abs.txt": filepath.Join(dir, "out", "secret.txt"),
		"circle": "circle", "dangling": "nothing",
	} {
		must(t, os.Symlink(target, filepath.Join(in, link)))
	}
	must(t, os.Symlink(in, filepath.Join(dir, "mount")))
	b := serving(t, "/", filepath.Join(dir, "mount")) // the mount itself may be a link
	for _, c := range []struct {
		target string
		status int
		body   string
	}{
		{"/same.txt", 200, "inside"},
		{"/dir/file.txt", 200, "inside"},
		{"/up.txt", 200, "inside"},
		{"/out.txt", 403, "Forbidden"},
		{"/outdir/secret.txt", 403, "Forbidden"},
		{"/abs.txt", 403, "Forbidden"},
		{"/circle", 404, "Not found"},
		{"/dangling", 404, "Not found"},
	} {
		if a := ask(t, b, "GET", c.target); a.Status != c.status || a.Body != c.body {
			t.Errorf("GET %s: %d %q, want %d %q", c.target, a.Status, a.Body, c.status, c.body)
		}
	}
}

// F-41: an unreadable file is 403 and the broker lives on. A pipe is never
// opened.
func TestUnreadable(t *testing.T) {
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		t.Skip("everything is readable here")
	}
	dir := tree(t, map[string]string{"index.html": "home", "locked.html": "x", "closed/index.html": "x"})
	must(t, os.Chmod(filepath.Join(dir, "locked.html"), 0))
	must(t, os.Chmod(filepath.Join(dir, "closed"), 0))
	t.Cleanup(func() { must(t, os.Chmod(filepath.Join(dir, "closed"), 0o755)) })
	b := serving(t, "/", dir)
	for _, target := range []string{"/locked.html", "/closed/", "/closed/index.html"} {
		if a := ask(t, b, "GET", target); a.Status != 403 || a.Body != "Forbidden" {
			t.Errorf("GET %s: %d %q", target, a.Status, a.Body)
		}
	}
	if a := ask(t, b, "GET", "/"); a.Status != 200 || a.Body != "home" {
		t.Errorf("GET / afterwards: %d %q", a.Status, a.Body)
	}
}

// A directory that is replaced while the broker runs is served as it is then.
func TestReplacedDirectory(t *testing.T) {
	dir := filepath.Join(tree(t, map[string]string{"dist/index.html": "one"}), "dist")
	b := serving(t, "/", dir)
	expect := func(status int, body string) {
		t.Helper()
		if a := ask(t, b, "GET", "/"); a.Status != status || a.Body != body {
			t.Errorf("GET /: %d %q, want %d %q", a.Status, a.Body, status, body)
		}
	}
	expect(200, "one")
	must(t, os.RemoveAll(dir))
	expect(404, "Not found")
	must(t, os.Mkdir(dir, 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "index.html"), []byte("two"), 0o644))
	expect(200, "two")
}

// Files are not exempt from anything a slot needs: the page's own origin is
// refused at its slots (spec 01 5.5), and read here.
func TestOrigin(t *testing.T) {
	b := serving(t, "/", tree(t, map[string]string{"index.html": "home"}))
	own := "Origin: http://" + b.Host()
	if a := ask(t, b, "GET", "/", own); a.Status != 200 {
		t.Errorf("GET / with an origin: %d", a.Status)
	}
	if a := ask(t, b, "POST", "/s/mcp", own); a.Status != 403 || !strings.Contains(a.Body, "invalid_origin") {
		t.Errorf("POST /s/mcp from the page: %d %s", a.Status, a.Body)
	}
}
