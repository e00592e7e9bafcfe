package slot_test

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// What an owner says is said once: a slot that fails at it handles it after all, or
// callers would wait for a connection that is not coming.
func TestCrashAtTheOwnersWord(t *testing.T) {
	down := wire.UpstreamDown("s", "broken", "Next attempt in 30s")
	tests := []struct {
		name string
		at   func(message any) bool
	}{
		{"own", is[*msg.OwnSlot]},
		{"expected", is[*msg.HolderExpected]},
		{"failed", is[*msg.HolderFailed]},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, test.at)
				defer w.close(t)
				w.slot.Send(&msg.ProviderGone{Gen: w.gen})
				synctest.Wait()
				w.heard()
				w.arm()
				for _, word := range []any{
					&msg.OwnSlot{Slot: "s", Owner: w.peer("owner")},
					&msg.HolderExpected{Slot: "s", Owner: w.peer("owner")},
				} {
					w.slot.Send(word)
					synctest.Wait()
				}
				w.call(2)
				w.slot.Send(&msg.HolderFailed{Slot: "s", Owner: w.peer("owner"), Err: down})
				synctest.Wait()
				if diff := cmp.Diff([]string{`client: failed 2 -32000 ` + down.Message}, w.heard()); diff != "" {
					t.Errorf("heard (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// The same of an owner that leaves: the slot is anybody's again.
func TestCrashAtDisown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, is[*msg.DisownSlot])
		defer w.close(t)
		w.slot.Send(&msg.ProviderGone{Gen: w.gen})
		w.slot.Send(&msg.OwnSlot{Slot: "s", Owner: w.peer("owner")})
		w.slot.Send(&msg.HolderExpected{Slot: "s", Owner: w.peer("owner")})
		synctest.Wait()
		w.heard()
		w.call(2)
		w.arm()
		w.slot.Send(&msg.DisownSlot{Slot: "s", Owner: w.peer("owner")})
		synctest.Wait()
		if diff := cmp.Diff([]string{`client: failed 2 -32000 Provider "s" not connected`}, w.heard()); diff != "" {
			t.Errorf("heard (-want +got):\n%s", diff)
		}
	})
}
