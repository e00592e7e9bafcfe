package remote

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/wire"
	"mcpbroker/internal/freeport"
	"mcpbroker/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// patience bounds waits that end at once unless something is wrong.
const patience = 30 * time.Second

// mailbox stands for an actor.
type mailbox chan any

func (m mailbox) Send(message any) { m <- message }

func receive[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("no %s", what)
	}
	panic("unreachable")
}

func equal(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

// output is a log that tests can read.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// broker is the inside of a broker around one connection.
type broker struct {
	t      *testing.T
	sys    *rt.System
	log    *output
	dialer *Dialer
	pace   pace
	owner  mailbox
	slot   mailbox
	driver msg.Driver
	cancel func()
}

const (
	ownGen  = 3 // of the connection
	slotGen = 7 // of the slot
)

func newBroker(t *testing.T) *broker {
	t.Helper()
	b := &broker{t: t, log: &output{}, owner: make(mailbox, 64), slot: make(mailbox, 4096)}
	b.pace = pace{reopen: func(int) time.Duration { return time.Millisecond }, cancel: 20 * time.Millisecond, ping: time.Minute, endpoint: patience, drain: patience, order: patience, goodbye: patience}
	b.sys = rt.NewSystem(slog.New(slog.NewTextHandler(b.log, nil)), nil)
	b.dialer = New(b.sys, Options{UserAgent: "broker/1", pace: &b.pace})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := b.dialer.Stop(ctx); err != nil {
			t.Error(err)
		}
		b.sys.Close()
	})
	return b
}

// start begins a connection without waiting for it.
func (b *broker) start(cfg Config) {
	b.t.Helper()
	if cfg.Name == "" {
		cfg.Name = "far"
	}
	b.cancel = b.dialer.Start(cfg, b.owner, ownGen)
}

// connect begins a connection and waits until it is attached to the slot.
func connect(t *testing.T, cfg Config) *broker {
	t.Helper()
	b := newBroker(t)
	b.start(cfg)
	b.attach()
	return b
}

func (b *broker) attach() {
	b.t.Helper()
	opened, ok := receive(b.t, b.owner, "UpstreamOpened").(*msg.UpstreamOpened)
	if !ok || opened.Gen != ownGen || opened.PID != 0 {
		b.t.Fatalf("the owner was told %+v", opened)
	}
	b.driver = opened.Driver
	b.driver.Attach(b.slot, slotGen)
}

func (b *broker) send(frames ...string) {
	b.t.Helper()
	for _, frame := range frames {
		if !b.driver.Send([]byte(frame), mcp.Required) {
			b.t.Fatalf("not taken: %s", frame)
		}
	}
}

// next is the next message the slot gets. That the server has begun anew is no message
// of it.
func (b *broker) next() string {
	b.t.Helper()
	switch m := receive(b.t, b.slot, "message for the slot").(type) {
	case *msg.ProviderRenewed:
		return b.next()
	case *msg.ProviderRefusal:
		m.Credit.Give()
		if m.Gen != slotGen {
			b.t.Errorf("generation %d", m.Gen)
		}
		return string(m.Err.Response(m.ID))
	case *msg.ProviderFrame:
		m.Credit.Give()
		if m.Gen != slotGen {
			b.t.Errorf("generation %d", m.Gen)
		}
		return string(m.Frame.Bytes)
	case *msg.ProviderJunk:
		m.Credit.Give()
		return "junk " + string(m.Head)
	default:
		b.t.Fatalf("the slot got a %T", m)
	}
	return ""
}

func (b *broker) expect(want ...string) {
	b.t.Helper()
	for _, w := range want {
		equal(b.t, "message for the slot", b.next(), w)
	}
}

// ended waits for the last word of the connection.
func (b *broker) ended() *msg.UpstreamEnded {
	b.t.Helper()
	end, ok := receive(b.t, b.owner, "UpstreamEnded").(*msg.UpstreamEnded)
	if !ok || end.Gen != ownGen {
		b.t.Fatalf("the owner was told %+v", end)
	}
	if b.driver != nil && b.driver.Send([]byte("{}"), mcp.Required) {
		b.t.Error("a message was taken after the end")
	}
	return end
}

func (b *broker) expectEnd(want string, denied bool) {
	b.t.Helper()
	end := b.ended()
	got := "<nil>"
	if end.Err != nil {
		got = end.Err.Error()
	}
	equal(b.t, "UpstreamEnded", got, want)
	if end.Denied != denied {
		b.t.Errorf("Denied is %v", end.Denied)
	}
}

