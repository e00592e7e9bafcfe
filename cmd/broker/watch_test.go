package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// list is the result of providers_list for slots such as "a=ws", "a=ws+all" or
// "a=none".
func list(slots ...string) string {
	var entries []string
	for _, s := range slots {
		name, transport, _ := strings.Cut(s, "=")
		transport, member := strings.CutSuffix(transport, "+all")
		entries = append(entries, fmt.Sprintf(`{"name":%q,"transport":%q,"connected":%t,"aggregate":%t,"connectedSince":%s,"connectedForMs":null}`,
			name, transport, transport != "none", member, map[bool]string{true: `"T"`, false: "null"}[transport != "none"]))
	}
	return `{"content":[],"structuredContent":{"count":` + fmt.Sprint(len(slots)) + `,"providers":[` + strings.Join(entries, ",") + `]}}`
}

const updatedProviders = `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"broker://providers"}}`

// watching runs "broker watch" until a signal.
type watching struct {
	t    *testing.T
	b    *bench
	f    *fakeBroker
	code chan int
}

func startWatch(t *testing.T, f *fakeBroker, poll time.Duration, args ...string) *watching {
	t.Helper()
	w := &watching{t: t, b: newBench(t), f: f, code: make(chan int, 1)}
	w.b.poll = poll
	go func() { w.code <- w.b.do(append([]string{"watch", "--url", f.URL}, args...)...) }()
	return w
}

var timestamp = regexp.MustCompile(`(?m)^\S+T\S+  `)

// await waits until standard output is what is wanted, times left out.
func (w *watching) await(want string) {
	w.t.Helper()
	patience := time.After(30 * time.Second)
	for {
		got := timestamp.ReplaceAllString(w.b.out.String(), "")
		if got == want {
			return
		}
		select {
		case <-w.b.out.changed:
		case <-patience:
			w.t.Fatalf("standard output (-want +got):\n%s\nstandard error %q", cmp.Diff(want, got), w.b.err)
		}
	}
}

func (w *watching) end() {
	w.t.Helper()
	w.b.signal <- sigterm
	if code := <-w.code; code != 0 || w.b.err.String() != "" {
		w.t.Errorf("exit code %d, standard error %q", code, w.b.err)
	}
}

// One line for each change that an update announces; counters are none.
func TestWatchLines(t *testing.T) {
	f := newFakeBroker(t)
	f.set("tools/call providers_list", list("_broker=loopback+all", "old=none"))
	w := startWatch(t, f, time.Hour)
	want := "_broker connected, loopback, joined _all\nold appeared, no provider\n"
	w.await(want)
	for _, step := range []struct {
		slots []string
		want  string
	}{
		{[]string{"_broker=loopback+all", "old=none", "pump-1=ws"}, "pump-1 connected, ws\n"},
		{[]string{"_broker=loopback+all", "pump-1=ws+all"}, "old ended\npump-1 joined _all\n"},
		{[]string{"_broker=loopback+all", "pump-1=none"}, "pump-1 disconnected, left _all\n"},
	} {
		f.set("tools/call providers_list", list(step.slots...))
		f.updates <- updatedProviders
		want += step.want
		w.await(want)
	}
	w.end()
	if !strings.Contains(f.log(), `"method":"resources/subscribe","params":{"uri":"broker://providers"}`) || !strings.HasSuffix(f.log(), "\nDELETE /_broker/mcp s-0 ") {
		t.Errorf("requests\n%s", f.log())
	}
}

// Without a stream, or without subscriptions, it asks again and again.
func TestWatchPolls(t *testing.T) {
	for _, name := range []string{"no stream", "no subscriptions"} {
		t.Run(name, func(t *testing.T) {
			f := newFakeBroker(t)
			f.noStream = name == "no stream"
			f.set("resources/subscribe", `error {"code":-32601,"message":"Method not found"}`)
			f.set("tools/call providers_list", list("a=none"))
			w := startWatch(t, f, time.Millisecond)
			w.await("a appeared, no provider\n")
			f.set("tools/call providers_list", list("a=ws-multiplex"))
			w.await("a appeared, no provider\na connected, ws-multiplex\n")
			w.end()
		})
	}
}

