package ingress_test

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpbroker"
	"mcpbroker/actors/slot"
	"mcpbroker/brokertest"
)

// Row 22: 500 sessions and 200 provider sockets come and go; no slot remembers
// them and no goroutine stays.
func TestChurn(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{Plain: true})
	p := b.Dedicated(t, "s")
	first := brokertest.NewClient(t, b.MCPURL("s"))
	first.Handshake(p)
	baseline := goroutines()
	churnSessions(t, b, 500)
	churnSockets(t, b, 200)
	b.Sessions(t, "s", 1)
	settled(t, baseline+8) // 8: the HTTP connections kept open
	equal(t, "the first session", call(first, p, `{"jsonrpc":"2.0","id":1,"method":"m"}`), `{"jsonrpc":"2.0","id":1,"result":{}}`)
	list, err := b.Slots(t.Context())
	if err != nil || len(list) != 201 {
		t.Fatalf("%d slots, %v", len(list), err)
	}
	for _, i := range list {
		if i.Name != "s" && !i.Unused() {
			t.Errorf("still in use: %+v", i)
		}
	}
}

// churnSessions opens n sessions, every other one with a stream, and ends them.
func churnSessions(t *testing.T, b *brokertest.Broker, n int) {
	var workers sync.WaitGroup
	const parallel = 10
	for w := range parallel {
		workers.Go(func() {
			c := brokertest.NewClient(t, b.MCPURL("s"))
			defer c.Close()
			for i := range n / parallel {
				c.Session = ""
				a, err := c.Try(t.Context(), "POST", brokertest.InitializeFrame)
				if err != nil || a.Status != 200 {
					t.Errorf("session %d/%d: %d %v", w, i, a.Status, err)
					return
				}
				c.Session = a.Header.Get("Mcp-Session-Id")
				if i%2 == 0 {
					stream := c.Listen()
					stream.Next()
					defer stream.Close()
				}
				if a, err := c.Try(t.Context(), "DELETE", ""); err != nil || a.Status != 204 {
					t.Errorf("end of session %d/%d: %d %v", w, i, a.Status, err)
					return
				}
			}
		})
	}
	workers.Wait()
}

// churnSockets connects n providers at once, half of them on shared sockets, and
// ends them: some say goodbye, some do not.
func churnSockets(t *testing.T, b *brokertest.Broker, n int) {
	sockets := make([]*brokertest.Socket, n)
	for i := range sockets {
		name := fmt.Sprintf("p%d", i)
		if i%2 == 0 {
			sockets[i] = brokertest.Dial(t, b.ProviderURL(name), nil)
			continue
		}
		sockets[i] = brokertest.Dial(t, b.ProvidersURL(), nil)
		sockets[i].Send(`{"provider":"` + name + `","payload":{"type":"register"}}`)
	}
	for i := range sockets {
		b.Connected(t, fmt.Sprintf("p%d", i))
	}
	var closers sync.WaitGroup
	for i, s := range sockets {
		closers.Go(func() {
			if i%3 == 0 {
				s.Drop()
			} else {
				s.Close(1000, "")
			}
		})
	}
	closers.Wait()
	for i := range sockets {
		b.Empty(t, fmt.Sprintf("p%d", i))
	}
}

// settled waits until at most n goroutines are left.
func settled(t *testing.T, n int) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for goroutines() > n {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%d goroutines, want at most %d\n%s", goroutines(), n, stacks())
		}
	}
}

// goroutines counts those that are not parked for reuse by the runtime kit.
func goroutines() int { return strings.Count(stacks(), "\n\ngoroutine ") + 1 }

// stacks shows every goroutine that is not parked for reuse.
func stacks() string {
	all := make([]byte, 4<<20)
	all = all[:runtime.Stack(all, true)]
	var busy []string
	for stack := range strings.SplitSeq(string(all), "\n\n") {
		_, frames, _ := strings.Cut(stack, "\n")
		if !strings.HasPrefix(frames, "mcpbroker/actors/rt.(*jobs).work(") {
			busy = append(busy, stack)
		}
	}
	return strings.Join(busy, "\n\n")
}

