package socket

import (
	"fmt"
	"testing"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

type nowhere struct{}

func (nowhere) Send(any) {}

// A socket that names ever new slots is bounded: the next name is refused in an
// envelope, and the names it has are not disturbed.
func TestSeatsAreBounded(t *testing.T) {
	x := newMultiplexed(Config{Provider: "/provider", Providers: "/providers"}, nowhere{}, func(string) msg.Conduit { return nil })
	name := func(slot string) []Effect {
		env, _, ok, err := wire.ScanEnvelope([]byte(`{"provider":"` + slot + `","payload":{"jsonrpc":"2.0","method":"x"}}`))
		if !ok || err != nil {
			t.Fatal(err)
		}
		return x.Step(time.Time{}, &msg.SocketFrame{Envelope: &env})
	}
	for i := range maxSeats {
		if e := name(fmt.Sprint("s", i)); len(e) != 1 || e[0].Message.(*msg.ClaimSlot).Slot != fmt.Sprint("s", i) {
			t.Fatalf("name %d: %+v", i, e)
		}
	}
	e := name("one-more")
	want := `{"provider":"one-more","payload":{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Slot \"one-more\" cannot be announced: this socket has named 10000 slots, the most one socket may name"}}}`
	if len(e) != 1 || string(e[0].Frame) != want {
		t.Errorf("effects %+v, want the frame %s", e, want)
	}
	if len(x.table) != maxSeats {
		t.Errorf("%d seats", len(x.table))
	}
}
