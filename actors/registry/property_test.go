package registry

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mcpbroker/actors/msg"
)

// TestEveryReferenceArrives: whatever slots do meanwhile, a join or a claim
// reaches a slot or is refused exactly once; never a slot that has been asked to
// retire and has not spoken; and names that are not in use are bounded.
func TestEveryReferenceArrives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := New(Config{MaxSlots: 3})
		now := time.Unix(1_000_000, 0)
		open := map[*ref]bool{}     // references without an outcome
		asked := map[string]bool{}  // slots that have been asked to retire
		living := map[string]bool{} // slots that were created and have not ended
		settle := func(effects []Effect) {
			for i := range effects {
				watch(t, &effects[i], open, asked, living)
			}
		}
		for n := range rapid.IntRange(1, 80).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "s")) * time.Second)
			name := fmt.Sprintf("s%d", rapid.IntRange(1, 6).Draw(t, "slot"))
			who := &ref{fmt.Sprintf("r%d", n)}
			switch rapid.IntRange(0, 5).Draw(t, "kind") {
			case 0:
				open[who] = true
				settle(s.Step(now, &msg.JoinSlot{Slot: name, Client: who}))
			case 1:
				open[who] = true
				settle(s.Step(now, &msg.ClaimSlot{Slot: name, Claimant: who}))
			case 2:
				if living[name] && !asked[name] {
					settle(s.Step(now, &msg.SlotChanged{Info: msg.SlotInfo{Name: name, SessionCount: rapid.IntRange(0, 1).Draw(t, "sessions")}}))
				}
			case 3:
				if asked[name] {
					gone := rapid.Bool().Draw(t, "gone")
					delete(asked, name)
					if gone {
						delete(living, name)
					}
					settle(s.Step(now, &msg.SlotRetired{Name: name, Gone: gone}))
				}
			case 4:
				if living[name] {
					delete(asked, name)
					delete(living, name)
					settle(s.Step(now, &msg.SlotDied{Name: name}))
				}
			case 5:
				settle(s.Step(now, &msg.WithdrawClaim{Slot: name, Claimant: who}))
			}
		}
		for name := range living {
			if asked[name] {
				delete(asked, name)
				settle(s.Step(now, &msg.SlotRetired{Name: name}))
			}
		}
		if len(open) != 0 {
			t.Fatalf("%d references came to nothing", len(open))
		}
		if got := len(s.Inventory()); got != len(living) {
			t.Fatalf("inventory lists %d slots, %d live", got, len(living))
		}
	})
}

func watch(t *rapid.T, e *Effect, open map[*ref]bool, asked, living map[string]bool) {
	t.Helper()
	if e.Create != nil {
		if living[e.Create.Name] {
			t.Fatalf("slot %q is created twice", e.Create.Name)
		}
		living[e.Create.Name] = true
		return
	}
	if e.To != nil && (!living[e.To.Name] || asked[e.To.Name]) {
		t.Fatalf("a %T is sent to slot %q, living %v, retiring %v", e.Message, e.To.Name, living[e.To.Name], asked[e.To.Name])
	}
	var who msg.Ref
	switch m := e.Message.(type) {
	case *msg.RetireSlot:
		asked[e.To.Name] = true
		return
	case *msg.JoinSlot:
		who = m.Client
	case *msg.ClaimSlot:
		who = m.Claimant
	case *msg.JoinRefused, *msg.ClaimRefused:
		who = e.Direct
	default:
		return
	}
	if !open[who.(*ref)] {
		t.Fatalf("a second outcome for %s: %T", who.(*ref).name, e.Message)
	}
	delete(open, who.(*ref))
}
