package introspection

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/actors/msg"
)

var pump = msg.SlotInfo{
	Name: "pump-1", Transport: msg.Multiplexed, Connected: true, Aggregate: true, ConnectedSince: epoch.Add(-1500 * time.Millisecond),
	ClientCount: 1, SessionCount: 2, OtherCount: 8, PendingCount: 3, SubscriptionCount: 4,
}

const (
	pumpObject  = `{"name":"pump-1","transport":"ws-multiplex","connected":true,"aggregate":true,"connectedSince":"2026-11-30T11:59:58.500Z","connectedForMs":1500,"clientCount":1,"sessionCount":2,"pendingCount":3,"resourceSubscriptionCount":4}`
	emptyObject = `{"name":"a/ü%","transport":"none","connected":false,"aggregate":false,"connectedSince":null,"connectedForMs":null,"clientCount":0,"sessionCount":0,"pendingCount":0,"resourceSubscriptionCount":0}`
)

// ownObject is this slot, as it describes itself with n calls in flight.
func ownObject(sessions, n int) string {
	return fmt.Sprintf(`{"name":"_broker","transport":"loopback","connected":true,"aggregate":true,"connectedSince":"2026-11-30T12:00:00.000Z","connectedForMs":0,"clientCount":0,"sessionCount":%d,"pendingCount":%d,"resourceSubscriptionCount":0}`, sessions, n)
}

// withSlots is a broker with its own slot, one in use and an empty one, whose
// present state differs from what they last reported.
func withSlots(t testing.TB, change func(*settings)) *world {
	w := newWorld(t, change)
	w.join(1)
	w.slot(msg.SlotInfo{Name: Slot}, msg.SlotInfo{})
	w.slot(msg.SlotInfo{Name: "pump-1", Transport: msg.NoProvider}, pump)
	w.slot(msg.SlotInfo{Name: "a/ü%", Transport: msg.Dedicated}, msg.SlotInfo{Name: "a/ü%", Transport: msg.NoProvider})
	return w
}

// Spec 03 1.4 providers_list and 1.5 broker://providers: every slot in the order
// of creation, live; the call counts itself.
func TestProvidersList(t *testing.T) {
	w := withSlots(t, nil)
	list := `{"count":3,"providers":[` + ownObject(1, 1) + `,` + pumpObject + `,` + emptyObject + `]}`
	w.answers(call("providers_list", ""), returns(list))
	w.answers(`"method":"resources/read","params":{"uri":"broker://providers"}`,
		reply(`{"contents":[{"uri":"broker://providers","mimeType":"application/json","text":`+jsonText(list)+`}]}`))

	w.reg.live["a/ü%"] = msg.SlotInfo{Name: "a/ü%", Transport: msg.NoProvider, Expected: true, Aggregate: true}
	w.answers(call("provider_status", `{"name":"a/ü%"}`),
		returns(strings.Replace(emptyObject, `"connected":false,"aggregate":false`, `"connected":false,"connecting":true,"aggregate":true`, 1)))

	w.reg.live["pump-1"] = msg.SlotInfo{Name: "pump-1", Transport: msg.NoProvider}
	if got := w.answer(`"method":"resources/read","params":{"uri":"broker://providers"}`); strings.Contains(got, "ws-multiplex") {
		t.Errorf("a second read is not live: %s", got)
	}

	w = newWorld(t, nil)
	w.join(1)
	w.answers(call("providers_list", ""), returns(`{"count":0,"providers":[]}`))
}

// Spec 03 1.4 provider_status, and its resource. A clock that went back gives no
// negative age.
func TestProviderStatus(t *testing.T) {
	w := withSlots(t, nil)
	w.answers(call("provider_status", `{"name":"pump-1"}`), returns(pumpObject))
	w.answers(call("provider_status", `{"name":"a/ü%"}`), returns(emptyObject))
	w.answers(call("provider_status", `{"name":"_broker"}`), returns(ownObject(1, 1)))
	w.answers(call("provider_status", `{"name":"Pump-1"}`), says(`Unknown provider: "Pump-1".`, true))
	for uri, object := range map[string]string{
		"broker://providers/pump-1": pumpObject, "broker://providers/pump%2D1": pumpObject, "broker://providers/a%2F%C3%BC%25": emptyObject,
	} {
		w.answers(`"method":"resources/read","params":{"uri":"`+uri+`"}`,
			reply(`{"contents":[{"uri":"`+uri+`","mimeType":"application/json","text":`+jsonText(object)+`}]}`))
	}
	for _, uri := range []string{"broker://providers/nope", "broker://providers/%zz", "broker://providers/%FF"} {
		w.answers(`"method":"resources/read","params":{"uri":"`+uri+`"}`, "failed -32002 Resource not found: "+uri)
	}
	w.now = epoch.Add(-time.Hour)
	if got := w.answer(call("provider_status", `{"name":"pump-1"}`)); !strings.Contains(got, `"connectedForMs":0,`) {
		t.Errorf("with the clock set back: %s", got)
	}
}

// A slot that does not answer in time keeps what it last reported, and holds the
// others up for 2 s in all.
func TestSilentSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := withSlots(t, nil)
		w.reg.silent["pump-1"], w.reg.silent["a/ü%"] = true, true
		began := time.Now()
		got := w.answer(call("providers_list", ""))
		if !strings.Contains(got, `{"name":"pump-1","transport":"none",`) || !strings.Contains(got, `"transport":"loopback"`) {
			t.Errorf("the list is %s", got)
		}
		if took := time.Since(began); took != patience {
			t.Errorf("the list took %v", took)
		}
		got = w.answer(call("provider_status", `{"name":"pump-1"}`))
		if !strings.Contains(got, `"structuredContent":{"name":"pump-1","transport":"none"`) {
			t.Errorf("the status is %s", got)
		}
	})
}

