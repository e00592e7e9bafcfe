package main_test

import (
	"context"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/brokertest"
	"mcpbroker/provider"
)

// slowProvider occupies a slot with the tool "slow", whose calls tell when they
// have begun and end when they may.
type slowProvider struct {
	begun, finish chan struct{}
	ended         chan error // what Serve returned
}

func startSlow(t *testing.T, url string, opts ...provider.Option) *slowProvider {
	t.Helper()
	p := &slowProvider{begun: make(chan struct{}, 1), finish: make(chan struct{}), ended: make(chan error, 1)}
	server := provider.NewServer("slow", "1.0.0")
	server.AddTool(provider.Tool{Name: "slow"}, func(ctx context.Context, _ *provider.Call) (*provider.Result, error) {
		p.begun <- struct{}{}
		select {
		case <-p.finish:
			return provider.Text("done"), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	opened := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		p.ended <- server.Serve(ctx, func(ev provider.Events) provider.Transport {
			return provider.NewDirect(url, withOpen(ev, opened), opts...)
		})
		close(p.ended)
	}()
	t.Cleanup(func() {
		cancel()
		for range p.ended {
		}
	})
	select {
	case <-opened:
	case err := <-p.ended:
		t.Fatalf("serve the slow provider: %v", err)
	}
	return p
}

// withOpen closes opened when the transport is open.
func withOpen(ev provider.Events, opened chan struct{}) provider.Events {
	inner := ev.Open
	ev.Open = func() {
		if inner != nil {
			inner()
		}
		close(opened)
	}
	return ev
}

const slowCall = `{"jsonrpc":"2.0","id":"s","method":"tools/call","params":{"name":"slow"}}`

// callSlow has one call in flight.
func callSlow(t *testing.T, b *broker) (*slowProvider, <-chan brokertest.Answer) {
	t.Helper()
	p := startSlow(t, b.direct("slow"))
	answer := newSession(t, b.mcp("slow")).Start(slowCall)
	within(t, p.begun, "the call did not reach the provider")
	return p, answer
}

func within[T any](t *testing.T, ch <-chan T, complaint string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatal(complaint)
		panic("unreachable")
	}
}

func expectHTTP(t *testing.T, got brokertest.Answer, status int, body string) {
	t.Helper()
	if got.Status != status || got.Body != body {
		t.Errorf("answered %d %s, want %d %s", got.Status, got.Body, status, body)
	}
}

// spec 01 5.12: a call in flight may finish after SIGTERM; then the broker ends
// with exit code 0.
func TestStopLetsCallFinish(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(s.String(), func(t *testing.T) {
			b := startBroker(t)
			p, answer := callSlow(t, b)
			b.signal(s)
			b.await(b.stderr, `(?m)^\[mcp-broker\] SIG(TERM|INT) received, stopping$`)
			close(p.finish)
			expectHTTP(t, within(t, answer, "no answer"), http.StatusOK,
				`{"jsonrpc":"2.0","id":"s","result":{"content":[{"type":"text","text":"done"}]}}`)
			b.stops()
		})
	}
}

const sessionClosed = `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Session closed"}}`

// spec 01 5.12 and F-14: a call that does not finish is answered 503, its
// provider is told with 1001, and the broker exits with 0 within 10 s.
func TestStopEndsCallInFlight(t *testing.T) {
	b := startBroker(t)
	p, answer := callSlow(t, b)
	b.signal(syscall.SIGTERM)
	b.stops()
	expectHTTP(t, within(t, answer, "no answer"), http.StatusServiceUnavailable, sessionClosed)
	err := within(t, p.ended, "the provider was not told")
	if err == nil || !containsAll(err.Error(), "connection closed: 1001") {
		t.Errorf("the provider's connection ended with %v", err)
	}
}

// A second signal does not wait for the calls in flight, which the first one
// lets finish for 5 s.
func TestSecondSignalHastensProcess(t *testing.T) {
	p := newBroker(t, "--port", "0")
	p.cmd.Env = append(p.cmd.Env, "GORACE=atexit_sleep_ms=0")
	b := runBroker(p)
	callSlow(t, b)
	begun := time.Now()
	b.signal(syscall.SIGTERM)
	b.await(b.stderr, `SIGTERM received, stopping\n`)
	b.signal(syscall.SIGINT)
	if code, took := b.exit(patience), time.Since(begun); code != 0 || took >= 5*time.Second {
		t.Errorf("exit code %d after %s", code, took)
	}
	const last = "[mcp-broker] SIGINT received again, not waiting any longer\n"
	if !strings.HasSuffix(b.stderr.String(), last) {
		t.Errorf("standard error ends in %q", b.stderr)
	}
}

// refused runs a broker that cannot start, which it must find out without waiting for
// anything, and compares what it writes.
func refused(t *testing.T, p *process, want string) {
	t.Helper()
	begin := time.Now()
	p.start()
	code := p.exit(patience)
	if took := time.Since(begin); code != 1 || took >= 10*time.Second {
		t.Errorf("exit code %d after %s", code, took)
	}
	if p.stdout.String() != "" {
		t.Errorf("standard output %q", p.stdout)
	}
	if diff := cmp.Diff(want, p.stderr.String()); diff != "" {
		t.Errorf("standard error (-want +got):\n%s", diff)
	}
}

// spec 03 5.6: the texts of a port that is taken; the holder goes on.
func TestPortInUse(t *testing.T) {
	b := startBroker(t)
	at, base := "127.0.0.1:"+b.port, "http://localhost:"+b.port
	refused(t, newBroker(t, "--port", b.port),
		"[mcp-broker] Cannot start: Cannot listen on "+at+": the address is already in use. Another broker or process holds it. "+
			"If it is a broker, attach clients to "+base+"/<slot>/mcp and inspect it at "+base+"/_broker/mcp rather than start a second one, "+
			"which would share no slot with it; or pick another port with MCP_BROKER_PORT.\n"+
			"[mcp-broker] Underlying error: EADDRINUSE listen tcp "+at+": bind: address already in use\n")
	newEmptySession(t, b.mcp("anything"))
}

// spec 03 5.6: a host address of another machine.
func TestHostNotAvailable(t *testing.T) {
	const at = "192.0.2.1:3999" // of a network for documentation
	refused(t, newBroker(t, "--host", "192.0.2.1", "--port", "3999"),
		"[mcp-broker] Cannot start: Cannot listen on "+at+": the host address is not available on this machine. "+
			"Use 127.0.0.1 for this machine only or 0.0.0.0 for all interfaces (MCP_BROKER_HOST).\n"+
			"[mcp-broker] Underlying error: EADDRNOTAVAIL listen tcp "+at+": bind: cannot assign requested address\n")
}
