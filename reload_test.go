package mcpbroker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbroker"
	"mcpbroker/actors/msg"
	"mcpbroker/brokertest"
)

// Upstreams come, go and change while a call on another one is in flight, which
// ends as if nothing had happened.
func TestReload(t *testing.T) {
	t.Parallel()
	l := newLifeline(t)
	h := newHouse(t, child("stays")+child("goes", "-lifeline", l.addr())+child("changes", "-lifeline", l.addr()))
	stays := h.client("stays")
	pid := h.text(stays, "pid", "{}")
	next(t, l.born, patience, "began")
	next(t, l.born, patience, "began")
	changes := h.client("changes")
	goes := h.client("goes")
	before := map[string]string{"goes": h.text(goes, "pid", "{}"), "changes": h.text(changes, "pid", "{}")}
	held := stays.Start(toolCall("5", "hold", "{}"))
	h.Pending(t, "stays", 1)

	got, err := h.reload(child("stays") + child("comes") + child("changes", "-lifeline", l.addr()) + "env.NEW = \"1\"\n")
	if err != nil {
		t.Fatal(err)
	}
	want := mcpbroker.Reloaded{Added: []string{"comes"}, Removed: []string{"goes"}, Changed: []string{"changes"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reloaded (-want +got):\n%s", diff)
	}
	ended := []string{next(t, l.died, patience, "ended"), next(t, l.died, patience, "ended")}
	if !slices.Contains(ended, before["goes"]) || !slices.Contains(ended, before["changes"]) {
		t.Errorf("ended %q, started %v", ended, before)
	}
	if got := h.environment("changes")["NEW"]; got != "1" {
		t.Errorf("the changed one has NEW=%q", got)
	}
	if got := h.text(changes, "pid", "{}"); got == before["changes"] {
		t.Error("a session of the changed one still has the old process")
	}
	h.text(h.client("comes"), "pid", "{}")
	brokertest.Is(t, "a call on the one that left", goes.Post(toolCall("6", "pid", "{}")), http.StatusOK,
		`{"jsonrpc":"2.0","id":6,"error":{"code":-32000,"message":"Provider \"goes\" not connected"}}`)
	h.text(stays, "release", "{}")
	if got := textOf(t, stays.Await(held)); got != "released" {
		t.Errorf("the call in flight got %q", got)
	}
	if got := h.text(stays, "pid", "{}"); got != pid {
		t.Errorf("the upstream that stays went from process %s to %s", pid, got)
	}

	provider := h.Dedicated(t, "goes")                                        // the slot is anybody's again
	brokertest.Respond(provider, provider.Receive(), brokertest.ServerResult) // to the session's initialize
	provider.Receive()
	again := goes.Start(toolCall("7", "pid", "{}"))
	brokertest.Respond(provider, provider.Receive(), "{}")
	brokertest.Is(t, "the slot's new provider", goes.Await(again), http.StatusOK, `{"jsonrpc":"2.0","id":7,"result":{}}`)
}

// A configuration that is wrong changes nothing.
func TestReloadRefused(t *testing.T) {
	t.Parallel()
	h := newHouse(t, child("s"))
	pid := h.text(h.client("s"), "pid", "{}")
	for name, text := range map[string]string{
		"no TOML":         child("s") + "]",
		"unknown key":     child("s") + "timout = 1\n",
		"two of one name": child("s") + child("s"),
		"reserved slot":   child("_all"),
		"no command":      "\n[[stdioUpstreams]]\nname = \"x\"\n",
	} {
		if got, err := h.reload(text); err == nil || got.Removed != nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	c, err := h.load(child("s"))
	if err != nil {
		t.Fatal(err)
	}
	c.StdioUpstreams[0].Command = ""
	if _, err := h.Reload(t.Context(), c); err == nil || !strings.Contains(err.Error(), `reload the configuration: `) {
		t.Errorf("a configuration made by hand: %v", err)
	}
	if i := h.instance("s"); fmt.Sprint(i.PID) != pid || i.Restarts != 0 {
		t.Errorf("%+v, was process %s", i, pid)
	}
}

// The same configuration again is no change; settings a reload does not apply are
// named.
func TestReloadNamesTheRest(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "maxSlots = 10\n"+child("s"))
	before := h.verdict("s", msg.Live)
	for _, c := range []struct {
		text string
		want mcpbroker.Reloaded
	}{
		{"maxSlots = 10\n" + child("s"), mcpbroker.Reloaded{}},
		{"maxSlots = 11\nproviderTakeover = \"reject\"\n[slots.x]\nmaxMessageBytes = 70000\n" + child("s"), mcpbroker.Reloaded{Restart: []string{"providerTakeover", "maxSlots", "slots.x"}}},
	} {
		got, err := h.reload(c.text)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(got.Restart)
		slices.Sort(c.want.Restart)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("reloaded (-want +got):\n%s", diff)
		}
	}
	if after := h.instance("s"); after.PID != before.PID {
		t.Errorf("process %d became %d", before.PID, after.PID)
	}
}

