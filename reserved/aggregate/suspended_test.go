package aggregate

import (
	"testing"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// restart takes a member's provider away and brings another one, up to its list of
// tools.
func (h *house) restart(slot string, gen uint64) *member {
	h.state.Step(h.now, &msg.SlotObserved{Info: msg.SlotInfo{Name: slot, Expected: true}})
	return h.begin(slot, gen)
}

// Spec 06, discovery cache: a client that walks over the pages does not notice that
// a member is started again with the lists it had; no list is kept twice after it.
func TestPagesOutliveRestart(t *testing.T) {
	h := newHouse(t, Config{})
	for _, slot := range []string{"a", "b", "c"} {
		h.result(h.begin(slot, 1), named("t", 250, 10<<10))
	}
	first, err := h.list("")
	if err != nil {
		t.Fatal(err)
	}
	cursor := string(wire.Member(first, "nextCursor"))
	held, entries := h.state.held, h.state.members["b"].lists[tools].entries
	h.result(h.restart("b", 2), named("t", 250, 10<<10))
	next, err := h.list(cursor)
	if err != nil {
		t.Fatalf("the cursor of before the restart: %v", err)
	}
	if n := len(namesIn(first)) + len(namesIn(next)); n != 750 {
		t.Errorf("%d tools on both pages, want 750", n)
	}
	if b := h.state.members["b"]; b.gen != 2 || !b.joined || &b.lists[tools].entries[0] != &entries[0] || h.state.held != held {
		t.Errorf("provider %d joined=%v, %d bytes held, want %d", b.gen, b.joined, h.state.held, held)
	}
	h.result(h.restart("b", 3), named("u", 1, 1))
	if _, err := h.list(cursor); err == nil {
		t.Error("a cursor outlived other lists")
	}
}

// A list that is about to be replaced takes no room from the one that comes.
func TestRestartAtTheBound(t *testing.T) {
	h := newHouse(t, Config{})
	h.result(h.begin("a", 1), named("t", 10, 1000))
	h.state.held = maxHeld // as others leave it
	m := h.restart("a", 2)
	h.result(m, named("t", 10, 1000))
	if got := m.lists[tools]; got.len() != 10 || got.problem != "" || h.state.held != maxHeld {
		t.Errorf("%d tools, %q, %d bytes held", got.len(), got.problem, h.state.held)
	}
}
