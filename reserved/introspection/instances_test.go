package introspection

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/actors/msg"
)

// fleet plays the upstreams of a world.
type fleet struct {
	list     []msg.Instance
	err      error
	restarts []string
	refusal  error
}

func (f *fleet) find(slot string) *msg.Instance { return findInstance(f.list, slot) }

var files1 = msg.Instance{
	Slot: "a/1", Kind: "stdio", Target: "npx files", Verdict: msg.Live, Check: "tools/list", PID: 77, Since: epoch.Add(-90 * time.Second),
	Restarts: 2, LastAttempt: epoch.Add(-91 * time.Second),
	Events: []msg.InstanceEvent{{At: epoch.Add(-91 * time.Second), Text: "start 3"}, {At: epoch.Add(-90 * time.Second), Text: "up"}},
	Tail:   []string{"ready"},
}

var downed = msg.Instance{
	Slot: "crm", Kind: "streamable-http", Target: "https://crm.example/mcp", Aggregate: true, Verdict: msg.Failed, Check: "tools/list",
	Attempt: 3, LastAttempt: epoch.Add(-5 * time.Second), NextRetry: epoch.Add(24500 * time.Millisecond), Error: "401 Unauthorized", Denied: true,
}

// withUpstreams is a broker that keeps a running upstream and one that is not.
func withUpstreams(t testing.TB) (*world, *fleet) {
	f := &fleet{list: []msg.Instance{files1, downed}}
	w := newWorld(t, func(c *settings) { c.instances = true })
	w.a.instances = func(context.Context) ([]msg.Instance, error) { return append([]msg.Instance(nil), f.list...), f.err }
	w.a.restart = func(_ context.Context, slot string) error { f.restarts = append(f.restarts, slot); return f.refusal }
	w.join(1)
	w.effects(&HaveInstances{true})
	return w, f
}

const (
	filesFields = `"name":"a/1","kind":"stdio","target":"npx files","aggregate":false,"isolated":false,"verdict":"live",` +
		`"explanation":"It answers tools/list; nothing checks what is behind it. Set healthCheck.tool to have a real call made.","check":"tools/list",` +
		`"pid":77,"upSince":"2026-11-30T11:58:30.000Z","upForMs":90000,"restarts":2,"sessions":0,"attemptCount":0,"lastAttemptAt":"2026-11-30T11:58:29.000Z",` +
		`"nextRetryAt":null,"nextRetryInMs":null,"error":null,"unresolved":false,"denied":false,"gaveUp":false,"crashLoop":false`
	filesStatus = `{` + filesFields + `,"events":[{"at":"2026-11-30T11:58:29.000Z","text":"start 3"},{"at":"2026-11-30T11:58:30.000Z","text":"up"}],"stderr":["ready"]}`
	crmFields   = `"name":"crm","kind":"streamable-http","target":"https://crm.example/mcp","aggregate":true,"isolated":false,"verdict":"error",` +
		`"explanation":"It cannot be started: 3 failed attempts in a row. The next one is in 25s.","check":"tools/list",` +
		`"pid":null,"upSince":null,"upForMs":null,"restarts":0,"sessions":0,"attemptCount":3,"lastAttemptAt":"2026-11-30T11:59:55.000Z",` +
		`"nextRetryAt":"2026-11-30T12:00:24.500Z","nextRetryInMs":24500,"error":"401 Unauthorized","unresolved":false,"denied":true,"gaveUp":false,"crashLoop":false`
	crmStatus    = `{` + crmFields + `,"events":[],"stderr":[]}`
	filesAndCRM  = `{"count":2,"instances":[{` + filesFields + `},{` + crmFields + `}]}`
	readInstance = `"method":"resources/read","params":{"uri":"broker://instances`
)

