package mcpbroker

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// A broker that stops is alive and not ready. It takes no new connection by then:
// the handlers are asked as a request that was on its way would ask them.
func TestReadyzWhileStopping(t *testing.T) {
	b, err := New(WithHost("127.0.0.1"), WithPort(0))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	paths := b.beside(b.run)
	expect := func(when, path string, status int, body string) {
		t.Helper()
		w := httptest.NewRecorder()
		paths[path](w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
		if w.Code != status || w.Body.String() != body {
			t.Errorf("%s: %s is answered %d %q, want %d %q", when, path, w.Code, w.Body, status, body)
		}
	}
	expect("running", "/readyz", http.StatusOK, "ready\n")
	stopped := make(chan error, 1)
	go func() { stopped <- b.Stop(t.Context()) }()
	<-b.run.serving
	expect("the listener has closed", "/healthz", http.StatusOK, "ok\n")
	expect("the listener has closed", "/readyz", http.StatusServiceUnavailable, "the broker is stopping\n")
	if err := <-stopped; err != nil {
		t.Errorf("stop: %v", err)
	}
	expect("stopped", "/readyz", http.StatusServiceUnavailable, "the broker is stopping\n")
}
