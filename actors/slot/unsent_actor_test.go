package slot_test

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/actors/msg"
)

// own makes the slot's provider its owner, with a connection of this name.
func (w *world) own(conduit string) {
	w.slot.Send(&msg.OwnSlot{Slot: "s", Owner: w.peer("holder")})
	w.slot.Send(&msg.ClaimSlot{Slot: "s", Claimant: w.peer("holder"), Conduit: provider{w.peer(conduit)}, Kind: msg.Upstream})
	synctest.Wait()
}

// Spec 06: what a connection that is ending did not take goes through the next one,
// what it did take and may have written does not; whatever the slot fails at
// meanwhile.
func TestRefusedFrames(t *testing.T) {
	for _, test := range []struct {
		name string
		at   func(message any) bool
	}{
		{"no failure", func(any) bool { return false }},
		{"failure at the end", is[*msg.ProviderGone]},
		{"failure at the message behind the refusal", is[*msg.StreamChanged]},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, test.at)
				defer w.close(t)
				w.slot.Send(&msg.ProviderGone{Gen: w.gen})
				synctest.Wait()
				w.own("first")
				w.call(1)
				w.peer("first").end()
				w.call(2)
				w.heard()
				w.arm()
				w.slot.Send(&msg.StreamChanged{Session: 1, Open: true})
				w.slot.Send(&msg.ClientNote{Session: 1, Frame: frame(`{"jsonrpc":"2.0","method":"n"}`)})
				w.call(3)
				w.slot.Send(&msg.ProviderGone{Gen: w.gen})
				synctest.Wait()
				w.own("next")
				w.answer(5)
				w.answer(4)
				synctest.Wait()
				want := []string{
					`client: failed 1 -32000 Provider "s" disconnected`,
					"holder: granted",
					`next: {"jsonrpc":"2.0","id":"brk-4","method":"m","params":[]}`,
					`next: {"jsonrpc":"2.0","id":"brk-5","method":"m","params":[]}`,
					"credit", `client: reply 3 {"jsonrpc":"2.0","id":3,"result":{}}`,
					"credit", `client: reply 2 {"jsonrpc":"2.0","id":2,"result":{}}`,
				}
				if diff := cmp.Diff(want, w.heard()); diff != "" {
					t.Errorf("heard (-want +got):\n%s", diff)
				}
			})
		})
	}
}
