package provider

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
)

// memoryNet is a broker on in-memory connections, for tests with a fake clock.
// While down, dialling fails at once. A silent broker never reads.
type memoryNet struct {
	conns  chan net.Conn
	peers  chan *memoryPeer
	silent bool

	mu    sync.Mutex
	down  bool
	dials []time.Time
}

// memoryPeer reads all the time, since an in-memory connection has no buffer.
type memoryPeer struct {
	*peer
	frames chan string
}

func (p *memoryPeer) expect(want string) {
	p.t.Helper()
	if got := receive(p.t, p.frames); got != want {
		p.t.Fatalf("peer: want frame %s, got %s", want, got)
	}
}

func (p *memoryPeer) read() {
	for {
		_, frame, err := p.conn.Read(context.Background())
		if err != nil {
			_ = p.conn.CloseNow()
			return
		}
		p.frames <- string(frame)
	}
}

func newMemoryNet(t *testing.T) *memoryNet {
	n := &memoryNet{conns: make(chan net.Conn), peers: make(chan *memoryPeer, 16)}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Errorf("accept: %v", err)
			return
		}
		p := &memoryPeer{&peer{t: t, req: r, conn: conn}, make(chan string, 128)}
		n.peers <- p
		if !n.silent {
			p.read()
		}
	})}
	go func() { _ = srv.Serve(n) }()
	t.Cleanup(func() { _ = srv.Close() })
	return n
}

func (n *memoryNet) Accept() (net.Conn, error) {
	c, ok := <-n.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (n *memoryNet) Close() error   { close(n.conns); return nil }
func (n *memoryNet) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

func (n *memoryNet) setDown(down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = down
}

// times returns the moments of the dials so far, and forgets them.
func (n *memoryNet) times() []time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := n.dials
	n.dials = nil
	return d
}

func (n *memoryNet) client() *http.Client {
	dial := func(context.Context, string, string) (net.Conn, error) {
		n.mu.Lock()
		n.dials = append(n.dials, time.Now())
		down := n.down
		n.mu.Unlock()
		if down {
			return nil, errors.New("connection refused")
		}
		ours, theirs := net.Pipe()
		n.conns <- theirs
		return ours, nil
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
}

func between(t *testing.T, what string, got, low, high time.Duration) {
	t.Helper()
	if got < low || got > high {
		t.Errorf("%s: %v is not within %v to %v", what, got, low, high)
	}
}

// spec 01 section 6: 1 s doubling to 30 s, times 0.5 to 1.0; the counter starts
// again after each open.
func TestTunnelReconnectSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemoryNet(t)
		r := newRecorder(t)
		tun := NewTunnel("ws://broker/providers", WithHTTPClient(n.client()), WithLogger(newLogbook().logger()))
		m := tun.Provider("a", r.callbacks())
		connect(t, m)
		p := <-n.peers
		p.expect(announcement("a"))
		for range 2 { // the second round shows the counter starting again
			n.times()
			n.setDown(true)
			lost := time.Now()
			p.drop()
			time.Sleep(3 * time.Minute)
			previous := lost
			for i, at := range n.times() {
				full := min(time.Second<<min(i, 5), 30*time.Second)
				between(t, "redial", at.Sub(previous), full/2, full)
				previous = at
			}
			r.expect("open", "close")
			n.setDown(false)
			p = <-n.peers
			p.expect(announcement("a"))
			between(t, "last redial", time.Since(previous), 15*time.Second, 30*time.Second)
		}
		r.expect("open")
		p.drop()
	})
}

// spec 01 section 6: a new registration cancels the timer and dials at once; so
// does the last close, which leaves nothing behind.
func TestTunnelBackoffIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemoryNet(t)
		n.setDown(true)
		tun := NewTunnel("ws://broker/providers", WithHTTPClient(n.client()), WithLogger(newLogbook().logger()))
		a, b := tun.Provider("a", Events{}), tun.Provider("b", Events{})

		connected := make(chan error, 1)
		go func() { connected <- a.Connect(context.Background()) }()
		time.Sleep(2 * time.Minute)
		n.setDown(false)
		begin := time.Now()
		connect(t, b)
		if waited := time.Since(begin); waited != 0 {
			t.Errorf("new registration dialled after %v", waited)
		}
		if err := <-connected; err != nil {
			t.Errorf("waiting Connect: %v", err)
		}
		p := <-n.peers
		p.expect(announcement("a"))
		p.expect(announcement("b"))

		n.setDown(true)
		p.drop()
		time.Sleep(time.Minute)
		send(t, a, note(1))
		n.times()
		_ = a.Close()
		_ = b.Close()
		a.wait()
		time.Sleep(5 * time.Minute)
		if got := n.times(); len(got) != 0 {
			t.Errorf("dialled %d times after the last close", len(got))
		}
	})
}

// Connect waits for a broker that is down, for as long as its context allows.
func TestTunnelConnectContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemoryNet(t)
		n.setDown(true)
		m := NewTunnel("ws://broker/providers", WithHTTPClient(n.client()), WithLogger(newLogbook().logger())).Provider("a", Events{})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begin := time.Now()
		if err := m.Connect(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("want the context's error, got %v", err)
		}
		if took := time.Since(begin); took != 10*time.Second {
			t.Errorf("Connect took %v", took)
		}
		if got := len(n.times()); got < 4 || got > 6 {
			t.Errorf("dialled %d times in 10 s", got)
		}
		m.wait()
	})
}

// The closing handshake with a silent broker is bounded.
func TestDirectCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemoryNet(t)
		n.silent = true
		d := NewDirect("ws://broker/provider/a", Events{}, WithHTTPClient(n.client()))
		connect(t, d)
		p := <-n.peers
		begin := time.Now()
		_ = d.Close()
		if took := time.Since(begin); took != closeTimeout {
			t.Errorf("Close took %v", took)
		}
		p.drop()
	})
}
