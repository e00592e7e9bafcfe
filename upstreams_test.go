package mcpbroker_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/actors/msg"
	"mcpbroker/brokertest"
)

// Spec 06, spec 07 rows 1 and 4: the first call after the death of a child was
// seen goes to a fresh child; its caller notices nothing.
func TestChildKilledBetweenCalls(t *testing.T) {
	t.Parallel()
	h := newHouse(t, child("s"))
	c := h.client("s")
	before := h.text(c, "pid", "{}")
	h.verdict("s", msg.Live)
	kill(t, before)
	h.wait("s", func(i msg.Instance) bool { return fmt.Sprint(i.PID) != before })
	after := h.text(c, "pid", "{}")
	if after == before {
		t.Errorf("the call after went to the process %s that was killed", before)
	}
	i := h.verdict("s", msg.Live)
	if fmt.Sprint(i.PID) != after || i.Restarts != 1 || i.Attempt != 0 || i.CrashLoop {
		t.Errorf("%+v", i)
	}
}

// Spec 06: a call that was written to a child that died before it answered fails
// at once and is not repeated.
func TestUnansweredCallIsNotReplayed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "journal")
	h := newHouse(t, child("s", "-journal", file))
	c := h.client("s")
	a := c.Post(toolCall("7", "exit", `{"code":3}`))
	brokertest.Is(t, "the call that was lost", a, http.StatusOK,
		`{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"Provider \"s\" disconnected: it exited with code 3"}}`)
	h.text(c, "bump", "{}")
	n := 0
	for _, line := range journal(t, file) {
		if strings.HasSuffix(line, " tools/call exit") {
			n++
		}
	}
	if n != 1 {
		t.Errorf("the call was written %d times:\n%s", n, strings.Join(journal(t, file), "\n"))
	}
}

// Spec 07 row 13: a child that answers the handshake and then exits does not look
// like one that works: it is started twice, and then waits for its schedule.
func TestHandshakeThenExit(t *testing.T) {
	t.Parallel()
	l := newLifeline(t)
	h := newHouse(t, child("s", "-lifeline", l.addr(), "-exit-after", "2"))
	i := h.verdict("s", msg.Failed)
	if wait := time.Until(i.NextRetry); wait < 20*time.Second || wait > 30*time.Second {
		t.Errorf("the next attempt is in %s", wait)
	}
	if i.Restarts != 1 || i.Attempt != 1 || !i.CrashLoop || i.GaveUp || i.Error != "it exited with code 0" {
		t.Errorf("%+v", i)
	}
	for range 2 {
		next(t, l.born, patience, "began")
	}
	if len(l.born) > 0 {
		t.Error("it was started a third time")
	}
}

// Spec 07 rows 29 and 49: a child that dies at its start is an error with its exit
// code and its last words, at once and for every request: never an empty list.
func TestEarlyDeath(t *testing.T) {
	t.Parallel()
	h := newHouse(t, child("s", "-die", "7", "TOKEN is missing")+child("other"))
	c := brokertest.NewClient(t, h.MCPURL("s"))
	const why = `it exited with code 7; its stderr ends with: TOKEN is missing`
	first := c.Initialize().Body // which the child may have read, or not
	lost := `{"jsonrpc":"2.0","id":0,"error":{"code":-32000,"message":"Provider \"s\" disconnected: ` + why + `"}}`
	h.verdict("s", msg.Failed)
	if first != lost && first != h.refusedStart(0, "s", why) {
		t.Errorf("initialize: %s", first)
	}
	brokertest.Is(t, "tools/list", c.Post(listTools), http.StatusOK, h.refusedStart(1, "s", why))
	if i := h.instance("s"); i.Verdict != msg.Failed || i.Attempt != 1 || !cmp.Equal(i.Tail, []string{"TOKEN is missing"}) {
		t.Errorf("%+v", i)
	}
	if got := h.text(h.client("other"), "bump", "{}"); got != "1" {
		t.Errorf("the other upstream answers %q", got)
	}
	ready := brokertest.NewClient(t, h.URL()+"/readyz")
	brokertest.Is(t, "readyz", ready.Do(http.MethodGet, ""), http.StatusOK, "ready\n")
}