// Bar 2 and 3 of the bounds: a provider floods notifications that a client does
// not read. Memory stays bounded, the flooding slot still answers, and so do
// other slots.
func TestNotificationFlood(t *testing.T) {
	const flood = 50_000
	b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{
		mcpbroker.WithProviderHeartbeatInterval(0), // the peer answers no ping
		mcpbroker.WithProviderRequestTimeout(0),
	}})
	p, q := brokertest.DialRaw(t, b.ProviderURL("s")), b.Dedicated(t, "other")
	b.Connected(t, "s")
	slow, active, other := brokertest.NewClient(t, b.MCPURL("s")), brokertest.NewClient(t, b.MCPURL("s")), brokertest.NewClient(t, b.MCPURL("other"))
	slow.Handshake(rawProvider{p})
	active.Initialize()
	other.Handshake(q)
	slow.Listen() // and never reads
	before := heap()

	done := make(chan struct{})
	go func() {
		defer close(done)
		var frames []byte
		for i := range flood {
			frames = brokertest.AppendFrame(frames, fin|text, fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/noise","params":{"n":%d,"text":"%080d"}}`, i, i))
			if len(frames) < 1<<16 && i < flood-1 {
				continue
			}
			if err := p.TryWrite(frames); err != nil {
				t.Errorf("frame %d: %v", i, err)
				return
			}
			frames = frames[:0]
		}
	}()
	calls := 0
	for flooding := true; flooding; calls++ {
		select {
		case <-done:
			flooding = false
		default:
		}
		equal(t, "another slot during the flood", call(other, q, `{"jsonrpc":"2.0","id":1,"method":"m"}`), `{"jsonrpc":"2.0","id":1,"result":{}}`)
	}
	// The answer comes behind all that is still under way, which takes its time.
	reply := active.Start(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
	brokertest.Respond(rawProvider{p}, rawProvider{p}.Receive(), "{}")
	equal(t, "the flooded slot", (<-reply).Body, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	if grown := heap() - before; grown > 16<<20 {
		t.Errorf("the heap has grown by %d MiB", grown>>20)
	}
	t.Logf("%d calls on the other slot during the flood", calls)
}

// rawProvider reads messages only, and answers no ping.
type rawProvider struct{ *brokertest.Raw }

func (p rawProvider) Send(frame string) { p.Text(frame) }

func (p rawProvider) Receive() string {
	_, payload, err := p.Read()
	if err != nil {
		panic(err)
	}
	return string(payload)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Bar 2: a provider that stops reading is closed with 1013 once its outbox is
// full, after what fits; other slots do not notice.
func TestSlowProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // on a real network it may take nothing for too long
		v := startVirtual(t, slot.Config{}, nil)
		q := v.provider("/provider/other")
		d := v.client("other")
		d.Handshake(q)
		c := v.client("s")
		c.Initialize()
		p := brokertest.RawVia(t, "ws://virtual/provider/s", v.listener.dial)
		replayed := rawProvider{p}.Receive()
		brokertest.Respond(rawProvider{p}, replayed, "{}")
		note := `{"jsonrpc":"2.0","method":"n","params":["` + strings.Repeat("x", 1<<20) + `"]}`
		const most = 64
		for n := 0; n < most && len(v.log.Lines("reads too slowly")) == 0; n++ {
			if a := c.Post(note); a.Status != 202 {
				t.Fatalf("notification: %d %s", a.Status, a.Body)
			}
			synctest.Wait()
		}
		equal(t, "another slot", call(d, q, `{"jsonrpc":"2.0","id":1,"method":"m"}`), `{"jsonrpc":"2.0","id":1,"result":{}}`)
		v.log.Wait(t, `[broker] provider socket for slot "s" was closed: it reads too slowly`)
		code, reason, messages := p.Closed()
		if code != 1013 || reason != "The provider reads too slowly" || messages >= most || messages < 10 {
			t.Errorf("closed %d %q after %d messages", code, reason, messages)
		}
		synctest.Wait()
		if info := v.slot("s"); info.Connected || info.PendingCount != 0 {
			t.Errorf("the slot without it: %+v", info)
		}
		v.provider("/provider/s")
		synctest.Wait()
		if !v.slot("s").Connected {
			t.Error("the next provider was not admitted")
		}
	})
}

// dialNarrow makes a connection over which the system takes little that is not read.
func dialNarrow(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err == nil {
		err = conn.(*net.TCPConn).SetReadBuffer(64 << 10)
	}
	return conn, err
}

// A provider that takes nothing for 10 s, though little waits for it, is cut off,
// and the log says why.
func TestStuckProvider(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{
		mcpbroker.WithProviderHeartbeatInterval(0), // the peer answers no ping
	}})
	c := brokertest.NewClient(t, b.MCPURL("s"))
	c.Initialize()
	p := brokertest.RawVia(t, b.ProviderURL("s"), dialNarrow)
	b.Connected(t, "s")
	note := `{"jsonrpc":"2.0","method":"n","params":["` + strings.Repeat("x", 1<<20) + `"]}`
	for range 12 {
		if a := c.Post(note); a.Status != 202 {
			t.Fatalf("notification: %d %s", a.Status, a.Body)
		}
	}
	b.Log.Wait(t, `[broker] provider socket for slot "s" took nothing that was sent to it for 10s; it was terminated`)
	if code, _, messages := p.Closed(); code != 1006 || messages >= 12 {
		t.Errorf("closed %d after %d messages", code, messages)
	}
	b.Empty(t, "s")
}