// The JSON form is the whole list, once for each change.
func TestWatchJSON(t *testing.T) {
	f := newFakeBroker(t)
	f.set("tools/call providers_list", list())
	w := startWatch(t, f, time.Millisecond, "-o", "json")
	want := `{"count":0,"providers":[]}` + "\n"
	w.await(want)
	f.set("tools/call providers_list", list("a=none"))
	f.updates <- updatedProviders
	want += `{"count":1,"providers":[{"name":"a","transport":"none","connected":false,"aggregate":false,"connectedSince":null,"connectedForMs":null}]}` + "\n"
	w.await(want)
	f.updates <- updatedProviders
	f.set("tools/call providers_list", list("a=stdio"))
	f.updates <- updatedProviders
	want += `{"count":1,"providers":[{"name":"a","transport":"stdio","connected":true,"aggregate":false,"connectedSince":"T","connectedForMs":null}]}` + "\n"
	w.await(want)
	w.end()
}

// A broker that restarts is followed in another session, and nothing that happened
// meanwhile is missed.
func TestWatchSurvivesRestart(t *testing.T) {
	f := newFakeBroker(t)
	f.set("tools/call providers_list", list("a=ws"))
	w := startWatch(t, f, time.Millisecond)
	w.await("a connected, ws\n")
	<-f.streams
	f.set("initialize", `error {"code":-32000,"message":"Session closed"}`)
	f.forget()
	f.cut <- struct{}{}
	w.await("a connected, ws\nSession closed (-32000)\n")
	f.set("tools/call providers_list", list("a=none"))
	f.mu.Lock()
	delete(f.results, "initialize")
	f.mu.Unlock()
	w.await("a connected, ws\nSession closed (-32000)\na disconnected\n")
	w.end()
}

// A broker that was never there is an error, not something to wait for.
func TestWatchNobody(t *testing.T) {
	b := newBench(t)
	code := b.do("watch", "--url", "http://127.0.0.1:1")
	b.expect(t, code, 3, "", "Cannot reach a broker at http://127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused. "+
		"Start one with 'broker run', or name another with --url or MCP_BROKER_URL.\n")
}

// On a terminal the table is drawn anew, and says when it is old.
func TestWatchTable(t *testing.T) {
	f := full(t)
	b := newBench(t)
	ctx := context.Background()
	at, err := b.address(f.URL)
	if err != nil {
		t.Fatal(err)
	}
	c, err := b.connect(ctx, at, brokerSlot)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	slots, raw, err := c.inventory(ctx)
	if err != nil {
		t.Fatal(err)
	}
	slots.Providers = slots.Providers[2:3]
	out := newOutput()
	v := &tableView{w: out, base: "http://h", now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }}
	const table = "\x1b[2J\x1b[Hhttp://h  03:04:05  (Ctrl-C ends)\n\n" +
		"SLOT    TRANSPORT  FOR  _ALL  CALLERS  PENDING  SUBSCRIPTIONS\n" +
		"pump-1  ws         25s  yes   3        3        4\n"
	if err := v.show(slots, raw); err != nil {
		t.Fatal(err)
	}
	if err := v.lost(errSessionGone); err != nil {
		t.Fatal(err)
	}
	want := table + table + "\n" + errSessionGone.Error() + "\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("drawn (-want +got):\n%s", diff)
	}
}

func TestSlotChange(t *testing.T) {
	since := func(s string) *string { return &s }
	one := slotInfo{Transport: "ws", Connected: true, ConnectedSince: since("1")}
	two := slotInfo{Transport: "ws", Connected: true, ConnectedSince: since("2"), Aggregate: true, PendingCount: 4}
	tests := []struct {
		before, after *slotInfo
		want          string
	}{
		{&one, &one, ""},
		{&one, &two, "has another provider, ws, joined _all"},
		{&two, &slotInfo{Transport: "none"}, "disconnected, left _all"},
		{nil, &two, "connected, ws, joined _all"},
		{nil, &slotInfo{Transport: "none"}, "appeared, no provider"},
	}
	for _, tt := range tests {
		if got := slotChange(tt.before, tt.after); got != tt.want {
			t.Errorf("%+v to %+v: %q, want %q", tt.before, tt.after, got, tt.want)
		}
	}
}

// A terminal that cannot move its cursor gets lines.
func TestWatchOnDumbTerminal(t *testing.T) {
	device, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = device.Close() }()
	for term, want := range map[string]string{"xterm": "*main.tableView", "": "*main.tableView", "dumb": "*main.lineView"} {
		r := &remote{program: &program{stdout: device, environ: []string{"TERM=" + term}}}
		if got := fmt.Sprintf("%T", r.newView()); got != want {
			t.Errorf("TERM=%q: %s, want %s", term, got, want)
		}
	}
}
