package introspection

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/actors/msg"
)

// Sessions come and go; the registry hears of the first caller and of the last
// one leaving. What the broker itself asks is no caller's.
func TestMembers(t *testing.T) {
	const used, unused = "registry <- changed _broker loopback connected=true aggregate=true callers=1", "registry <- changed _broker loopback connected=true aggregate=true callers=0"
	w := newWorld(t, nil)
	w.expect("_all", w.joining(9, msg.BrokerClient), "c9 <- joined as 9")
	w.expect("the first", w.joining(1, msg.HTTPClient), "c1 <- joined as 1", used)
	w.expect("again", w.joining(1, msg.HTTPClient), "c1 <- joined as 1")
	w.expect("a second", w.joining(2, msg.WebSocketClient), "c2 <- joined as 2")
	w.expect("a third", w.joining(3, msg.StdioClient), "c3 <- joined as 3")
	i := w.a.state.Info()
	if i.ClientCount != 1 || i.SessionCount != 1 || i.OtherCount != 1 {
		t.Errorf("callers are %d, %d and %d", i.ClientCount, i.SessionCount, i.OtherCount)
	}
	w.expect("one leaves", &msg.LeaveSlot{Session: 2})
	w.expect("twice", &msg.LeaveSlot{Session: 2})
	w.expect("another", &msg.LeaveSlot{Session: 3})
	w.expect("the last", &msg.LeaveSlot{Session: 1}, unused)
	w.expect("_all", &msg.LeaveSlot{Session: 9})
}

// The slot says what it is when the registry enters it, once.
func TestIntroducesItself(t *testing.T) {
	w := newWorld(t, func(c *settings) { c.aggregate = false })
	w.expect("entered", observed(Slot, false, false, 0), "registry <- changed _broker loopback connected=true aggregate=false callers=0")
	w.expect("known", observed(Slot, true, false, 1))
	want := msg.SlotInfo{
		Name: Slot, Transport: msg.Loopback, Connected: true, ConnectedSince: epoch, Gen: 1, MaxPending: 1024, Answered: true,
		Attached: [msg.FlapCount]time.Time{epoch},
	}
	if diff := cmp.Diff(want, w.a.state.Info()); diff != "" {
		t.Errorf("info (-want +got):\n%s", diff)
	}
}

// maxSessionsPerSlot: the session that has been idle longest makes room, with all
// it held.
func TestRoomForSessions(t *testing.T) {
	w := withSlots(t, func(c *settings) { c.maxSessions = 2 })
	w.effects(w.request(1, subscribe("broker://providers")))
	w.hold = true
	w.effects(w.request(1, call("providers_list", "")))
	w.now = w.now.Add(time.Second)
	w.join(2)
	w.expect("a third", w.joining(3, msg.HTTPClient), "c1 <- end: maxSessionsPerSlot", "c3 <- joined as 3")
	if i := w.a.state.Info(); i.SessionCount != 2 || i.PendingCount != 0 || i.SubscriptionCount != 0 || w.a.state.callers != 2 {
		t.Errorf("left are %+v, %d callers", i, w.a.state.callers)
	}
	w.effects(&msg.StreamChanged{Session: 2, Open: true}, &msg.StreamChanged{Session: 3, Open: true})
	w.expect("all stream", w.joining(4, msg.HTTPClient),
		`c4 <- join refused -32000 Slot "_broker" has 2 sessions, the most it may have (maxSessionsPerSlot), and all have a stream open`)
}
