package introspection

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/wire"
)

// inbox is an actor whose messages a test waits for.
type inbox chan any

func (i inbox) Send(message any) { i <- message }

// next returns the next message; the tests' deadline is the runner's.
func (i inbox) next() any { return <-i }

// fakeRegistry passes questions about slots on to the server, and keeps the rest.
type fakeRegistry struct {
	inbox
	mu     sync.Mutex
	server msg.Ref
}

func (r *fakeRegistry) Send(message any) {
	r.mu.Lock()
	server := r.server
	r.mu.Unlock()
	switch m := message.(type) {
	case *msg.ListInventory:
		m.Reply <- []msg.SlotInfo{{Name: Slot}}
	case *msg.DescribeSlot:
		if m.Slot != Slot {
			close(m.Reply)
			return
		}
		server.Send(m)
	default:
		r.inbox <- m
	}
}

func (r *fakeRegistry) hold(server msg.Ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.server = server
}

// running is a server in a system of its own.
type running struct {
	t        *testing.T
	ref      *rt.Ref
	registry *fakeRegistry
	client   inbox
	log      *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func start(t *testing.T, cfg Config, tap rt.Tap) *running {
	t.Helper()
	r := &running{t: t, registry: &fakeRegistry{inbox: make(inbox, 100)}, client: make(inbox, 100), log: &lockedBuffer{}}
	sys := rt.NewSystem(slog.New(slog.NewTextHandler(r.log, nil)), tap)
	ref, err := Start(sys, r.registry, cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.ref = ref
	r.registry.hold(ref)
	t.Cleanup(func() {
		if err := sys.StopAndWait(context.Background(), ref.PID()); err != nil {
			t.Error(err)
		}
		sys.Close()
	})
	if m, ok := r.registry.next().(*msg.WatchSlots); !ok || m.Watcher == nil {
		t.Fatalf("the first message to the registry is %+v", m)
	}
	return r
}

func (r *running) join(session uint64) msg.Ref {
	r.t.Helper()
	r.ref.Send(&msg.JoinSlot{Slot: Slot, Session: session, Client: r.client})
	joined, ok := r.client.next().(*msg.SlotJoined)
	if !ok {
		r.t.Fatalf("not joined: %+v", joined)
	}
	return joined.Ref
}

func (r *running) call(session uint64, body string) string {
	r.t.Helper()
	f, err := wire.Scan([]byte(`{"jsonrpc":"2.0","id":7,` + body + `}`))
	if err != nil {
		r.t.Fatal(err)
	}
	r.ref.Send(&msg.ClientCall{Session: session, Client: r.client, Call: 1, Frame: f})
	return text(r.client.next())
}

// The server over its real actor: it watches, introduces itself, answers, and
// counts a call about itself.
func TestActor(t *testing.T) {
	r := start(t, Config{Identity: Identity{Name: "b"}, Aggregate: true}, nil)
	r.ref.Send(observed(Slot, false, false, 0))
	if got := text(r.registry.next()); got != "changed _broker loopback connected=true aggregate=true callers=0" {
		t.Errorf("it introduces itself as %s", got)
	}
	slot := r.join(1)
	if got := text(r.registry.next()); got != "changed _broker loopback connected=true aggregate=true callers=1" {
		t.Errorf("with its first caller it is %s", got)
	}
	if got := r.call(1, `"method":"ping"`); got != reply("{}") {
		t.Errorf("ping: %s", got)
	}
	if got := r.call(1, call("provider_status", `{"name":"_broker"}`)); !strings.Contains(got, `"sessionCount":1,"pendingCount":1,`) {
		t.Errorf("its own status: %s", got)
	}
	if got := r.call(1, call("providers_list", "")); !strings.Contains(got, `"structuredContent":{"count":1,`) || !strings.Contains(got, `"pendingCount":1,`) {
		t.Errorf("the list: %s", got)
	}
	if got := r.call(1, call("broker_diagnose", "")); got != returns("{}") {
		t.Errorf("a diagnosis nobody makes: %s", got)
	}
	if got := r.call(1, call("broker_guide", "")); got != says(`Unknown guide topic "index". Valid topics: . Call broker_guide without arguments for the index.`, true) {
		t.Errorf("a guide nobody wrote: %s", got)
	}
	if got := r.call(1, subscribe("broker://providers")); got != reply("{}") {
		t.Errorf("subscribe: %s", got)
	}
	slot.Send(observed("a", true, false, 1))
	if got := "c1 <- " + text(r.client.next()); got != told(1, "broker://providers") {
		t.Errorf("told: %s", got)
	}
}

// A failure while a request is handled answers its caller and nobody else; the
// server goes on with the state it had.
func TestCrashOfOneCall(t *testing.T) {
	const crashed = `failed -32603 Slot "_broker" failed while handling this request; the request was not completed and may be sent again`
	r := start(t, Config{
		Topics:   pages,
		Guide:    func(topic string) (string, bool) { panic("no page") },
		Diagnose: func(context.Context, []msg.SlotInfo, string) []byte { panic("no diagnosis") },
	}, nil)
	r.join(1)
	r.call(1, subscribe("broker://providers"))
	for _, body := range []string{call("broker_guide", ""), `"method":"resources/read","params":{"uri":"broker://guide/index"}`, call("broker_diagnose", "")} {
		if got := r.call(1, body); got != crashed {
			t.Errorf("%s: %s", body, got)
		}
	}
	if got := r.call(1, call("provider_status", `{"name":"_broker"}`)); !strings.Contains(got, `"sessionCount":1,"pendingCount":1,"resourceSubscriptionCount":1}`) {
		t.Errorf("afterwards: %s", got)
	}
	if log := r.log.String(); strings.Count(log, "no page") < 2 || !strings.Contains(log, "no diagnosis") {
		t.Errorf("the log does not tell:\n%s", log)
	}
}

// Any message may fail once: who waits is answered, and facts that nobody tells
// twice are handled again.
func TestCrashOnEachMessage(t *testing.T) {
	var mu sync.Mutex
	failing := ""
	r := start(t, Config{
		Instances: func(context.Context) ([]msg.Instance, error) { return nil, nil },
		Restart:   func(context.Context, string) error { return nil },
	}, func(_ *rt.PID, message any) {
		mu.Lock()
		defer mu.Unlock()
		if failing != "" && strings.HasSuffix(typeName(message), failing) {
			failing = ""
			panic("injected")
		}
	})
	fail := func(name string) { mu.Lock(); failing = name; mu.Unlock() }
	status := func() string { return r.call(1, call("provider_status", `{"name":"_broker"}`)) }

	fail("JoinSlot")
	r.ref.Send(&msg.JoinSlot{Slot: Slot, Session: 1, Client: r.client})
	if got := text(r.client.next()); !strings.HasPrefix(got, "join refused -32603 ") {
		t.Errorf("a join that fails: %s", got)
	}
	r.join(1)
	r.join(2)
	fail("ClientCall")
	if got := r.call(1, `"method":"ping"`); !strings.HasPrefix(got, "failed -32603 ") {
		t.Errorf("a call that fails: %s", got)
	}
	fail("roundDone")
	if got := r.call(1, call("providers_list", "")); !strings.Contains(got, `"count":1`) {
		t.Errorf("answers whose delivery fails: %s", got)
	}
	fail("DescribeSlot") // the last report counts
	if got := status(); !strings.Contains(got, `"transport":""`) {
		t.Errorf("a description that fails: %s", got)
	}
	fail("LeaveSlot")
	r.ref.Send(&msg.LeaveSlot{Session: 2})
	for !strings.Contains(status(), `"sessionCount":1,`) { // until the leave has been handled again
	}
	r.call(1, subscribe("broker://providers"))
	for _, name := range []string{"SlotObserved", "flushDue", "SlotForgotten"} {
		fail(name)
		if name == "SlotForgotten" {
			r.ref.Send(&msg.SlotForgotten{Name: "SlotObserved"})
		} else {
			r.ref.Send(observed(name, true, false, 1))
		}
		if got := text(r.client.next()); !strings.HasPrefix(got, "note ") {
			t.Errorf("%s that fails: %s", name, got)
		}
	}
	fail("HaveInstances")
	r.ref.Send(&HaveInstances{true})
	for _, list := range []string{"tools", "resources"} {
		if got := text(r.client.next()); !strings.Contains(got, "notifications/"+list+"/list_changed") {
			t.Errorf("HaveInstances that fails: %s", got)
		}
	}
	fail("ClientNote")
	r.ref.Send(&msg.ClientNote{Session: 1})
	if got := r.call(1, `"method":"ping"`); got != reply("{}") {
		t.Errorf("after a note that fails: %s", got)
	}
}

func typeName(message any) string { return fmt.Sprintf("%T", message) }

// What fails again and again is given up.
func TestRetriesEnd(t *testing.T) {
	var mu sync.Mutex
	times := 0
	gave := make(chan struct{})
	r := start(t, Config{}, func(_ *rt.PID, message any) {
		fact := message
		if again, ok := message.(*retry); ok {
			fact = again.message
		}
		if _, ok := fact.(*msg.LeaveSlot); !ok {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if times++; times == 1+maxRetries {
			close(gave)
		}
		panic("injected")
	})
	r.join(1)
	r.ref.Send(&msg.LeaveSlot{Session: 1})
	<-gave
	if got := r.call(1, `"method":"ping"`); got != reply("{}") {
		t.Errorf("afterwards: %s", got)
	}
	mu.Lock()
	defer mu.Unlock()
	if times != 1+maxRetries {
		t.Errorf("handled %d times", times)
	}
}

// A stop answers who waits, and ends the questions to other slots.
func TestStopWhileAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := make(chan struct{})
		registry := &fakeRegistry{inbox: make(inbox, 100)}
		sys := rt.NewSystem(nil, nil)
		ref, err := Start(sys, registry, Config{Diagnose: func(ctx context.Context, _ []msg.SlotInfo, _ string) []byte {
			close(asked)
			<-ctx.Done()
			return []byte("{}")
		}})
		if err != nil {
			t.Fatal(err)
		}
		registry.hold(ref)
		r := &running{t: t, ref: ref, registry: registry, client: make(inbox, 100)}
		registry.next()
		r.join(1)
		f, _ := wire.Scan([]byte(`{"jsonrpc":"2.0","id":1,` + call("broker_diagnose", "") + `}`))
		ref.Send(&msg.ClientCall{Session: 1, Client: r.client, Call: 1, Frame: f})
		<-asked
		began := time.Now()
		if err := sys.StopAndWait(context.Background(), ref.PID()); err != nil {
			t.Fatal(err)
		}
		sys.Close()
		if took := time.Since(began); took >= patience {
			t.Errorf("the stop took %v", took)
		}
		if got := text(r.client.next()); got != "failed -32000 The slot has just been reset; send the request again" {
			t.Errorf("the caller is told %s", got)
		}
	})
}

