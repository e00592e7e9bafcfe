package mcpbroker_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbroker"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/wire"
	"mcpbroker/brokertest"
	"mcpbroker/config"
	"mcpbroker/provider"
)

func local(t testing.TB, more ...mcpbroker.Option) *mcpbroker.Broker {
	t.Helper()
	b, err := mcpbroker.New(append([]mcpbroker.Option{mcpbroker.WithHost("127.0.0.1"), mcpbroker.WithPort(0)}, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Spec 01 5.12, section 9 item 4: stop before start, start twice, stop twice.
func TestLifecycle(t *testing.T) {
	ctx := t.Context()
	b := local(t)
	if b.Addr() != nil {
		t.Errorf("address before the start: %v", b.Addr())
	}
	if err := b.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := b.Start(ctx); !errors.Is(err, mcpbroker.ErrStarted) {
		t.Errorf("second start: %v", err)
	}
	if port := b.Addr().(*net.TCPAddr).Port; port == 0 || !strings.HasSuffix(b.URL(), ":"+b.Addr().String()[len("127.0.0.1:"):]) || !strings.HasPrefix(b.URL(), "http://localhost:") {
		t.Errorf("address %v, URL %s", b.Addr(), b.URL())
	}
	for range 2 {
		if err := b.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	}
	if err := b.Start(ctx); !errors.Is(err, mcpbroker.ErrStarted) {
		t.Errorf("start after the stop: %v", err)
	}
	select {
	case err := <-b.Done():
		t.Errorf("Done delivered %v", err)
	default:
	}

	unused := local(t)
	for range 2 {
		if err := unused.Stop(ctx); err != nil {
			t.Errorf("stop before the start: %v", err)
		}
	}
	if err := unused.Start(ctx); !errors.Is(err, mcpbroker.ErrStarted) {
		t.Errorf("start of a stopped broker: %v", err)
	}
}

// Stops that race each other all return once the broker has stopped.
func TestConcurrentStops(t *testing.T) {
	b := local(t)
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := b.Stop(context.Background()); err != nil {
				t.Errorf("stop: %v", err)
			}
		})
	}
	all.Wait()
}

// A configuration that is wrong in several places says so at once.
func TestNewValidates(t *testing.T) {
	_, err := mcpbroker.New(mcpbroker.WithPort(-1), mcpbroker.WithProviderTakeover("sometimes"), mcpbroker.WithSlot("_all", config.Slot{}))
	var problems *config.Error
	if !errors.As(err, &problems) {
		t.Fatalf("New: %v", err)
	}
	for _, part := range []string{"configure the broker", `"port"`, `"providerTakeover"`, `_all`} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q lacks %q", err, part)
		}
	}
}

// WithConfig copies: the caller's value is neither shared nor changed, and two
// brokers made from one configuration do not touch each other's slots.
func TestConfigIsCopied(t *testing.T) {
	c := config.Default()
	c.Slots = map[string]config.Slot{"kept": {Initialize: "relay"}}
	_, err := mcpbroker.New(mcpbroker.WithConfig(c), mcpbroker.WithPort(1), mcpbroker.WithSlot("added", config.Slot{Initialize: "relay"}))
	if err != nil {
		t.Fatal(err)
	}
	if c.Port != 3000 || len(c.Slots) != 1 {
		t.Errorf("the caller's configuration changed: port %d, slots %v", c.Port, c.Slots)
	}
}

// Section 9 item 4, row 35: an address in use refuses the start at once, in the
// words an operator needs; the broker that failed can be stopped.
func TestAddressInUse(t *testing.T) {
	first := local(t)
	if err := first.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Stop(context.Background()) }()
	port := first.Addr().(*net.TCPAddr).Port
	second := local(t, mcpbroker.WithPort(port))
	began := time.Now()
	err := second.Start(t.Context())
	if after := time.Since(began); after > 15*time.Second {
		t.Errorf("it took %v to fail", after)
	}
	var listen *mcpbroker.ListenError
	if !errors.As(err, &listen) || listen.Port != port || listen.Host != "127.0.0.1" {
		t.Fatalf("start: %v", err)
	}
	base := first.URL()
	for _, part := range []string{
		"Cannot listen on " + first.Addr().String(), "already in use", base + "/_broker/mcp", base + "/<slot>/mcp", "MCP_BROKER_PORT",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q lacks %q", err, part)
		}
	}
	if err := second.Stop(t.Context()); err != nil {
		t.Errorf("stop of a broker that did not start: %v", err)
	}
}

