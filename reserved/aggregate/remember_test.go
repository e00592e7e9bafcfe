package aggregate

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mcpbroker/actors/msg"
)

// What is remembered of a member that keeps being lost and joined again is what it
// published, once.
func TestRememberedOnce(t *testing.T) {
	h := newHouse(t, Config{})
	m := h.begin("a", 1)
	h.result(m, named("t", 10, 1))
	for range 5 {
		h.send(m, &msg.SlotLost{})
		h.now = h.now.Add(time.Hour)
		h.state.Step(h.now, &retryDue{gen: h.state.timerGen})
		h.send(m, &msg.SlotJoined{Ref: h.ref("slot a"), Session: m.session})
		h.result(m, `{"capabilities":{"tools":{}}}`)
		h.result(m, named("t", 10, 1))
		if !m.joined {
			t.Fatal("the member did not join again")
		}
	}
	if len(m.names) != 10 || len(h.state.gone) != 10 {
		t.Errorf("%d names of the member, %d of all; want 10", len(m.names), len(h.state.gone))
	}
}

// Names of prompts may have any length; only usual ones are remembered.
func TestRememberedBytes(t *testing.T) {
	h := newHouse(t, Config{})
	m := h.begin("a", 1)
	h.result(m, `{"tools":[]}`)
	p := &collection{}
	for _, name := range []string{"p", strings.Repeat("p", 1<<20)} {
		e, ok := newEntry(prompts, m, []byte(`{"name":"`+name+`"}`))
		if !ok {
			t.Fatal("no entry")
		}
		p.entries = append(p.entries, e)
	}
	m.lists[prompts] = p
	h.state.Step(h.now, &msg.SlotObserved{Info: msg.SlotInfo{Name: "a"}})
	if len(h.state.gone) != 1 || h.state.gone["prompt a-p"] != (claim{"a", "p"}) {
		t.Errorf("remembered: %d names", len(h.state.gone))
	}
}

// spec 03 3.5: whatever comes and goes, in whatever order, a name that was once listed
// means the same item of the same slot for as long as that is remembered, and never
// another one.
func TestNamesAreNotHandedOn(t *testing.T) {
	published := map[string][]string{
		"a": {"b-c", "b-c-2", "c", "b-b-c"}, "a-b": {"c", "c", "c-2", "b-c"}, "a-b-b": {"c"}, "a-b-c": {"2"},
	}
	slots := slices.Sorted(maps.Keys(published))
	rapid.Check(t, func(rt *rapid.T) {
		h := newHouse(t, Config{})
		gen := uint64(0)
		meant, lists := map[string]string{}, map[string]string{}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			slot := rapid.SampledFrom(slots).Draw(rt, "slot")
			switch rapid.IntRange(0, 5).Draw(rt, "what") {
			case 0:
				h.step(&msg.SlotObserved{Info: msg.SlotInfo{Name: slot, Expected: rapid.Bool().Draw(rt, "expected")}})
			case 1: // it is back, and asks later, or never
				gen++
				h.step(&msg.SlotObserved{Info: msg.SlotInfo{Name: slot, Connected: true, Gen: gen}})
			case 2, 3:
				gen++
				order := rapid.Permutation(published[slot]).Draw(rt, "tools")
				if m := h.state.members[slot]; m == nil || !m.stands() {
					lists[slot] = `{"tools":[{"name":"` + strings.Join(order, `"},{"name":"`) + `"}]}`
				} // else it has not left, and names are given in the order of its list
				h.result(h.begin(slot, gen), lists[slot])
			default:
				if _, err := h.list(""); err != nil {
					rt.Fatal(err)
				}
				for name, to := range h.state.catalog(tools).index {
					is := to.slot + " " + string(to.original)
					if was, known := meant[name]; known && was != is {
						rt.Fatalf("%q was %s and is %s", name, was, is)
					}
					meant[name] = is
				}
			}
		}
	})
}

// The names of members that are back make room for those of members that have left.
func TestNamesOfPresentMembersMakeRoom(t *testing.T) {
	h := newHouse(t, Config{})
	leave := func(slot string) { h.step(&msg.SlotObserved{Info: msg.SlotInfo{Name: slot}}) }
	h.result(h.begin("a", 1), named("t", maxGone, 1))
	leave("a")
	h.result(h.begin("b", 1), named("t", 2, 1))
	leave("b")
	if _, known := h.state.gone["tool b-t0"]; known || len(h.state.gone) != maxGone {
		t.Fatalf("%d names are remembered, b-t0 %v; want %d without it", len(h.state.gone), known, maxGone)
	}
	h.result(h.begin("a", 2), named("t", maxGone, 1))
	h.result(h.begin("b", 2), named("t", 2, 1))
	leave("b")
	if got := h.state.gone["tool b-t1"]; len(h.state.gone) != 2 || got != (claim{"b", "t1"}) {
		t.Errorf("%d names are remembered, b-t1 as %v", len(h.state.gone), got)
	}
}
