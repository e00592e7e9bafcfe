package upstreams_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/upstreams"
)

// However many slots there are, one that is watched is seen; and the registry
// forgets who watched it.
func TestWatchAmongMany(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		for n := range 3000 {
			h.registry.Send(&msg.OwnSlot{Slot: fmt.Sprint("other-", n), Owner: h.registry})
		}
		synctest.Wait()
		h.apply(h.config("a", "1")) // it serves the slot that is watched
		var left atomic.Int32
		h.strike(0, func(message any) bool {
			if is[*msg.UnwatchSlots](message) {
				left.Add(1)
			}
			return false
		})
		other := upstreams.Start(h.sys, h.registry, `{"name":"broker"}`, func() uint64 { return h.sessions.Add(1) }, nil)
		if _, err := other.Apply(t.Context(), []upstreams.Config{{Slot: "a", Watch: true, Fingerprint: "1"}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		i, err := other.Instance(t.Context(), "a")
		equal(t, "verdict", fmt.Sprint(i.Verdict, err), "live<nil>")
		if err := other.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		equal(t, "watchers that have left", left.Load(), int32(1))
	})
}