// Without a registry there is one clear error.
func TestNoInventory(t *testing.T) {
	w := withSlots(t, nil)
	w.reg.dead = true
	const want = "failed -32000 The slots could not be listed within 2000ms; the broker is overloaded or stopping, send the request again"
	w.answers(call("providers_list", ""), want)
	w.answers(call("broker_diagnose", ""), want)
	w.answers(call("provider_status", `{"name":"x"}`), want)
	w.answers(call("provider_status", `{"name":"pump-1"}`), returns(pumpObject))
}

// finish carries the n-th held round out.
func (w *world) finish(n int) []string {
	w.a.look(w.held[n])
	return w.effects()
}

// Questions about all slots that come during a look wait for the next one, and
// share it; questions about one slot wait for nobody.
func TestRoundsAreShared(t *testing.T) {
	w := withSlots(t, nil)
	w.join(2)
	w.hold = true
	w.effects(w.request(1, call("providers_list", "")), w.request(2, call("broker_diagnose", "")), w.request(1, call("providers_list", "")))
	w.effects(w.request(2, call("provider_status", `{"name":"pump-1"}`)))
	if len(w.held) != 2 || !w.held[0].all || w.held[1].all || len(w.held[0].questions) != 1 {
		t.Fatalf("%d rounds: %+v", len(w.held), w.held)
	}
	if i := w.a.state.Info(); i.PendingCount != 4 || !i.OldestPending.Equal(epoch) {
		t.Errorf("pending are %d, the oldest since %v", i.PendingCount, i.OldestPending)
	}
	if diff := cmp.Diff([]string{"c2 <- " + returns(pumpObject)}, w.finish(1)); diff != "" {
		t.Errorf("the status (-want +got):\n%s", diff)
	}
	list := func(pending int) string {
		return returns(`{"count":3,"providers":[` + ownObject(2, pending) + `,` + pumpObject + `,` + emptyObject + `]}`)
	}
	if diff := cmp.Diff([]string{"c1 <- " + list(3)}, w.finish(0)); diff != "" {
		t.Errorf("the first list (-want +got):\n%s", diff)
	}
	if len(w.held) != 3 || len(w.held[2].questions) != 2 {
		t.Fatalf("the others do not share a round: %+v", w.held)
	}
	if diff := cmp.Diff([]string{"c2 <- " + returns(`{"slots":3,"of":""}`), "c1 <- " + list(2)}, w.finish(2)); diff != "" {
		t.Errorf("the second round (-want +got):\n%s", diff)
	}
	if i := w.a.state.Info(); i.PendingCount != 0 || !i.OldestPending.IsZero() || w.a.state.rounds != 0 {
		t.Errorf("left are %d calls, %d rounds", i.PendingCount, w.a.state.rounds)
	}
}

// What nobody waits for any more is not answered: a caller that left, a session
// that left, and a session that came back under the same number.
func TestLateAnswersAreDropped(t *testing.T) {
	w := withSlots(t, nil)
	w.join(2)
	w.hold = true
	w.effects(w.request(1, call("providers_list", "")), w.request(2, call("providers_list", "")), w.request(2, call("provider_status", `{"name":"pump-1"}`)))
	w.expect("the caller leaves", &msg.CallerLeft{Session: 1, Call: 1})
	w.expect("the session leaves", &msg.LeaveSlot{Slot: Slot, Session: 2})
	w.expect("a caller nobody knows", &msg.CallerLeft{Session: 1, Call: 99})
	if n := w.a.state.Info().PendingCount; n != 0 {
		t.Errorf("%d calls are pending", n)
	}
	w.join(2)
	w.calls = 2
	w.effects(w.request(2, call("provider_status", `{"name":"pump-1"}`))) // call 3 again
	if got := w.finish(1); got != nil {
		t.Errorf("an answer to a call that has ended: %q", got)
	}
	if got := w.finish(0); got != nil {
		t.Errorf("an answer to a caller that left: %q", got)
	}
	if got := w.finish(2); len(got) != 1 {
		t.Errorf("the new call has %d answers", len(got))
	}
	if len(w.held) != 3 || w.a.state.rounds != 0 {
		t.Errorf("%d rounds begun, %d under way", len(w.held), w.a.state.rounds)
	}
}

// Calls in flight are bounded, and so are rounds whose callers have left.
func TestPendingBound(t *testing.T) {
	w := withSlots(t, func(c *settings) { c.maxPending = 2 })
	w.hold = true
	const busy = `c1 <- failed -32000 Slot "_broker" has 2 requests waiting, the most it may have (maxPendingPerSlot); send the request again later`
	status := call("provider_status", `{"name":"pump-1"}`)
	w.effects(w.request(1, status), w.request(1, status))
	w.expect("one more", w.request(1, status), busy)
	w.expect("they leave", &msg.CallerLeft{Session: 1, Call: 1})
	w.expect("they leave", &msg.CallerLeft{Session: 1, Call: 2})
	w.expect("their rounds go on", w.request(1, status), busy)
	w.finish(0)
	w.expect("one has ended", w.request(1, status))
}

// A stop answers who waits.
func TestEnding(t *testing.T) {
	w := withSlots(t, nil)
	w.hold = true
	w.effects(w.request(1, call("providers_list", "")), w.request(1, call("providers_list", "")))
	if got := w.effects(ending{}); len(got) != 2 || !strings.HasPrefix(got[0], "c1 <- failed -32000 ") {
		t.Errorf("told: %q", got)
	}
	if got := w.finish(0); got != nil {
		t.Errorf("answered twice: %q", got)
	}
}
