package ingress_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/registry"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/slot"
	"mcpbroker/brokertest"
	"mcpbroker/egress"
	"mcpbroker/egress/streamable"
	"mcpbroker/ingress"
	"mcpbroker/ingress/socket"
)

type slotInfo = msg.SlotInfo

// virtual is a broker on connections in memory, for a synctest bubble: hours pass
// in no time, and deadlines are exact.
type virtual struct {
	t        testing.TB
	sys      *rt.System
	registry *rt.Ref
	log      *brokertest.Log
	listener *pipeListener
}

const virtualTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func startVirtual(t testing.TB, cfg slot.Config, tap rt.Tap) *virtual {
	v := &virtual{t: t, log: brokertest.NewLog(t), listener: newPipeListener()}
	v.sys = rt.NewSystem(slog.New(v.log), tap)
	var ids, sessions atomic.Uint64
	cfg.NextID = func() uint64 { return ids.Add(1) }
	v.registry = registry.Start(v.sys, registry.Config{}, func(string) slot.Config { return cfg })
	limit := func(string) int { return 4 << 20 }
	paths := ingress.Paths{Provider: "/provider", Providers: "/providers"}
	providers := ingress.NewProviders(v.sys, v.registry, socket.Config{
		Heartbeat: cfg.HeartbeatInterval, Provider: paths.Provider, Providers: paths.Providers,
	}, limit)
	clients := streamable.New(v.sys, v.registry, streamable.Config{
		Limit: limit, NextSession: func() uint64 { return sessions.Add(1) }, Trace: func() string { return virtualTrace },
	})
	router := &egress.Router{MCP: "mcp", Slot: clients}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ingress.IsUpgrade(r) {
			providers.Serve(w, r, ingress.Classify(egress.Target(r.RequestURI), paths))
			return
		}
		router.ServeHTTP(w, r)
	})}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(v.listener) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = clients.EndSessions(ctx)
		_ = providers.Stop(ctx)
		_ = server.Close()
		<-served
		if err := v.sys.StopAndWait(ctx, v.registry.PID()); err != nil {
			t.Error(err)
		}
		v.sys.Close()
	})
	return v
}

func (v *virtual) provider(path string) *brokertest.Socket {
	v.t.Helper()
	return brokertest.DialVia(v.t, "ws://virtual"+path, nil, v.listener.dial)
}

func (v *virtual) client(slot string) *brokertest.Client {
	return brokertest.NewClientVia(v.t, "http://virtual/"+slot+"/mcp", v.listener.dial)
}

// slot describes a slot; the zero value when there is none.
func (v *virtual) slot(name string) msg.SlotInfo {
	reply := make(chan msg.SlotInfo, 1)
	v.registry.Send(&msg.DescribeSlot{Slot: name, Reply: reply})
	return <-reply
}

// pipeListener accepts the other ends of dial.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.conns <- far:
		return near, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error { close(l.closed); return nil }

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "virtual", Net: "pipe"} }