// Spec 06, "What an operator sees": the whole objects, as tools and as resources.
func TestInstances(t *testing.T) {
	w, f := withUpstreams(t)
	w.answers(call("instances_list", ""), returns(filesAndCRM))
	w.answers(call("instance_status", `{"name":"a/1"}`), returns(filesStatus))
	w.answers(call("instance_status", `{"name":"crm"}`), returns(crmStatus))
	w.answers(readInstance+`"}`, reply(`{"contents":[{"uri":"broker://instances","mimeType":"application/json","text":`+jsonText(filesAndCRM)+`}]}`))
	w.answers(readInstance+`/a%2F1"}`, reply(`{"contents":[{"uri":"broker://instances/a%2F1","mimeType":"application/json","text":`+jsonText(filesStatus)+`}]}`))

	w.answers(call("instance_status", `{"name":"CRM"}`), says(`Unknown instance: "CRM". Call instances_list to see the names there are; they are case-sensitive.`, true))
	w.answers(call("instance_restart", `{"name":"CRM"}`), says(`Unknown instance: "CRM". Call instances_list to see the names there are; they are case-sensitive.`, true))
	w.answers(call("instance_status", ``), says(`Missing required argument: "name" (string).`, true))
	w.answers(call("instances_list", `{"x":1}`), says(`Unknown argument "x". instances_list takes no arguments.`, true))
	w.answers(readInstance+`/nope"}`, "failed -32002 Resource not found: broker://instances/nope")
	if f.restarts != nil {
		t.Errorf("restarted %q", f.restarts)
	}
	f.err = errors.New("busy")
	w.answers(call("instances_list", ""), "failed -32000 The slots could not be listed within 2000ms; the broker is overloaded or stopping, send the request again")
	f.list, f.err = nil, nil
	w.answers(call("instances_list", ""), returns(`{"count":0,"instances":[]}`))
}

