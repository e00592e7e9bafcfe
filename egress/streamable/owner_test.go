package streamable_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"mcpbroker/actors/registry"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/slot"
	"mcpbroker/brokertest"
	"mcpbroker/egress/streamable"
)

// endpoint serves slot "s" alone. The caller is who the X-Principal header says.
type endpoint struct {
	*streamable.Server
	url string
	log *brokertest.Log
}

func newEndpoint(t *testing.T) *endpoint {
	t.Helper()
	e := &endpoint{log: brokertest.NewLog(t)}
	sys := rt.NewSystem(slog.New(e.log), nil)
	var ids, sessions atomic.Uint64
	reg := registry.Start(sys, registry.Config{}, func(string) slot.Config {
		return slot.Config{NextID: func() uint64 { return ids.Add(1) }}
	})
	e.Server = streamable.New(sys, reg, streamable.Config{
		Limit: func(string) int { return 1 << 20 },
		Authenticate: func(w http.ResponseWriter, r *http.Request, _ string) (string, bool) {
			who := r.Header.Get("X-Principal")
			if who == "" {
				w.WriteHeader(http.StatusUnauthorized)
			}
			return who, who != ""
		},
		NextSession: func() uint64 { return sessions.Add(1) },
		Trace:       func() string { return "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" },
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { e.ServeSlot(w, r, "s") }))
	e.url = server.URL + "/s/mcp"
	t.Cleanup(func() {
		if err := e.EndSessions(context.Background()); err != nil {
			t.Error(err)
		}
		server.Close()
		if err := sys.StopAndWait(context.Background(), reg.PID()); err != nil {
			t.Error(err)
		}
		sys.Close()
	})
	return e
}

func (e *endpoint) client(t *testing.T, principal string) *brokertest.Client {
	c := brokertest.NewClient(t, e.url)
	c.Header.Set("X-Principal", principal)
	return c
}

const foreign = `{"error":"forbidden","error_description":"This session belongs to another caller. Open a session of your own."}`

// F-33, row 82, section 9 item 53: a session belongs to who created it, from its
// first request on, on every method; its owner is not harmed.
func TestSessionOwner(t *testing.T) {
	e := newEndpoint(t)
	a, b := e.client(t, "a"), e.client(t, "b")
	a.Initialize()
	b.Session = a.Session
	for _, method := range []string{"POST", "GET", "DELETE", "PUT"} {
		brokertest.Is(t, method+" by another caller", b.Do(method, `{"jsonrpc":"2.0","method":"m"}`), 403, foreign)
	}
	b.Header.Set("Mcp-Protocol-Version", "x")
	brokertest.Is(t, "before the version check (5.1)", b.Do("POST", ""), 403, foreign)
	e.log.Wait(t, `[broker] refused a request on Streamable HTTP session "`+a.Session+`" of slot "s"`)
	brokertest.Is(t, "the owner", a.Post(`{"jsonrpc":"2.0","method":"m"}`), 202, "")
	for _, forged := range []string{a.Session + "&owner=b", a.Session + " ", " " + a.Session[1:], a.Session + ", " + a.Session} {
		c := e.client(t, "b")
		c.Session = forged
		if got := c.Do("POST", `{"jsonrpc":"2.0","method":"m"}`); got.Status != 404 && got.Status != 403 {
			t.Errorf("forged session %q: %d %s", forged, got.Status, got.Body)
		}
	}
	anonymous := brokertest.NewClient(t, e.url)
	anonymous.Session = a.Session
	brokertest.Is(t, "without credentials", anonymous.Post(`{"jsonrpc":"2.0","method":"m"}`), 401, "")
	brokertest.Is(t, "the owner ends it", a.Do("DELETE", ""), 204, "")
}

// Spec 01 5.5: the origin comes before the credentials.
func TestOriginBeforeCredentials(t *testing.T) {
	e := newEndpoint(t)
	c := brokertest.NewClient(t, e.url)
	c.Header.Set("Origin", "https://x")
	if a := c.Post(brokertest.InitializeFrame); a.Status != 403 {
		t.Errorf("status %d, want 403", a.Status)
	}
}

// Spec 01 5.12: once the endpoint stops, a request is answered 503, also one that
// would open a session.
func TestStopped(t *testing.T) {
	e := newEndpoint(t)
	c := e.client(t, "a")
	c.Initialize()
	stream := c.Listen()
	stream.Next()
	if err := e.EndSessions(t.Context()); err != nil {
		t.Fatal(err)
	}
	brokertest.Equal(t, "the stream", stream.Next(), "")
	brokertest.Is(t, "a request", c.Post(`{"jsonrpc":"2.0","method":"m"}`), 503, sessionClosed)
	brokertest.Is(t, "a new session", e.client(t, "a").Post(brokertest.InitializeFrame), 503, sessionClosed)
	brokertest.Is(t, "its session", c.Do("DELETE", ""), 404, unknownSession)
}