// Spec 01 5.12: the other reasons have their own texts.
func TestListenErrors(t *testing.T) {
	for _, c := range []struct {
		name  string
		err   mcpbroker.ListenError
		parts []string
	}{
		{"in use, all interfaces", mcpbroker.ListenError{Host: "0.0.0.0", Port: 3000, Scheme: "https", MCPPath: "/rpc", Err: errInUse},
			[]string{"Cannot listen on 0.0.0.0:3000", "already in use", "https://localhost:3000/_broker/rpc", "https://localhost:3000/<slot>/rpc"}},
		{"in use, IPv6", mcpbroker.ListenError{Host: "::", Port: 3000, Scheme: "http", MCPPath: "/mcp", Err: errInUse},
			[]string{"Cannot listen on [::]:3000", "http://localhost:3000/_broker/mcp"}},
		{"permission", mcpbroker.ListenError{Host: "127.0.0.1", Port: 80, Err: errDenied}, []string{"127.0.0.1:80", "permission denied", "1024", "MCP_BROKER_PORT"}},
		{"no such address", mcpbroker.ListenError{Host: "192.0.2.1", Port: 80, Err: errNoAddress}, []string{"192.0.2.1:80", "not available on this machine", "MCP_BROKER_HOST"}},
		{"anything else", mcpbroker.ListenError{Host: "h", Port: 1, Err: errors.New("odd")}, []string{"Cannot listen on h:1: odd"}},
	} {
		for _, part := range c.parts {
			if !strings.Contains(c.err.Error(), part) {
				t.Errorf("%s: error %q lacks %q", c.name, c.err.Error(), part)
			}
		}
		if !errors.Is(&c.err, c.err.Err) {
			t.Errorf("%s: the cause is not wrapped", c.name)
		}
	}
	err := local(t, mcpbroker.WithHost("192.0.2.1")).Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "not available on this machine") {
		t.Errorf("start on a foreign address: %v", err)
	}
}

// Section 9 item 25: missing TLS material names both files and the ways out.
func TestTLSMissing(t *testing.T) {
	err := local(t, mcpbroker.WithTLS("no-cert.pem", "no-key.pem")).Start(t.Context())
	var missing *mcpbroker.TLSError
	if !errors.As(err, &missing) {
		t.Fatalf("start: %v", err)
	}
	for _, part := range []string{"no-cert.pem", "no-key.pem", "MCP_BROKER_TLS_CERT", "MCP_BROKER_TLS_KEY", `protocol = "http"`} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q lacks %q", err, part)
		}
	}
}

// Slots and Slot before the start, on an unknown name, with a context that has
// ended, and after the stop.
func TestInventory(t *testing.T) {
	ctx := t.Context()
	fresh := local(t)
	if _, err := fresh.Slots(ctx); !errors.Is(err, rt.ErrStopped) {
		t.Errorf("before the start: %v", err)
	}
	b := brokertest.Start(t, brokertest.Options{})
	reserved := []msg.ProviderKind{msg.Loopback, msg.Loopback}
	expectSlots(t, b, []string{"_all", "_broker"}, reserved)
	if _, err := b.Slot(ctx, "nobody"); !errors.Is(err, mcpbroker.ErrUnknownSlot) {
		t.Errorf("unknown slot: %v", err)
	}
	names := []string{"_all", "_broker", "b", "a"} // as they were made
	p := b.Dedicated(t, "b")
	brokertest.NewClient(t, b.MCPURL("a")).Initialize()
	b.Sessions(t, "a", 1)
	expectSlots(t, b, names, append(reserved, msg.Dedicated, msg.NoProvider))
	p.Close(1000, "")
	b.Empty(t, "b") // a slot whose provider left stays listed
	expectSlots(t, b, names, append(reserved, msg.NoProvider, msg.NoProvider))
	b.Stop(t)
	if _, err := b.Slots(ctx); !errors.Is(err, rt.ErrStopped) {
		t.Errorf("after the stop: %v", err)
	}
	if _, err := b.Slot(ctx, "a"); !errors.Is(err, rt.ErrStopped) {
		t.Errorf("after the stop: %v", err)
	}
}