// Spec 06, "Truth about health": each verdict in words; live is an admission.
func TestExplain(t *testing.T) {
	for _, c := range []struct {
		i    msg.Instance
		want string
	}{
		{msg.Instance{Verdict: msg.Starting}, "It is being started: its first handshake or its first check is not finished."},
		{msg.Instance{Verdict: msg.Live, Check: "tools/list"}, "It answers tools/list; nothing checks what is behind it. Set healthCheck.tool to have a real call made."},
		{msg.Instance{Kind: msg.KindProvider, Verdict: msg.Away}, "Nobody holds the slot; its provider comes by itself."},
		{msg.Instance{Kind: msg.KindProvider, Verdict: msg.Starting}, "Its provider has come, and its first check is not finished."},
		{msg.Instance{Kind: msg.KindProvider, Verdict: msg.Unhealthy}, "As many checks in a row failed as healthCheck.failureThreshold; it comes by itself, so the broker cannot make its connection again."},
		{msg.Instance{Verdict: msg.Live, Check: "ping"}, "It answers ping and offers no tools; nothing checks what is behind it."},
		{msg.Instance{Verdict: msg.Live, Isolated: true}, "A process is started for each client session; none runs now."},
		{msg.Instance{Verdict: msg.Starting, Isolated: true}, "A process is started for each client session; none runs now."},
		{msg.Instance{Verdict: msg.Starting, Isolated: true, Sessions: 1}, "It is being started: its first handshake or its first check is not finished."},
		{msg.Instance{Verdict: msg.Live, Isolated: true, Sessions: 2, Check: "tools/list"}, "Each client session has a process of its own, and all of them answer tools/list; nothing checks what is behind them."},
		{msg.Instance{Verdict: msg.Healthy, Check: "list_sites"}, "A real call of list_sites passed."},
		{msg.Instance{Verdict: msg.Degraded}, "Its last check failed, not yet as often in a row as healthCheck.failureThreshold."},
		{msg.Instance{Verdict: msg.Unhealthy}, "As many checks in a row failed as healthCheck.failureThreshold; its connection is being made again."},
		{msg.Instance{Verdict: msg.Unhealthy, Cause: msg.CauseChecks, NextRetry: epoch.Add(5 * time.Minute)}, "The broker ended it, since as many checks in a row failed as healthCheck.failureThreshold. It is down; the next attempt is in 5m0s."},
		{msg.Instance{Verdict: msg.Unhealthy, Cause: msg.CauseChecks, GaveUp: true, Attempt: 2}, "It was given up after 2 failed attempts in a row (maxRestarts); only a restart by hand helps."},
		{msg.Instance{Verdict: msg.Starting, Behind: true}, "Its settings were changed: it is started once its old process or connection has ended."},
		{msg.Instance{Verdict: msg.Starting, Behind: true, Isolated: true}, "Its settings were changed: it is started once its old process or connection has ended."},
		{msg.Instance{Verdict: msg.Failed, Attempt: 1}, "It could not be started: 1 failed attempt in a row. The next one is under way."},
		{msg.Instance{Verdict: msg.Failed, Attempt: 4}, "It could not be started: 4 failed attempts in a row. The next one is under way."},
		{msg.Instance{Verdict: msg.Failed, Attempt: 4, NextRetry: epoch.Add(time.Minute)}, "It cannot be started: 4 failed attempts in a row. The next one is in 1m0s."},
		{msg.Instance{Verdict: msg.Failed, Attempt: 4, NextRetry: epoch.Add(-time.Minute)}, "It cannot be started: 4 failed attempts in a row. The next one is in 0s."},
		{msg.Instance{Verdict: msg.Unhealthy, Unremedied: true}, "Its checks fail as they did before its connection was made again; it goes on serving, and is not restarted for that until a check has passed."},
		{msg.Instance{Verdict: msg.Failed, Attempt: 1, Cause: msg.CauseEnded, NextRetry: epoch.Add(29500 * time.Millisecond)}, "It ended while it served. The next attempt is in 30s."},
		{msg.Instance{Verdict: msg.Failed, Attempt: 1, Cause: msg.CauseChecks}, "The broker ended it, since its checks failed. The next attempt is under way."},
		{msg.Instance{Verdict: msg.Failed, Attempt: 1, Cause: msg.CauseSlot}, "Another provider holds its slot. The next attempt is under way."},
		{msg.Instance{Verdict: msg.Failed, Attempt: 1, Cause: msg.CauseStart}, "It could not be started: 1 failed attempt in a row. The next one is under way."},
		{msg.Instance{Verdict: msg.Failed, Attempt: 4, GaveUp: true}, "It was given up after 4 failed attempts in a row (maxRestarts); only a restart by hand helps."},
		{msg.Instance{Verdict: msg.Halted}, "The broker is stopping it."},
		{msg.Instance{Verdict: msg.Unknown}, "The part of the broker that keeps it does not answer: it failed and is started again within seconds. Ask again; the broker's log has the cause."},
	} {
		if got := explain(epoch, &c.i); got != c.want {
			t.Errorf("%+v:\n got %s\nwant %s", c.i, got, c.want)
		}
	}
}

const (
	toolsChanged     = ` <- note {"jsonrpc":"2.0","method":"notifications/tools/list_changed"} class=1 key=notifications/tools/list_changed`
	resourcesChanged = ` <- note {"jsonrpc":"2.0","method":"notifications/resources/list_changed"} class=1 key=notifications/resources/list_changed`
)

