package main

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"mcpbroker/brokertest"
)

// The way to a broker: straight, through a proxy that passes everything, and through
// ones that do not.
func TestDoctorProxy(t *testing.T) {
	broker := brokertest.Start(t, brokertest.Options{})
	origin, err := url.Parse(broker.URL())
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(origin)
	proxy.FlushInterval = -1
	tests := []struct {
		name  string
		serve http.HandlerFunc
		want  []string // beginnings of the lines behind the first
	}{
		{"transparent", proxy.ServeHTTP, []string{"ok event stream: the first bytes came after ", "ok WebSocket: the upgrade passes []"}},
		{"no upgrades", func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("Upgrade")
			r.Header.Del("Connection")
			proxy.ServeHTTP(w, r)
		}, []string{"ok event stream: ", "fail WebSocket: the upgrade is answered HTTP 404 Not Found [let the proxy speak HTTP/1.1 to the broker"}},
		{"no GET", func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && r.Header.Get("Upgrade") == "" {
				http.Error(w, "", http.StatusMethodNotAllowed)
				return
			}
			proxy.ServeHTTP(w, r)
		}, []string{"fail event stream: GET is answered HTTP 405 Method Not Allowed [", "ok WebSocket: "}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(tt.serve)
			defer server.Close()
			expectWay(t, server.URL, tt.want)
		})
	}
	t.Run("straight", func(t *testing.T) { expectWay(t, broker.URL(), tests[0].want) })
	t.Run("nobody", func(t *testing.T) {
		var f findings
		b := newBench(t)
		b.checkProxy(t.Context(), &f, address{base: "http://127.0.0.1:1", mcp: "/mcp"})
		if !strings.HasPrefix(f.String(), "fail way: Cannot reach a broker at http://127.0.0.1:1: ") {
			t.Errorf("findings\n%s", f)
		}
	})
}

// A proxy that collects the answer holds back even its head.
func TestDoctorBufferingProxy(t *testing.T) {
	f := newFakeBroker(t)
	inner := f.Config.Handler
	f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			<-r.Context().Done()
			return
		}
		inner.ServeHTTP(w, r)
	})
	b := newBench(t)
	c, err := b.connect(t.Context(), address{base: f.URL, mcp: "/mcp"}, brokerSlot)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	var found findings
	c.checkStream(t.Context(), &found, 50*time.Millisecond)
	expectFindings(t, found, "fail event stream: nothing came within 50ms, though a broker sends at once: a proxy collects the answer "+
		"[turn buffering and compression of text/event-stream off; in nginx: proxy_buffering off; gzip off;]\n")
}

func expectWay(t *testing.T, base string, want []string) {
	t.Helper()
	var f findings
	newBench(t).checkProxy(t.Context(), &f, address{base: base, mcp: "/mcp"})
	lines := strings.Split(f.String(), "\n")
	for i, w := range append([]string{"ok way: a broker answers at " + base + "/_broker/mcp []"}, want...) {
		if len(lines) <= i || !strings.HasPrefix(lines[i], w) {
			t.Errorf("findings\n%s, want line %d to begin %q", f, i+1, w)
		}
	}
}
