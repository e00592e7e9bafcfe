package sse_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"mcpbroker/actors/registry"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/slot"
	"mcpbroker/brokertest"
	"mcpbroker/egress"
	"mcpbroker/egress/sse"
)

// F-33, row 82: a session belongs to who opened its stream. The caller is who the
// X-Principal header says.
func TestSessionOwner(t *testing.T) {
	log := brokertest.NewLog(t)
	sys := rt.NewSystem(slog.New(log), nil)
	var ids, sessions atomic.Uint64
	reg := registry.Start(sys, registry.Config{}, func(string) slot.Config {
		return slot.Config{NextID: func() uint64 { return ids.Add(1) }}
	})
	s := sse.New(sys, reg, sse.Config{
		Limit: func(string) int { return 1 << 20 }, Messages: "messages",
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
	server := httptest.NewServer(&egress.Router{
		SSE: "sse", Stream: egress.SlotFunc(s.ServeStream), Messages: "messages", Post: egress.SlotFunc(s.ServePost),
	})
	t.Cleanup(func() {
		if err := s.EndSessions(context.Background()); err != nil {
			t.Error(err)
		}
		server.Close()
		if err := sys.StopAndWait(context.Background(), reg.PID()); err != nil {
			t.Error(err)
		}
		sys.Close()
	})

	get := brokertest.NewClient(t, server.URL+"/s/sse")
	brokertest.Is(t, "nobody", get.Do("GET", ""), 401, "")
	get.Header.Set("X-Principal", "a")
	stream := get.Listen()
	endpoint, _ := strings.CutPrefix(stream.Next(), "event: endpoint\ndata: ")
	post := brokertest.NewClient(t, server.URL+endpoint)
	brokertest.Is(t, "a post of nobody", post.Post("{}"), 401, "")
	post.Header.Set("X-Principal", "b")
	brokertest.Is(t, "a post of another caller", post.Post(`{"jsonrpc":"2.0","id":1,"method":"m"}`), 403,
		failure("forbidden", "This session belongs to another caller. Open a session of your own."))
	_, id, _ := strings.Cut(endpoint, "?sessionId=")
	log.Wait(t, `[broker] refused a request on SSE session "`+id+`" of slot "s"`)
	post.Header.Set("X-Principal", "a")
	brokertest.Is(t, "a post of the owner", post.Post(`{"jsonrpc":"2.0","id":1,"method":"m"}`), 202, "")
	brokertest.Equal(t, "answer", stream.Next(), "event: message\ndata: "+`{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Provider \"s\" not connected"}}`)
}
