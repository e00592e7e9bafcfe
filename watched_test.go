package mcpbroker_test

import (
	"fmt"
	"strings"
	"testing"

	"mcpbroker/actors/msg"
	"mcpbroker/brokertest"
)

// Spec 06: a slot with a healthCheck that names no tool has its provider asked for
// tools/list, at the given times.
func TestWatchWithoutTool(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "[slots.s.healthCheck]\nintervalSeconds = 1\ntimeoutSeconds = 7\n")
	h.verdict("s", msg.Away)
	p := h.Dedicated(t, "s")
	greeting := p.Receive()
	if !strings.Contains(greeting, `"method":"initialize"`) {
		t.Fatalf("the provider received %s", greeting)
	}
	brokertest.Respond(p, greeting, brokertest.ServerResult)
	for checks := 0; checks < 2; {
		got := p.Receive()
		switch {
		case strings.Contains(got, `"method":"tools/list"`):
			brokertest.Respond(p, got, `{"tools":[]}`)
			checks++
		case !strings.Contains(got, `"method":"notifications/`):
			t.Fatalf("the provider received %s", got)
		}
	}
	i := h.verdict("s", msg.Live)
	if got, want := fmt.Sprint(i.Kind, " ", i.Check, " ", i.Restarts), "provider tools/list 0"; got != want {
		t.Errorf("the instance is %s, want %s", got, want)
	}
}
