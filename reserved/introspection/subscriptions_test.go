package introspection

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/actors/msg"
)

func subscribe(uri string) string {
	return `"method":"resources/subscribe","params":{"uri":"` + uri + `"}`
}
func unsubscribe(uri string) string {
	return `"method":"resources/unsubscribe","params":{"uri":"` + uri + `"}`
}

// told is the notification of a session.
func told(session int, uri string) string {
	return fmt.Sprintf(`c%d <- note {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"%s"}} class=1 key=notifications/resources/updated"%s"`, session, uri, uri)
}

func observed(name string, connected, aggregate bool, gen uint64) *msg.SlotObserved {
	return &msg.SlotObserved{Info: msg.SlotInfo{Name: name, Connected: connected, Aggregate: aggregate, Gen: gen}}
}

// Spec 03 1.6: the answers, and the limits.
func TestSubscriptionAnswers(t *testing.T) {
	w := newWorld(t, func(c *settings) { c.maxSubsPerClient, c.maxSubsPerSlot, c.maxURIs = 2, 3, 40 })
	w.join(1)
	w.join(2)
	done := reply("{}")
	w.answers(`"method":"resources/subscribe"`, "failed -32602 Missing required parameter: uri")
	w.answers(`"method":"resources/unsubscribe","params":{"uri":7}`, "failed -32602 Missing required parameter: uri")
	w.answers(subscribe("broker://x"), "failed -32002 Resource not found: broker://x")
	w.answers(subscribe("broker://providers/"+strings.Repeat("é", 22)), "failed -32602 The uri is 41 characters long, more than the 40 it may have (maxResourceUriLength)")
	w.answers(unsubscribe("broker://providers/"+strings.Repeat("é", 22)), done)
	w.answers(subscribe("broker://providers"), done)
	w.answers(subscribe("broker://providers"), done)
	w.answers(subscribe("broker://providers/ghost"), done)
	w.answers(subscribe("broker://guide/index"), "failed -32000 Subscription limit reached: maxSubscriptionsPerClient is 2; unsubscribe from something first")
	w.answers(subscribe("broker://providers"), done)
	if n := w.a.state.Info().SubscriptionCount; n != 2 {
		t.Errorf("%d subscriptions, want 2", n)
	}
	w.expect("of another session", w.request(2, subscribe("broker://info")), "c2 <- "+done)
	w.expect("over the slot's", w.request(2, subscribe("broker://providers")),
		"c2 <- failed -32000 Subscription limit reached: maxSubscriptionsPerSlot is 3; unsubscribe from something first")
	w.answers(unsubscribe("broker://providers"), done)
	w.answers(unsubscribe("broker://providers"), done)
	w.expect("room again", w.request(2, subscribe("broker://providers")), "c2 <- "+done)
	w.effects(&msg.LeaveSlot{Session: 1}, &msg.LeaveSlot{Session: 2})
	if n := len(w.a.state.subs); n != 0 || w.a.state.subCount != 0 {
		t.Errorf("%d URIs and %d subscriptions are left", n, w.a.state.subCount)
	}
}

// Spec 03 1.6: who is told of what. Counters never notify.
func TestUpdates(t *testing.T) {
	const all, one = "broker://providers", "broker://providers/a%2F1"
	w := newWorld(t, nil)
	for session := uint64(1); session <= 3; session++ {
		w.join(session)
	}
	w.effects(observed("old", true, false, 1))
	w.effects(w.request(1, subscribe(all)), w.request(2, subscribe(one)), w.request(3, subscribe(all)), w.request(3, subscribe(one)), w.request(3, subscribe("broker://info")))
	both := []string{told(1, all), told(3, all), told(2, one), told(3, one)}
	for _, c := range []struct {
		what    string
		message any
		want    []string
	}{
		{"a slot appears", observed("a/1", false, false, 0), both},
		{"its callers change", observed("a/1", false, false, 0), nil},
		{"a provider attaches", observed("a/1", true, false, 1), both},
		{"it joins _all", observed("a/1", true, true, 1), both},
		{"another takes over", observed("a/1", true, true, 2), both},
		{"it leaves _all", observed("a/1", true, false, 2), both},
		{"it detaches", observed("a/1", false, false, 2), both},
		{"the slot ends", &msg.SlotForgotten{Name: "a/1"}, both},
		{"it ends again", &msg.SlotForgotten{Name: "a/1"}, nil},
		{"another slot", observed("a", true, false, 1), []string{told(1, all), told(3, all)}},
		{"nothing new", observed("old", true, false, 1), nil},
	} {
		w.expect(c.what, c.message, c.want...)
	}
	w.effects(w.request(3, unsubscribe(all)), &msg.LeaveSlot{Session: 2})
	w.expect("two are gone", observed("a/1", true, false, 3), told(1, all), told(3, one))
}

// Spec 06: that a slot's owner connects again is told like the rest of what the
// object says.
func TestUpdatesOfUpstreams(t *testing.T) {
	const all = "broker://providers"
	w := newWorld(t, nil)
	w.join(1)
	w.effects(w.request(1, subscribe(all)))
	slot := func(connected, expected, aggregate bool) *msg.SlotObserved {
		return &msg.SlotObserved{Info: msg.SlotInfo{Name: "s", Connected: connected, Expected: expected, Aggregate: aggregate, Gen: 1}}
	}
	w.expect("it is started", slot(false, true, false), told(1, all))
	w.expect("it is up", slot(true, false, true), told(1, all))
	w.expect("it ended and is started again", slot(false, true, true), told(1, all))
	w.expect("it is still being started", slot(false, true, true))
	w.expect("it cannot be started", slot(false, false, false), told(1, all))
	w.expect("it is tried again", slot(false, true, false), told(1, all))
}

// Spec 03 1.6: changes of the same tick are one batch.
func TestUpdatesAreBatched(t *testing.T) {
	w := newWorld(t, nil)
	w.join(1)
	w.effects(w.request(1, subscribe("broker://providers")), w.request(1, subscribe("broker://providers/b")))
	got := w.effects(observed("a", true, false, 1), observed("b", true, false, 1), observed("b", false, false, 1), observed("c", true, true, 1), &msg.SlotForgotten{Name: "a"})
	if diff := cmp.Diff([]string{told(1, "broker://providers"), told(1, "broker://providers/b")}, got); diff != "" {
		t.Errorf("one batch (-want +got):\n%s", diff)
	}
	w.step(observed("b", true, false, 2))
	w.step(&msg.LeaveSlot{Session: 1})
	if got := w.effects(); got != nil {
		t.Errorf("told after it left: %q", got)
	}
	w.join(1)
	w.effects(w.request(1, subscribe("broker://providers")))
	w.expect("the next batch", observed("b", false, false, 2), told(1, "broker://providers"))
}

// URIs match byte for byte: another spelling is another URI, which nothing changes.
func TestUpdatesMatchExactly(t *testing.T) {
	w := newWorld(t, nil)
	w.join(1)
	w.answers(subscribe("broker://providers/%61"), reply("{}"))
	w.expect("spelled otherwise", observed("a", true, false, 1))
	w.answers(subscribe("broker://providers/\\u0061"), reply("{}"))
	w.expect("escaped in JSON only", observed("a", false, false, 1), told(1, "broker://providers/a"))
}