// refusedStart is the answer for a slot whose upstream failed to start once.
func (h *house) refusedStart(id int, slot, why string) string {
	next := h.instance(slot).NextRetry.Add(time.Second - 1).UTC().Format(time.DateTime)
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32000,"message":"Provider \"%s\" not connected: %s. Attempt 1 failed, the next one is at %s (UTC)"}}`, id, slot, why, next)
}

// Spec 07 rows 10, 11 and 14: what is broken is tried again without end, with one
// line for each change of state, and serves once it has been put right.
func TestTriedAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := filepath.Join(dir, "server")
	h := newHouse(t, strings.Replace(child("s"), "command = ", "command = "+quote(link)+" # ", 1)+
		"retry = { intervalSeconds = 1, attempts = 1, slowIntervalSeconds = 1 }\n")
	h.wait("s", func(i msg.Instance) bool { return i.Attempt >= 3 })
	if got := h.Log.Lines(`upstream "s" is error, was starting`); len(got) != 1 {
		t.Errorf("%d lines of the change: %q", len(got), got)
	}
	if got := h.Log.Lines(`"s"`); len(got) != 2 {
		t.Errorf("the log speaks of it %d times: %q", len(got), got)
	}
	linkSelf(t, link)
	i := h.verdict("s", msg.Live)
	if i.Error != "" || !i.NextRetry.IsZero() {
		t.Errorf("%+v", i)
	}
	h.text(h.client("s"), "pid", "{}")
}

// Spec 06, spec 07 row 94: an upstream whose list works is live and no more. Only
// a call of its own tool makes it healthy, or unhealthy.
func TestLiveIsNotHealthy(t *testing.T) {
	t.Parallel()
	const often = "healthCheck = { intervalSeconds = 1, failureThreshold = 2, tool = \"pid\" }\n"
	h := newHouse(t, child("live", "-broken")+child("unhealthy", "-broken")+often+child("healthy")+often)
	for slot, want := range map[string]struct {
		verdict msg.Verdict
		check   string
		event   string
	}{
		"live":    {msg.Live, "tools/list", "Liveness check (tools/list) passed"},
		"healthy": {msg.Healthy, "pid", "Readiness check (pid) passed"},
	} {
		i := h.verdict(slot, want.verdict)
		if i.Check != want.check || !hasEvent(i, want.event) {
			t.Errorf("%s: check %q, events %v", slot, i.Check, i.Events)
		}
	}
	line := h.Log.Wait(t, `upstream "unhealthy" is unhealthy`)
	brokertest.Equal(t, "the verdict in the log", line, `[broker] upstream "unhealthy" is unhealthy: Readiness check (pid) failed: `+
		`the result says isError: "{\"content\":[{\"type\":\"text\",\"text\":\"no credentials\"}],\"isError\":true}" (2 in a row); its connection is being made again`)
	if i := h.wait("unhealthy", func(i msg.Instance) bool { return i.Restarts > 0 }); i.Verdict == msg.Healthy || i.Verdict == msg.Live {
		t.Errorf("the verdict after it is %s", i.Verdict)
	}
	if i := h.instance("live"); i.Verdict != msg.Live || i.Restarts != 0 {
		t.Errorf("without a tool to call it is %s after %d restarts", i.Verdict, i.Restarts)
	}
}

func hasEvent(i msg.Instance, text string) bool {
	return slices.ContainsFunc(i.Events, func(e msg.InstanceEvent) bool { return e.Text == text })
}

// Spec 07 rows 19 and 25: with isolation = "session" a server's memory is no
// client's but one's, and its process ends with the session. Without, it is
// everybody's.
func TestIsolation(t *testing.T) {
	t.Parallel()
	l := newLifeline(t)
	h := newHouse(t, child("alone", "-lifeline", l.addr())+"isolation = \"session\"\n"+child("shared"))
	for slot, want := range map[string]string{"alone": "1 2 1 3", "shared": "1 2 3 4"} {
		one, two := h.client(slot), h.client(slot)
		got := []string{h.text(one, "bump", "{}"), h.text(one, "bump", "{}"), h.text(two, "bump", "{}"), h.text(one, "bump", "{}")}
		brokertest.Equal(t, slot+" counts", strings.Join(got, " "), want)
		if slot == "shared" {
			continue
		}
		pids := []string{h.text(one, "pid", "{}"), h.text(two, "pid", "{}")}
		if pids[0] == pids[1] {
			t.Errorf("both sessions have the process %s", pids[0])
		}
		if i := h.instance(slot); !i.Isolated || i.Sessions != 2 {
			t.Errorf("%+v", i)
		}
		for i, c := range []*brokertest.Client{two, one} {
			if a := c.Do(http.MethodDelete, ""); a.Status != http.StatusOK && a.Status != http.StatusNoContent {
				t.Errorf("the end of a session: %d %s", a.Status, a.Body)
			}
			if pid := next(t, l.died, patience, "ended"); pid != pids[1-i] {
				t.Errorf("the process %s ended with the session of %s", pid, pids[1-i])
			}
		}
		h.wait(slot, func(i msg.Instance) bool { return i.Sessions == 0 })
	}
}

// Spec 07 row 25: sessions that come and go leave no process behind.
func TestIsolatedChurn(t *testing.T) {
	t.Parallel()
	const sessions = 12
	l := newLifeline(t)
	h := newHouse(t, child("alone", "-lifeline", l.addr())+"isolation = \"session\"\n")
	for range sessions {
		c := brokertest.Dial(t, h.ClientURL("alone"), nil)
		c.Send(brokertest.InitializeFrame)
		if got := c.Receive(); !strings.Contains(got, `"result"`) {
			t.Errorf("initialize: %s", got)
		}
		c.Drop()
	}
	for range sessions {
		next(t, l.died, patience, "ended")
	}
	if left := l.living(); left != 0 {
		t.Errorf("%d of %d children are left", left, sessions)
	}
}

// Spec 07 row 17: who watches resources goes on watching when the child was
// started anew: each URI is subscribed once, and updates arrive.
func TestSubscriptionsAcrossRestart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "journal")
	h := newHouse(t, child("s", "-journal", file))
	c, other := brokertest.Dial(t, h.ClientURL("s"), nil), brokertest.Dial(t, h.ClientURL("s"), nil)
	ask := func(c *brokertest.Socket, request string) string {
		t.Helper()
		c.Send(request)
		return c.Receive()
	}
	ask(c, brokertest.InitializeFrame)
	ask(other, brokertest.InitializeFrame)
	for _, uri := range []string{"a://1", "a://2", "a://3"} {
		for _, c := range []*brokertest.Socket{c, other} {
			brokertest.Equal(t, "subscribe", ask(c, subscribe(uri)), `{"jsonrpc":"2.0","id":1,"result":{}}`)
		}
	}
	kill(t, fmt.Sprint(h.verdict("s", msg.Live).PID))
	pid := fmt.Sprint(h.wait("s", func(i msg.Instance) bool { return i.Restarts == 1 && i.Verdict == msg.Live }).PID)
	updated := func(uri string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":%q}}`, uri)
	}
	for _, c := range []*brokertest.Socket{c, other} { // each is told to read again what may have changed meanwhile
		got := []string{c.Receive(), c.Receive(), c.Receive()}
		slices.Sort(got)
		if diff := cmp.Diff([]string{updated("a://1"), updated("a://2"), updated("a://3")}, got); diff != "" {
			t.Errorf("after the restart (-want +got):\n%s", diff)
		}
	}
	brokertest.Equal(t, "the update", ask(c, toolCall("2", "touch", `{"uri":"a://2"}`)), updated("a://2"))
	brokertest.Equal(t, "the other's update", other.Receive(), updated("a://2"))
	var subscribed []string
	for _, m := range methodsOf(journal(t, file), pid) {
		if strings.HasPrefix(m, "resources/subscribe") {
			subscribed = append(subscribed, m)
		}
	}
	want := []string{"resources/subscribe a://1", "resources/subscribe a://2", "resources/subscribe a://3"}
	if diff := cmp.Diff(want, subscribed); diff != "" {
		t.Errorf("subscribed of the new process (-want +got):\n%s", diff)
	}
}

