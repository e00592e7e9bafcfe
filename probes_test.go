package mcpbroker_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"mcpbroker"
	"mcpbroker/actors/msg"
	"mcpbroker/brokertest"
	"mcpbroker/config"
	"mcpbroker/reserved/guide"
)

// get asks for a path of the broker, from a page of another site if origin is
// not empty.
func get(t *testing.T, b *brokertest.Broker, path, origin string) brokertest.Answer {
	t.Helper()
	c := brokertest.NewClient(t, b.URL()+path)
	if origin != "" {
		c.Header.Set("Origin", origin)
	}
	return c.Do(http.MethodGet, "")
}

// isText compares a plain text answer that no cache may keep.
func isText(t *testing.T, what string, a brokertest.Answer, status int, body string) {
	t.Helper()
	brokertest.Is(t, what, a, status, body)
	if got := a.Header.Get("Content-Type"); got != "text/plain; charset=utf-8" {
		t.Errorf("%s: content type %q", what, got)
	}
	if got := a.Header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("%s: cache control %q", what, got)
	}
}

// A broker that runs is alive and ready, with both reserved slots and without
// one that is switched off. Who asks is not checked: there is nothing to learn.
func TestProbes(t *testing.T) {
	for name, options := range map[string][]mcpbroker.Option{
		"both":             nil,
		"no introspection": {mcpbroker.WithIntrospection(false)},
		"no aggregate":     {mcpbroker.WithAggregate(false)},
		"neither":          {mcpbroker.WithIntrospection(false), mcpbroker.WithAggregate(false)},
	} {
		t.Run(name, func(t *testing.T) {
			b := brokertest.Start(t, brokertest.Options{Configure: options})
			isText(t, "healthz", get(t, b, "/healthz", ""), http.StatusOK, "ok\n")
			isText(t, "readyz", get(t, b, "/readyz", "https://elsewhere.example"), http.StatusOK, "ready\n")
		})
	}
}

// A reserved slot that does not answer for itself makes the broker alive and not
// ready.
func TestReadyzNamesTheSilentSlot(t *testing.T) {
	for slot, kind := range map[string]string{"_all": "aggregate", "_broker": "introspection"} {
		t.Run(slot, func(t *testing.T) {
			t.Parallel()
			var silent atomic.Bool
			b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{mcpbroker.WithTap(func(actor string, message any) {
				if _, ok := message.(*msg.DescribeSlot); ok && silent.Load() && strings.HasPrefix(actor, kind) {
					panic("the question fails") // and is answered with nothing
				}
			})}})
			silent.Store(true)
			isText(t, "readyz", get(t, b, "/readyz", ""), http.StatusServiceUnavailable, "the slot "+slot+" does not answer\n")
			isText(t, "healthz", get(t, b, "/healthz", ""), http.StatusOK, "ok\n")
			silent.Store(false)
			isText(t, "readyz", get(t, b, "/readyz", ""), http.StatusOK, "ready\n")
		})
	}
}

// /llms.txt names every page. Its text is for agents, so that pages of other
// sites are refused like everywhere.
func TestLLMs(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{mcpbroker.WithAllowedOrigins("https://ours.example")}})
	for _, origin := range []string{"", "https://ours.example"} {
		a := get(t, b, "/llms.txt", origin)
		isText(t, "llms.txt", a, http.StatusOK, a.Body)
		for _, page := range guide.Topics() {
			if link := "](" + page.URI + "): " + page.Summary; !strings.Contains(a.Body, link) {
				t.Errorf("origin %q: no link %q", origin, link)
			}
		}
		if address := b.Broker.URL() + "/_broker/mcp"; !strings.Contains(a.Body, address) {
			t.Errorf("origin %q: the text does not name %s", origin, address)
		}
	}
	a := get(t, b, "/llms.txt", "https://elsewhere.example")
	if a.Status != http.StatusForbidden || !strings.HasPrefix(a.Body, `{"error":"invalid_origin",`) {
		t.Errorf("another site is answered %d %s", a.Status, a.Body)
	}
}

// The paths beside the slots are configurable, and off when they are empty.
func TestPathsBesideTheSlots(t *testing.T) {
	paths := config.Default().Paths
	paths.Healthz, paths.Readyz, paths.LLMs = "/live", "", "/agents.txt"
	b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{mcpbroker.WithPaths(paths)}})
	isText(t, "/live", get(t, b, "/live", ""), http.StatusOK, "ok\n")
	if a := get(t, b, "/agents.txt", ""); a.Status != http.StatusOK || !strings.HasPrefix(a.Body, "# mcp-broker\n") {
		t.Errorf("/agents.txt: %d %.80s", a.Status, a.Body)
	}
	for _, off := range []string{"/healthz", "/readyz", "/llms.txt"} {
		if a := get(t, b, off, ""); a.Status != http.StatusNotFound {
			t.Errorf("%s: %d %s", off, a.Status, a.Body)
		}
	}
}