const (
	initialize  = `{"jsonrpc":"2.0","id":"brk-1","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	welcome     = `{"jsonrpc":"2.0","id":"brk-1","result":{"protocolVersion":"2025-06-18","capabilities":{}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

func (b *broker) handshake() {
	b.t.Helper()
	b.send(initialize)
	b.expect(welcome)
	b.send(initialized)
}

func request(id int, method string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":"brk-%d","method":%q}`, id, method)
}

func response(id int, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":"brk-%d","result":%q}`, id, text)
}

func refusal(id int, e *wire.Error) string {
	return string(e.Response(fmt.Appendf(nil, `"brk-%d"`, id)))
}

// seen is what the server was sent.
type seen struct {
	method, session, version, event string
	header                          http.Header
	body                            string
}

// server is a stateful MCP server over Streamable HTTP.
type server struct {
	*httptest.Server
	t    *testing.T
	log  chan seen // of all but GET
	gets chan seen

	mu       sync.Mutex
	n        int
	sessions map[string]bool
	// call answers a request; nil echoes the method.
	call func(w http.ResponseWriter, r *http.Request, f *wire.Frame)
	// before may answer any request instead.
	before func(w http.ResponseWriter, r *http.Request, body []byte) bool
	// stream serves GET; nil has none.
	stream func(w http.ResponseWriter, r *http.Request)
}

func newServer(t *testing.T) *server {
	t.Helper()
	return serveOn(t, listen(t))
}

// listen takes a port that nobody gets by chance while it is closed.
func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", freePort(t)))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func freePort(t *testing.T) int {
	t.Helper()
	port, release, err := freeport.Reserve(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return port
}

func serveOn(t *testing.T, listener net.Listener) *server {
	t.Helper()
	s := &server{t: t, log: make(chan seen, 4096), gets: make(chan seen, 4096), sessions: map[string]bool{}}
	s.Server = &httptest.Server{Listener: listener, Config: &http.Server{Handler: s}}
	s.Start()
	t.Cleanup(s.kill)
	return s
}

// kill ends the server as a dying process does.
func (s *server) kill() {
	s.CloseClientConnections()
	s.Close()
}

// slowly has calls of "slow" answered once release is closed; held tells that one is there.
func (s *server) slowly() (held <-chan struct{}, release chan struct{}) {
	began, release := make(chan struct{}, 1), make(chan struct{})
	s.call = func(w http.ResponseWriter, r *http.Request, f *wire.Frame) {
		if string(f.Method) == "slow" {
			began <- struct{}{}
			await(r, release)
		}
		respond(w, echo(f))
	}
	return began, release
}

// restart starts a server without memory in the place of s.
func (s *server) restart() *server {
	s.t.Helper()
	address := s.Listener.Addr().String()
	s.kill()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		s.t.Fatal(err)
	}
	return serveOn(s.t, listener)
}

func (s *server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// forget drops all sessions.
func (s *server) forget() { s.set(func() { s.sessions = map[string]bool{} }) }

func (s *server) known(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[id]
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	got := seen{r.Method, r.Header.Get(sessionHeader), r.Header.Get(versionHeader), r.Header.Get(eventHeader), r.Header.Clone(), string(body)}
	s.mu.Lock()
	before, stream, call := s.before, s.stream, s.call
	s.mu.Unlock()
	if r.Method == http.MethodGet {
		s.gets <- got
	} else {
		s.log <- got
	}
	if before != nil && before(w, r, body) {
		return
	}
	f, _ := wire.Scan(body)
	switch {
	case string(f.Method) == mcp.Initialize:
		s.mu.Lock()
		s.n++
		id := fmt.Sprintf("session-%d", s.n)
		s.sessions[id] = true
		s.mu.Unlock()
		w.Header().Set(sessionHeader, id)
		respond(w, welcome)
	case !s.known(got.session):
		http.Error(w, "no such session", http.StatusNotFound)
	case r.Method == http.MethodDelete:
		s.set(func() { delete(s.sessions, got.session) })
	case r.Method == http.MethodGet && stream != nil:
		stream(w, r)
	case r.Method == http.MethodGet:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case !f.IsRequest():
		w.WriteHeader(http.StatusAccepted)
	case call != nil:
		call(w, r, &f)
	default:
		respond(w, echo(&f))
	}
}

func respond(w http.ResponseWriter, frame string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, frame)
}

func echo(f *wire.Frame) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%q}`, f.Raw(f.ID), f.Method)
}

// events answers with an event stream, written and flushed piece by piece.
func events(w http.ResponseWriter, pieces ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.(http.Flusher).Flush()
	for _, piece := range pieces {
		_, _ = io.WriteString(w, piece)
		w.(http.Flusher).Flush()
	}
}

func event(frame string) string { return "event: message\ndata: " + frame + "\n\n" }

// await holds an answer back until it is to be given, or nobody waits for it.
func await(r *http.Request, release <-chan struct{}) {
	select {
	case <-release:
	case <-r.Context().Done():
	}
}

// settled brings b through its handshake, and returns when the server has answered all
// of it: the event stream is asked for last.
func (s *server) settled(b *broker) {
	s.t.Helper()
	b.handshake()
	s.took("POST  " + initialize)
	receive(s.t, s.log, "notifications/initialized")
	receive(s.t, s.gets, "GET")
}

// took waits for the next message the server was sent and compares it.
func (s *server) took(want string) seen {
	s.t.Helper()
	got := receive(s.t, s.log, "message for the server")
	equal(s.t, "message for the server", got.method+" "+got.session+" "+got.body, want)
	return got
}

// contains looks for text.
func contains(t *testing.T, what, got, want string) {
	t.Helper()
	if !strings.Contains(got, want) {
		t.Errorf("%s: %q is not in %q", what, want, got)
	}
}