// The tools and resources are there while the broker keeps upstreams; sessions are
// told when that changes, once.
func TestInstancesComeAndGo(t *testing.T) {
	w, _ := withUpstreams(t)
	w.effects(&HaveInstances{false})
	w.join(2)
	gone := []string{
		w.answer(`"method":"tools/list"`), w.answer(`"method":"resources/list"`), w.answer(`"method":"resources/templates/list"`),
	}
	for _, list := range gone {
		if strings.Contains(list, "instance") {
			t.Errorf("without upstreams: %s", list)
		}
	}
	w.answers(call("instances_list", ""), "failed -32602 Unknown tool: instances_list")
	w.answers(call("instance_restart", `{"name":"crm"}`), "failed -32602 Unknown tool: instance_restart")
	w.answers(readInstance+`"}`, "failed -32002 Resource not found: broker://instances")
	w.answers(readInstance+`/crm"}`, "failed -32002 Resource not found: broker://instances/crm")
	w.answers(subscribe("broker://instances/crm"), "failed -32002 Resource not found: broker://instances/crm")

	told := []string{"c1" + toolsChanged, "c2" + toolsChanged, "c1" + resourcesChanged, "c2" + resourcesChanged}
	w.expect("still none", &HaveInstances{false})
	w.expect("the first", &HaveInstances{true}, told...)
	w.expect("another", &HaveInstances{true})
	if diff := cmp.Diff([]string{
		"broker_info", "providers_list", "provider_status", "broker_guide", "broker_diagnose", "instances_list", "instance_status", "instance_restart",
	}, w.toolNames()); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	if got := w.answer(`"method":"tools/list"`); strings.Count(got, `"readOnlyHint":true`) != 7 || !strings.HasSuffix(got, `"annotations":{"readOnlyHint":false,"openWorldHint":false}}]}}`) {
		t.Errorf("the restart is said only to read: %s", got)
	}
	if got := w.answer(`"method":"resources/list"`); !strings.Contains(got, `{"uri":"broker://instances","name":"Upstreams","mimeType":"application/json","description":"`) {
		t.Errorf("resources: %s", got)
	}
	if got := w.answer(`"method":"resources/templates/list"`); !strings.Contains(got, `{"uriTemplate":"broker://instances/{name}","name":"One upstream","mimeType":"application/json","description":"`) {
		t.Errorf("templates: %s", got)
	}
	w.expect("the last goes", &HaveInstances{false}, told...)
	for n, method := range []string{"tools/list", "resources/list", "resources/templates/list"} {
		w.answers(`"method":"`+method+`"`, strings.TrimPrefix(gone[n], "c1 <- "))
	}

	w = newWorld(t, nil)
	w.join(1)
	w.expect("a broker that cannot ask upstreams", &HaveInstances{true})
}

