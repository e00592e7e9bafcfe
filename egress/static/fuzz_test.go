package static_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpbroker/egress/static"
)

// FuzzServed: whatever the target says, what is served lies inside its mount
// (F-40).
func FuzzServed(f *testing.F) {
	dir := tree(f, map[string]string{
		"secret.txt": "SECRET", "outside/secret.txt": "SECRET",
		"in/index.html": "inside in", "in/a/b.txt": "inside in", "in/..dots/c": "inside in", "in/%2e%2e/d": "inside in",
		"other/index.html": "inside other", "other/secret.txt": "inside other",
	})
	for link, target := range map[string]string{"in/out": "../outside", "in/up": "..", "in/same": "a", "other/abs": dir} {
		must(f, os.Symlink(target, filepath.Join(dir, filepath.FromSlash(link))))
	}
	both := static.New([]static.Mount{{Prefix: "/", Dir: filepath.Join(dir, "in")}, {Prefix: "/other", Dir: filepath.Join(dir, "other")}},
		slog.New(slog.DiscardHandler))
	for _, target := range []string{
		"/", "/a/b.txt", "/a/../../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "/..%5csecret.txt", "/a%00/../secret.txt",
		"/out/secret.txt", "/up/secret.txt", "/other/../secret.txt", "/other/secret.txt", "/other/abs/secret.txt",
		"/%252e%252e/secret.txt", "//..//secret.txt", "http://host/../secret.txt", "/a/b.txt/../../../secret.txt?q", "*", "",
	} {
		f.Add(target)
	}
	f.Fuzz(func(t *testing.T, target string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RequestURI = target
		w := httptest.NewRecorder()
		both.ServeHTTP(w, r)
		body := w.Body.String()
		switch w.Code {
		case http.StatusOK:
			// An escape may spell either prefix, so that only the content tells.
			if !strings.HasPrefix(body, "inside ") && body != `{"files":[]}` {
				t.Errorf("%q serves %q", target, body)
			}
		case http.StatusForbidden, http.StatusNotFound:
			if body != "Forbidden" && body != "Not found" {
				t.Errorf("%q: %d %q", target, w.Code, body)
			}
		default:
			t.Errorf("%q: %d %q", target, w.Code, body)
		}
	})
}
