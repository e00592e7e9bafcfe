package roster

import (
	"testing"
	"time"

	"mcpbroker/actors/msg"
)

type client struct{ got []any }

func (c *client) Send(message any) { c.got = append(c.got, message) }

var now = time.Unix(1_000_000, 0)

// deliver sends what a join came to, and returns the member.
func deliver(t *testing.T, r *Roster[string], m *msg.JoinSlot, at time.Time) (member, evicted *Member[string]) {
	t.Helper()
	member, evicted, sends := r.Join(at, m, &client{})
	for _, s := range sends {
		s.To.Send(s.Message)
	}
	return member, evicted
}

// spec 01 4.3 for a reserved slot: the longest-idle session without a stream
// makes room; the broker's own never does.
func TestJoinAtTheBound(t *testing.T) {
	r := New[string]("_all", 3)
	clients := map[uint64]*client{}
	join := func(n uint64, kind msg.ClientKind) (*Member[string], *Member[string]) {
		clients[n] = &client{}
		return deliver(t, r, &msg.JoinSlot{Session: n, Client: clients[n], Kind: kind}, now.Add(time.Duration(n)*time.Second))
	}
	join(1, msg.BrokerClient)
	join(2, msg.HTTPClient)
	join(3, msg.WebSocketClient)
	r.Touch(now.Add(10*time.Second), 2)
	if _, evicted := join(4, msg.StdioClient); evicted == nil || evicted.Session != 3 {
		t.Fatalf("evicted %+v, want session 3", evicted)
	}
	if end, ok := clients[3].got[1].(*msg.EndSession); !ok || end.Why != "maxSessionsPerSlot" {
		t.Errorf("the evicted session got %T", clients[3].got[1])
	}
	for _, n := range []uint64{2, 4} {
		r.StreamChanged(now, &msg.StreamChanged{Session: n, Open: true})
	}
	if member, _ := join(5, msg.HTTPClient); member != nil {
		t.Error("a session joined although all others stream")
	}
	refused, ok := clients[5].got[0].(*msg.JoinRefused)
	if want := `Slot "_all" has 3 sessions, the most it may have (maxSessionsPerSlot), and all have a stream open`; !ok || refused.Err.Message != want {
		t.Errorf("session 5 got %#v", clients[5].got[0])
	}
	var info msg.SlotInfo
	r.Count(&info)
	if info.SessionCount != 1 || info.ClientCount != 0 || info.OtherCount != 1 {
		t.Errorf("counts are %d, %d, %d", info.SessionCount, info.ClientCount, info.OtherCount)
	}
}

func TestJoinAgainKeepsTheMember(t *testing.T) {
	r := New[string]("_all", 0)
	c := &client{}
	first, _ := deliver(t, r, &msg.JoinSlot{Session: 7, Client: c}, now)
	first.Data = "kept"
	again, _ := deliver(t, r, &msg.JoinSlot{Session: 7, Client: c}, now.Add(time.Hour))
	if again != first || again.Data != "kept" || len(c.got) != 2 {
		t.Errorf("the second join gave %+v after %d messages", again, len(c.got))
	}
	if r.Leave(7) != first || r.Leave(7) != nil || r.Get(7) != nil || len(r.All()) != 0 {
		t.Error("the session is still there after it left")
	}
}