func (w *world) toolNames() (names []string) {
	var list struct {
		Result struct{ Tools []struct{ Name string } }
	}
	if t, ok := w.t.(*testing.T); ok {
		decode(t, w.answer(`"method":"tools/list"`), &list)
	}
	for _, tool := range list.Result.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// Those who subscribe to upstreams are told when one comes up or goes down, and of
// no other slot.
func TestInstanceUpdates(t *testing.T) {
	w, _ := withUpstreams(t)
	for _, uri := range []string{"broker://instances", "broker://instances/a%2F1"} {
		w.answers(subscribe(uri), reply("{}"))
	}
	both := []string{told(1, "broker://instances"), told(1, "broker://instances/a%2F1")}
	attached := func(slot string, kind msg.ProviderKind, gen uint64) *msg.SlotObserved {
		return &msg.SlotObserved{Info: msg.SlotInfo{Name: slot, Transport: kind, Connected: kind != msg.NoProvider, Gen: gen}}
	}
	w.expect("its slot is entered", attached("a/1", msg.NoProvider, 0))
	w.expect("it comes up", attached("a/1", msg.Upstream, 1), both...)
	w.expect("it goes down", attached("a/1", msg.NoProvider, 1), both...)
	w.expect("another provider", attached("b", msg.Dedicated, 1))
	w.expect("another upstream", attached("c", msg.Upstream, 1), both[0])
	w.expect("which is forgotten", &msg.SlotForgotten{Name: "c"}, both[0])
}

// Questions to upstreams wait for no look at slots, and are bounded like those.
func TestInstanceRounds(t *testing.T) {
	w, _ := withUpstreams(t)
	w.a.state.cfg.maxPending = 3
	w.hold = true
	w.effects(w.request(1, call("providers_list", "")), w.request(1, call("instances_list", "")), w.request(1, call("instances_list", "")))
	if len(w.held) != 3 || w.held[1].all || w.held[2].all {
		t.Fatalf("rounds %+v", w.held)
	}
	w.expect("one more", w.request(1, call("instances_list", "")),
		`c1 <- failed -32000 Slot "_broker" has 3 requests waiting, the most it may have (maxPendingPerSlot); send the request again later`)
	if diff := cmp.Diff([]string{"c1 <- " + returns(filesAndCRM)}, w.finish(2)); diff != "" {
		t.Errorf("the last first (-want +got):\n%s", diff)
	}
	w.expect("its caller leaves", &msg.CallerLeft{Session: 1, Call: w.calls - 2})
	if got := w.finish(1); got != nil {
		t.Errorf("an answer to nobody: %q", got)
	}
	if len(w.finish(0)) != 1 || w.a.state.rounds != 0 || len(w.a.state.pending) != 0 {
		t.Errorf("left are %d rounds, %d calls", w.a.state.rounds, len(w.a.state.pending))
	}
}

// One that fails answers its caller.
func TestInstancesPanic(t *testing.T) {
	w, _ := withUpstreams(t)
	w.a.instances = func(context.Context) ([]msg.Instance, error) { panic("no list") }
	w.answers(call("instances_list", ""), fmt.Sprintf("failed -32603 Slot %q failed while handling this request; the request was not completed and may be sent again", Slot))
}

// The transport of an upstream is always "stdio" (spec 03 1.4); kind tells what it is. One
// that has not answered initialize yet is still connecting, though it is connected.
func TestSlotsOfUpstreams(t *testing.T) {
	w, f := withUpstreams(t)
	slots := []msg.SlotInfo{
		{Name: "a/1", Transport: msg.Upstream, Connected: true, ConnectedSince: epoch},
		{Name: "crm", Transport: msg.NoProvider},
		{Name: "late", Transport: msg.Upstream, Connected: true, ConnectedSince: epoch},
		{Name: "own", Transport: msg.Upstream, Connected: true, ConnectedSince: epoch},
		{Name: "pump", Transport: msg.Dedicated, Connected: true, ConnectedSince: epoch},
	}
	f.list = append(f.list,
		msg.Instance{Slot: "late", Kind: "websocket", Verdict: msg.Starting},
		msg.Instance{Slot: "own", Kind: "stdio", Isolated: true, Verdict: msg.Live},
		msg.Instance{Slot: "pump", Kind: msg.KindProvider, Verdict: msg.Starting})
	var list []string
	for _, i := range slots {
		w.slot(msg.SlotInfo{Name: i.Name}, i)
	}
	for _, start := range []string{
		`"a/1","transport":"stdio","kind":"stdio","connected":true,"aggregate"`,
		`"crm","transport":"none","kind":"streamable-http","connected":false,"aggregate"`,
		`"late","transport":"stdio","kind":"websocket","connected":true,"connecting":true,"aggregate"`,
		`"own","transport":"stdio","kind":"stdio","connected":true,"aggregate"`,
		`"pump","transport":"ws","connected":true,"aggregate"`,
	} {
		since := `"2026-11-30T12:00:00.000Z","connectedForMs":0`
		if strings.Contains(start, `"none"`) {
			since = `null,"connectedForMs":null`
		}
		list = append(list, `{"name":`+start+`:false,"connectedSince":`+since+`,"clientCount":0,"sessionCount":0,"pendingCount":0,"resourceSubscriptionCount":0}`)
	}
	w.answers(call("providers_list", ""), returns(`{"count":5,"providers":[`+strings.Join(list, ",")+`]}`))
	w.answers(call("provider_status", `{"name":"late"}`), returns(list[2]))

	f.err = errors.New("no answer")
	w.answers(call("provider_status", `{"name":"late"}`), returns(strings.NewReplacer(`"kind":"websocket",`, "", `"connecting":true,`, "").Replace(list[2])))
}