func subscribe(uri string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":%q}}`, uri)
}

// Spec 07 row 92: a call through _all touches the upstream whose tool it is, and
// no other.
func TestOneCallOneUpstream(t *testing.T) {
	t.Parallel()
	const n = 20
	dir := t.TempDir()
	var text strings.Builder
	file := func(i int) string { return filepath.Join(dir, fmt.Sprint(i)) }
	for i := range n {
		text.WriteString(child(fmt.Sprint("u", i), "-journal", file(i)) + "aggregate = true\nhealthCheck.intervalSeconds = 3600\n")
	}
	h := newHouse(t, text.String())
	for i := range n {
		h.verdict(fmt.Sprint("u", i), msg.Live)
		h.Log.Wait(t, fmt.Sprintf(`provider "u%d" joined "_all"`, i))
		asked := func() bool { return strings.Contains(strings.Join(journal(t, file(i)), ";"), " prompts/list") }
		if !eventually(asked) { // the last thing that _all asks (spec 03 3.3)
			t.Fatalf("upstream %d read %q", i, journal(t, file(i)))
		}
	}
	before := make([][]string, n)
	for i := range n {
		before[i] = journal(t, file(i))
	}
	all := h.client("_all")
	h.text(all, "u7-pid", "{}")
	h.text(h.client("u7"), "bump", "{}")
	for i := range n {
		more := journal(t, file(i))[len(before[i]):]
		if i == 7 {
			if len(more) < 2 || !strings.HasSuffix(more[0], " tools/call pid") || !strings.HasSuffix(more[len(more)-1], " tools/call bump") {
				t.Errorf("the upstream that was called read %q", more)
			}
		} else if len(more) > 0 {
			t.Errorf("upstream %d, which nobody called, read %q", i, more)
		}
	}
}