// Calls that find the queue full are answered.
func TestRefuse(t *testing.T) {
	client := make(inbox, 1)
	refuse(&msg.ClientCall{Client: client, Call: 3})
	if got := text(client.next()); got != `failed -32000 Slot "_broker" has 4096 requests waiting, the most it may have (the slot's queue); send the request again later` {
		t.Errorf("a call: %s", got)
	}
	gone := make(chan msg.SlotInfo, 1)
	refuse(&msg.DescribeSlot{Reply: gone})
	if _, ok := <-gone; ok {
		t.Error("a question has an answer")
	}
	refuse(&msg.ClientNote{})
}

// Local wording files are read from the directory; what is wrong with them is
// logged and does not stop the broker.
func TestStartWithLocalFiles(t *testing.T) {
	dir := t.TempDir()
	for name, body := range map[string]string{"fr.json": `{"tools":{"broker_info":{"description":"à moi"}}}`, "en.json": `{`} {
		if err := os.MkdirAll(filepath.Join(dir, "default"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "default", name), []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := start(t, Config{Locale: "fr-FR", Grammars: dir}, nil)
	r.join(1)
	got := r.call(1, `"method":"tools/list"`)
	if !strings.Contains(got, "à moi") || !strings.Contains(got, "Tous les slots") {
		t.Errorf("the tools are %s", got)
	}
	if log := r.log.String(); strings.Count(log, "wording files in") != 1 || !strings.Contains(log, "default/en.json: unexpected end of JSON input") {
		t.Errorf("the log is\n%s", log)
	}
	r = start(t, Config{Grammars: filepath.Join(dir, "nothing")}, nil)
	if log := r.log.String(); !strings.Contains(log, "no such file or directory") {
		t.Errorf("the log is\n%s", log)
	}
}
