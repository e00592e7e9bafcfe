package static_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Conditional requests, ranges and HEAD.
func TestCaching(t *testing.T) {
	const body = "0123456789"
	dir := tree(t, map[string]string{"a.txt": body, "b.txt": body})
	when := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	must(t, os.Chtimes(filepath.Join(dir, "a.txt"), when, when))
	b := serving(t, "/", dir)

	const modified = "Fri, 02 Jan 2026 03:04:05 GMT"
	first := ask(t, b, "GET", "/a.txt")
	tag := first.Header.Get("ETag")
	for name, want := range map[string]string{
		"Last-Modified": modified, "Cache-Control": "no-cache", "Accept-Ranges": "bytes", "Content-Length": "10",
	} {
		if got := first.Header.Get(name); got != want {
			t.Errorf("%s %q, want %q", name, got, want)
		}
	}
	if !strings.HasPrefix(tag, `"`) || tag == ask(t, b, "GET", "/b.txt").Header.Get("ETag") {
		t.Errorf("ETag %s is not of this file", tag)
	}
	for _, c := range []struct {
		method string
		header []string
		status int
		body   string
	}{
		{"HEAD", nil, 200, ""},
		{"GET", []string{"If-None-Match: " + tag}, 304, ""},
		{"GET", []string{`If-None-Match: "other"`}, 200, body},
		{"GET", []string{"If-Modified-Since: " + modified}, 304, ""},
		{"GET", []string{"If-Modified-Since: Thu, 01 Jan 2026 00:00:00 GMT"}, 200, body},
		{"GET", []string{`If-Match: "other"`}, 412, ""},
		{"GET", []string{"Range: bytes=2-4"}, 206, "234"},
		{"GET", []string{"Range: bytes=-2"}, 206, "89"},
		{"GET", []string{"Range: bytes=8-"}, 206, "89"},
		{"GET", []string{"Range: bytes=10-"}, 416, "invalid range: failed to overlap\n"},
		{"GET", []string{"Range: bytes=2-4", "If-Range: " + tag}, 206, "234"},
		{"GET", []string{"Range: bytes=2-4", `If-Range: "other"`}, 200, body},
	} {
		a := ask(t, b, c.method, "/a.txt", c.header...)
		if a.Status != c.status || a.Body != c.body {
			t.Errorf("%s %q: %d %q, want %d %q", c.method, c.header, a.Status, a.Body, c.status, c.body)
		}
	}
	must(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("new"), 0o644))
	if a := ask(t, b, "GET", "/a.txt", "If-None-Match: "+tag); a.Status != 200 || a.Body != "new" {
		t.Errorf("after a change: %d %q", a.Status, a.Body)
	}
}

// Spec 01 5.10.
func TestSamplesIndex(t *testing.T) {
	dir := tree(t, map[string]string{
		"full/samples/b.js": "", "full/samples/a.html": "", "full/samples/.hidden": "", "full/samples/sub/c.js": "",
		"empty/samples/": "", "file/samples": "", "bare/x": "",
	})
	const json = "application/json; charset=utf-8"
	nothing := `{"files":[]}`
	for _, c := range []struct {
		mounts         []string
		method, target string
		status         int
		typ, body      string
	}{
		{[]string{"/", "full", "/docs", "empty"}, "GET", "/__samples_index__", 200, json, `{"files":[".hidden","a.html","b.js"]}`},
		{[]string{"/", "full"}, "GET", "/__samples_index__?x", 200, json, `{"files":[".hidden","a.html","b.js"]}`},
		{[]string{"/", "full"}, "GET", "/__samples_index__/", 404, none, "Not found"},
		{[]string{"/", "full"}, "GET", "/__samples%5findex__", 404, none, "Not found"},
		{[]string{"/", "full"}, "HEAD", "/__samples_index__", 404, none, ""},
		{[]string{"/", "full"}, "POST", "/__samples_index__", 405, none, "Method not allowed: files are read with GET and HEAD"},
		{[]string{"/", "empty"}, "GET", "/__samples_index__", 200, json, nothing},
		{[]string{"/", "file"}, "GET", "/__samples_index__", 200, json, nothing},
		{[]string{"/", "bare"}, "GET", "/__samples_index__", 200, json, nothing},
		{[]string{"/docs", "full"}, "GET", "/__samples_index__", 200, json, nothing},
		{nil, "GET", "/__samples_index__", 200, json, nothing},
		{nil, "POST", "/__samples_index__", 404, none, ""},
	} {
		var mounts []string
		for i, m := range c.mounts {
			if i%2 == 1 {
				m = filepath.Join(dir, m)
			}
			mounts = append(mounts, m)
		}
		b := serving(t, mounts...)
		a := ask(t, b, c.method, c.target)
		if typ := a.Header.Get("Content-Type"); a.Status != c.status || typ != c.typ || a.Body != c.body {
			t.Errorf("%v, %s %s:\n got %d %q %q\nwant %d %q %q", c.mounts, c.method, c.target, a.Status, typ, a.Body, c.status, c.typ, c.body)
		}
		b.Stop(t)
	}
}
