package aggregate

import (
	"strings"
	"testing"
	"time"

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
	if len(h.state.gone) != 1 || h.state.gone["prompt a-p"] != "a" {
		t.Errorf("remembered: %d names", len(h.state.gone))
	}
}
