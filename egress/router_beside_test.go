package egress_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"mcpbroker/egress"
)

// A path beside the slots is an exact one, for reading only. A slot of the same
// name keeps its endpoints.
func TestRouterBeside(t *testing.T) {
	says := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
	}
	router := &egress.Router{
		MCP: "mcp", Slot: named{}, Fallback: says("file"),
		Beside: map[string]http.HandlerFunc{"/healthz": says("beside")},
	}
	for _, c := range []struct{ method, target, body string }{
		{"GET", "/healthz", "beside"},
		{"HEAD", "/healthz?verbose", "beside"},
		{"GET", "http://host/healthz", "beside"},
		{"POST", "/healthz", "file"},
		{"GET", "/healthz/", "file"},
		{"GET", "//healthz", "file"},
		{"GET", "/Healthz", "file"},
		{"GET", "/x/healthz", "file"},
		{"POST", "/healthz/mcp", `slot "healthz"`},
	} {
		r := httptest.NewRequest(c.method, "/", nil)
		r.RequestURI = c.target
		w := httptest.NewRecorder()
		router.ServeHTTP(w, r)
		if w.Body.String() != c.body {
			t.Errorf("%s %s: %s, want %s", c.method, c.target, w.Body, c.body)
		}
	}
}