// A changed upstream is stopped before it is started again: never two processes
// in one slot, even when one reload follows another at once.
func TestReloadTwice(t *testing.T) {
	t.Parallel()
	l := newLifeline(t)
	h := newHouse(t, child("s", "-stubborn", "-lifeline", l.addr())+"graceMs = 700\n")
	next(t, l.born, patience, "began")
	done := make(chan error, 2)
	for n := range 2 {
		c, err := h.load(child("s", "-stubborn", "-lifeline", l.addr()) + fmt.Sprintf("graceMs = 700\nenv.N = \"%d\"\n", n))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := h.Reload(context.Background(), c)
			done <- err
		}()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	last := h.text(h.client("s"), "pid", "{}")
	if !eventually(func() bool { return l.only(last) }) {
		t.Errorf("%d processes live", l.living())
	}
}

// A reload whose context ends while an upstream stops has made its changes, and tells
// what is left; the next one does the rest.
func TestReloadUnfinished(t *testing.T) {
	t.Parallel()
	l := newLifeline(t)
	short, cancel := context.WithCancel(t.Context())
	defer cancel()
	h := newHouse(t, child("s", "-stubborn", "-lifeline", l.addr())+"graceMs = 60000\n", mcpbroker.WithTap(func(_ string, message any) {
		if _, ok := message.(*msg.DrainProvider); ok { // the stop has begun
			cancel()
		}
	}))
	process := next(t, l.born, patience, "began")
	h.verdict("s", msg.Live)
	c, err := h.load(child("comes"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := h.Reload(short, c)
	want := mcpbroker.Reloaded{Added: []string{"comes"}, Removed: []string{"s"}, Stopping: []string{"s"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, reloaded (-want +got):\n%s", err, diff)
	}
	h.text(h.client("comes"), "pid", "{}")
	kill(t, process)
	got, err = h.Reload(t.Context(), c)
	if diff := cmp.Diff(mcpbroker.Reloaded{}, got); err != nil || diff != "" {
		t.Errorf("again: %v, reloaded (-want +got):\n%s", err, diff)
	}
	if ended := next(t, l.died, patience, "ended"); ended != process {
		t.Errorf("process %s ended, not %s", ended, process)
	}
}

// While upstreams come and go, what _all lists can be called, and what it does not
// list cannot.
func TestListAndCallAgree(t *testing.T) {
	t.Parallel()
	const aggregate = "aggregate = true\n"
	base := child("stays") + aggregate
	h := newHouse(t, base)
	h.verdict("stays", msg.Live)
	h.Log.Wait(t, `provider "stays" joined "_all"`)
	stop, seen := make(chan struct{}), make(chan string, 1)
	c := h.client("_all")
	var changes atomic.Int32
	go func() { seen <- agree(t.Context(), c, &changes, stop) }()
	for range 4 {
		changes.Add(1)
		if _, err := h.reload(base + child("comes") + aggregate); err != nil {
			t.Error(err)
		}
		if !eventually(func() bool { return slices.Contains(h.allTools(), "comes-pid") }) {
			t.Fatal("_all does not list the upstream that came")
		}
		changes.Add(1)
		if _, err := h.reload(base); err != nil {
			t.Error(err)
		}
		if !eventually(func() bool { return !slices.Contains(h.allTools(), "comes-pid") }) {
			t.Fatal("_all lists the upstream that left")
		}
		if tools := h.allTools(); !slices.Contains(tools, "stays-pid") {
			t.Errorf("after it left, _all lists %q", tools)
		}
	}
	close(stop)
	if complaint := <-seen; complaint != "" {
		t.Error(complaint)
	}
}

// agree asks _all until stop is closed, and returns what does not fit together. A
// round in which the upstream may have come and left again tells nothing. That it has
// left, its slot knows a moment before _all does: the list follows the call then.
func agree(ctx context.Context, c *brokertest.Client, changes *atomic.Int32, stop <-chan struct{}) string {
	list := func() bool {
		a, err := c.Try(ctx, http.MethodPost, listTools)
		return err == nil && strings.Contains(a.Body, `"comes-pid"`)
	}
	for n := 0; ; n++ {
		select {
		case <-stop:
			return ""
		default:
		}
		epoch, before := changes.Load(), list()
		a, err := c.Try(ctx, http.MethodPost, toolCall("2", "comes-pid", "{}"))
		if err != nil {
			return err.Error()
		}
		served := strings.Contains(a.Body, `"result":{"content":[{`)
		fits := func() bool { after := list(); return after != before || changes.Load() != epoch }
		if before != served && !fits() && !(before && eventually(fits)) {
			return fmt.Sprintf("round %d: listed %t all the time, but the call came to %s", n, before, a.Body)
		}
		b, err := c.Try(ctx, http.MethodPost, toolCall("3", "stays-pid", "{}"))
		if err != nil || !strings.Contains(b.Body, `"result":{"content":[{`) {
			return fmt.Sprintf("round %d: the upstream that stays answered %s, %v", n, b.Body, err)
		}
	}
}

// allTools lists the tools of _all.
func (h *house) allTools() []string {
	h.t.Helper()
	c := h.client("_all")
	var answer struct {
		Result struct{ Tools []struct{ Name string } }
	}
	a := c.Post(listTools)
	if err := json.Unmarshal([]byte(a.Body), &answer); err != nil {
		h.t.Fatalf("%v in %s", err, a.Body)
	}
	c.Do(http.MethodDelete, "")
	var names []string
	for _, tool := range answer.Result.Tools {
		names = append(names, tool.Name)
	}
	return names
}
