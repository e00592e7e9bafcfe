package session

import (
	"strings"
	"testing"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// A session that lost its slot asks for it again, a few times where the old one
// still answers for the name; then the next message has to.
func TestRejoinAfterLoss(t *testing.T) {
	m := joined(t, Config{})
	joins := func(message any) int {
		n := 0
		for _, e := range m.step(message) {
			if strings.Contains(e, "join") {
				n++
			}
		}
		return n
	}
	if got := joins(&msg.SlotLost{}); got != 1 {
		t.Fatalf("%d joins after the loss, want 1", got)
	}
	for try := range maxRejoins {
		if got := joins(&msg.JoinRefused{Err: wire.SlotFailed("s")}); got != 1 {
			t.Fatalf("refusal %d: %d joins, want 1", try, got)
		}
	}
	if got := joins(&msg.JoinRefused{Err: wire.SlotFailed("s")}); got != 0 {
		t.Fatalf("%d joins after the last try, want none", got)
	}
}
