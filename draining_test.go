package mcpbroker_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpbroker"
	"mcpbroker/actors/msg"
	"mcpbroker/brokertest"
)

const release = `{"jsonrpc":"2.0","method":"notifications/release"}`

// departing is a broker whose upstream s is being taken away while a call is in flight.
type departing struct {
	*house
	pid     string
	client  *brokertest.Client
	held    <-chan brokertest.Answer
	begun   time.Time // before its slot began to hold calls back
	through chan error
}

// depart has a child taken away by act, and returns once its slot holds calls back.
func depart(t *testing.T, act func(h *house, entry string) error) *departing {
	t.Helper()
	entry := child("s") + "aggregate = true\n"
	draining := make(chan struct{}, 1)
	h := newHouse(t, entry, mcpbroker.WithTap(func(_ string, message any) {
		if _, ok := message.(*msg.DrainProvider); ok {
			select {
			case draining <- struct{}{}:
			default:
			}
		}
	}))
	h.verdict("s", msg.Live)
	h.Log.Wait(t, `provider "s" joined "_all"`)
	d := &departing{house: h, client: h.client("s"), through: make(chan error, 1)}
	d.pid = h.text(d.client, "pid", "{}")
	d.held = d.client.Start(toolCall("5", "hold", "{}"))
	h.Pending(t, "s", 1)
	d.begun = time.Now()
	go func() { d.through <- act(h, entry) }()
	select {
	case <-draining:
	case <-time.After(patience):
		t.Fatal("the slot does not hold calls back")
	}
	return d
}

// later makes a call that the process which is there does not get any more.
func (d *departing) later(c *brokertest.Client, tool string) <-chan brokertest.Answer {
	d.t.Helper()
	answer := c.Start(toolCall("6", tool, "{}"))
	d.Pending(d.t, "s", 2)
	return answer
}

// settle lets the call in flight finish.
func (d *departing) settle() {
	d.t.Helper()
	if a := d.client.Post(release); a.Status != http.StatusAccepted {
		d.t.Errorf("a notification meanwhile: %d %s", a.Status, a.Body)
	}
	if got := textOf(d.t, d.client.Await(d.held)); got != "released" {
		d.t.Errorf("the call in flight got %q", got)
	}
	if err := <-d.through; err != nil {
		d.t.Error(err)
	}
}

// Spec 06: a call in flight survives the change of its entry, and a restart. What is
// called meanwhile, directly or through _all, is answered by the next process; list and
// call agree all the time.
func TestCallSurvivesChange(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(h *house, entry string) error{
		"change": func(h *house, entry string) error {
			_, err := h.reload(entry + "env.NEW = \"1\"\n")
			return err
		},
		"restart": func(h *house, _ string) error { return h.RestartUpstream(h.t.Context(), "s") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := depart(t, act)
			later := d.later(d.client, "pid")
			if !slices.Contains(d.allTools(), "s-pid") {
				t.Error("_all does not list its tools meanwhile")
			}
			all := d.house.client("_all").Start(toolCall("7", "s-pid", "{}"))
			d.settle()
			next := textOf(t, d.client.Await(later))
			if got := textOf(t, d.client.Await(all)); next == d.pid || got != next {
				t.Errorf("process %s was followed by %s, and by %s in _all", d.pid, next, got)
			}
		})
	}
}

// One that is removed finishes its call as well; what comes meanwhile fails with it, and
// is not listed from then on.
func TestCallSurvivesRemoval(t *testing.T) {
	t.Parallel()
	d := depart(t, func(h *house, _ string) error {
		_, err := h.reload("")
		return err
	})
	later := d.later(d.client, "pid")
	d.settle()
	const want = `{"jsonrpc":"2.0","id":6,"error":{"code":-32000,"message":"Provider \"s\" disconnected"}}`
	brokertest.Is(t, "a call made meanwhile", d.client.Await(later), http.StatusOK, want)
	if !eventually(func() bool { return !slices.Contains(d.allTools(), "s-pid") }) {
		t.Error("_all lists its tools for ever")
	}
}

// A server that hangs is not waited for any longer than 5 s.
func TestCallDoesNotHoldUpRestart(t *testing.T) {
	t.Parallel()
	d := depart(t, func(h *house, _ string) error { return h.RestartUpstream(h.t.Context(), "s") })
	later := d.later(d.client, "pid")
	if a := d.client.Await(d.held); !strings.Contains(a.Body, `disconnected: it is being restarted by an operator`) {
		t.Errorf("the call in flight: %s", a.Body)
	}
	if got := textOf(t, d.client.Await(later)); got == d.pid {
		t.Error("the process was not restarted")
	}
	if took := time.Since(d.begun); took < 5*time.Second {
		t.Errorf("the call in flight had %s", took)
	}
}