// expectSlots compares the whole list, with what serves each slot.
func expectSlots(t *testing.T, b *brokertest.Broker, names []string, transports []msg.ProviderKind) {
	t.Helper()
	list, err := b.Slots(t.Context())
	if err != nil || len(list) != len(names) {
		t.Errorf("slots %+v, %v, want %v", list, err, names)
		return
	}
	for i, s := range list {
		if s.Name != names[i] || s.Transport != transports[i] || s.Connected != (transports[i] != msg.NoProvider) {
			t.Errorf("slot %d is %q by %s, connected %t; want %q by %s", i, s.Name, s.Transport, s.Connected, names[i], transports[i])
		}
	}
}

// peer is a provider that takes frames and nothing else.
type peer struct{ frames chan []byte }

func (p *peer) Deliver(frame []byte) { p.frames <- frame }
func (p *peer) Closed(int, string)   {}

// Broker is the Attacher of loopback providers.
var _ provider.Attacher = (*mcpbroker.Broker)(nil)

// AttachLoopback refuses before the start, after the stop, on reserved and held
// slots and without a name; else it serves, and its opt-in is kept.
func TestAttachLoopback(t *testing.T) {
	p := &peer{make(chan []byte, 1)}
	if _, err := local(t).AttachLoopback("s", nil, p); !errors.Is(err, rt.ErrStopped) {
		t.Errorf("before the start: %v", err)
	}
	b := brokertest.Start(t, brokertest.Options{})
	join := true
	port, err := b.AttachLoopback("s", &join, p)
	if err != nil {
		t.Fatal(err)
	}
	if info := b.Connected(t, "s"); info.Transport != msg.Loopback || !info.Aggregate {
		t.Errorf("slot %+v", info)
	}
	b.Dedicated(t, "held")
	for slot, want := range map[string]string{
		"s": `Provider "s" is reserved by the broker`, "_broker": `Provider "_broker" is reserved by the broker`, "_all": `Provider "_all" is reserved by the broker`,
		"held": `Provider "held" is already connected.`, "": "the slot name is empty",
	} {
		_, err := b.AttachLoopback(slot, nil, p)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("slot %q: %v, want %q", slot, err, want)
		}
		var refusal *wire.Error
		if slot != "" && (!errors.As(err, &refusal) || refusal.Code != wire.CodeUnavailable) {
			t.Errorf("slot %q: %#v is no wire.Error", slot, err)
		}
	}
	for range 2 {
		if err := port.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	b.Empty(t, "s")
	b.Stop(t)
	if _, err := b.AttachLoopback("s", nil, p); !errors.Is(err, rt.ErrStopped) {
		t.Errorf("after the stop: %v", err)
	}
}

// Options land in the configuration they are named after.
func TestOptions(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{
		mcpbroker.WithVersion("1.2.3"),
		mcpbroker.WithAllowedOrigins("https://ok.example"),
		mcpbroker.WithProviderHeartbeatInterval(7 * time.Second),
		mcpbroker.WithMaxMessageBytes(2048),
		mcpbroker.WithSlot("big", config.Slot{MaxMessageBytes: 4096}),
	}})
	c := brokertest.NewClient(t, b.MCPURL("s"))
	c.Header.Set("Origin", "https://ok.example")
	c.Initialize()
	body := `{"jsonrpc":"2.0","method":"m","x":"` + strings.Repeat("x", 3000) + `"}`
	if a := c.Post(body); a.Status != 413 {
		t.Errorf("3000 bytes to slot s: %d", a.Status)
	}
	big := brokertest.NewClient(t, b.MCPURL("big"))
	big.Initialize()
	if a := big.Post(body); a.Status != 202 {
		t.Errorf("3000 bytes to slot big: %d", a.Status)
	}
	b.Dedicated(t, "s")
	p := brokertest.Dial(t, b.ProviderURL("s"), nil)
	p.Closed()
	b.Log.Wait(t, "wait up to 7000ms")
}

// A client that sends its headers too slowly is cut after 15 s.
func TestSlowHeaders(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 15 s")
	}
	t.Parallel()
	b := brokertest.Start(t, brokertest.Options{})
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", b.Host())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	began := time.Now()
	if _, err := conn.Write([]byte("GET /s/mcp HTTP/1.1\r\nHost: x\r\nX-Slow: ")); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(began.Add(30 * time.Second))
	if n, err := conn.Read(make([]byte, 1)); n == 0 && errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the connection is still open after %v", time.Since(began))
	}
	if after := time.Since(began); after < 10*time.Second || after > 25*time.Second {
		t.Errorf("cut after %v, want 15 s", after)
	}
}