// The slot of an upstream is nobody else's, whether the upstream runs or not.
func TestUpstreamSlotIsTaken(t *testing.T) {
	t.Parallel()
	h := newHouse(t, child("up")+child("down", "-die", "1")+child("alone")+"isolation = \"session\"\n")
	h.verdict("up", msg.Live)
	h.verdict("down", msg.Failed)
	for _, slot := range []string{"up", "down", "alone"} {
		reason := `Provider "` + slot + `" is managed by a stdio upstream`
		code, got := brokertest.Dial(t, h.ProviderURL(slot), nil).Closed()
		if code != 1008 || got != reason {
			t.Errorf("a dedicated provider of %q is closed with %d %q, want 1008 %q", slot, code, got, reason)
		}
		m := brokertest.Dial(t, h.ProvidersURL(), nil)
		m.Send(fmt.Sprintf(`{"provider":%q,"payload":{"jsonrpc":"2.0","method":"notifications/register"}}`, slot))
		if got := m.Receive(); !strings.Contains(got, strings.ReplaceAll(reason, `"`, `\"`)) {
			t.Errorf("a lane to %q is told %s", slot, got)
		}
	}
	h.text(h.client("up"), "pid", "{}")
}

// Spec 07 rows 56 and 58: results arrive whole up to the bound; one that is over
// it is the error of its own call. Members the broker does not know are kept.
func TestSizesAndFields(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "maxMessageBytes = 2097152\n"+child("s"))
	c := h.client("s")
	for _, size := range []int{65535 - 100, 65535, 65536, 65537, 1 << 20} {
		if got := h.text(c, "big", fmt.Sprintf(`{"size":%d}`, size)); len(got) != size || strings.Trim(got, "x") != "" {
			t.Errorf("%d bytes came as %d", size, len(got))
		}
	}
	a := c.Post(toolCall("9", "big", `{"size":4194304}`))
	if a.Status != http.StatusOK || !strings.HasPrefix(a.Body, `{"jsonrpc":"2.0","id":9,"error":{`) || !strings.Contains(a.Body, "2097152") {
		t.Errorf("a result over the bound: %d %.500s", a.Status, a.Body)
	}
	const odd = `{"content":[],"structuredContent":{"n":12345678901234567890,"e":1e400},"_meta":{"x":null},"x-unknown":["\u00e9",{}]}`
	a = c.Post(toolCall("10", "raw", fmt.Sprintf(`{"text":%q}`, odd)))
	brokertest.Is(t, "unknown members", a, http.StatusOK, `{"jsonrpc":"2.0","id":10,"result":`+odd+`}`)
	if i := h.instance("s"); i.Restarts != 0 {
		t.Errorf("it was restarted %d times", i.Restarts)
	}
}

// Spec 07 rows 31 and 34: a stop ends children that do not want to end, all of
// them at once, and waits for no open stream.
func TestStopEndsChildren(t *testing.T) {
	t.Parallel()
	const n, grace = 6, 2 * time.Second
	l := newLifeline(t)
	var text strings.Builder
	for i := range n {
		text.WriteString(child(fmt.Sprint("u", i), "-stubborn", "-lifeline", l.addr()) + "graceMs = 2000\n")
	}
	h := newHouse(t, text.String())
	for i := range n {
		h.verdict(fmt.Sprint("u", i), msg.Live)
	}
	for range 50 {
		h.client("u0").Listen()
		h.DialSSE(t, "u1")
	}
	begun := time.Now()
	h.Stop(t)
	if took := time.Since(begun); took < grace || took > (n-1)*grace {
		t.Errorf("the stop took %s", took)
	}
	for range n {
		next(t, l.died, patience, "ended")
	}
}
