package mcpbroker_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

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
	through chan error
}

// depart has a child taken away by act, and returns once its slot holds calls back.
func depart(t *testing.T, act func(h *house, entry string) error) *departing {
	t.Helper()
	entry := child("s") + "aggregate = true\n"
	h := newHouse(t, entry)
	h.verdict("s", msg.Live)
	h.Log.Wait(t, `provider "s" joined "_all"`)
	d := &departing{house: h, client: h.client("s"), through: make(chan error, 1)}
	d.pid = h.text(d.client, "pid", "{}")
	d.held = d.client.Start(toolCall("5", "hold", "{}"))
	h.Pending(t, "s", 1)
	go func() { d.through <- act(h, entry) }()
	return d
}

// later makes a call that the process which is there does not get any more.
func (d *departing) later(c *brokertest.Client, tool string) <-chan brokertest.Answer {
	d.t.Helper()
	for late := time.Now().Add(patience); ; {
		answer := c.Start(toolCall("6", tool, "{}"))
		select {
		case a := <-answer:
			if textOf(d.t, a) != d.pid || time.Now().After(late) {
				d.t.Fatalf("a call made meanwhile was answered %s", a.Body)
			}
		case <-time.After(500 * time.Millisecond):
			return answer
		}
	}
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
	if tools := d.allTools(); slices.Contains(tools, "s-pid") {
		t.Errorf("_all lists %q", tools)
	}
}

// A server that hangs is not waited for any longer than 5 s.
func TestCallDoesNotHoldUpRestart(t *testing.T) {
	t.Parallel()
	d := depart(t, func(h *house, _ string) error { return h.RestartUpstream(h.t.Context(), "s") })
	begun := time.Now()
	later := d.later(d.client, "pid")
	if a := d.client.Await(d.held); !strings.Contains(a.Body, `disconnected: it is being restarted by an operator`) {
		t.Errorf("the call in flight: %s", a.Body)
	}
	if got := textOf(t, d.client.Await(later)); got == d.pid {
		t.Error("the process was not restarted")
	}
	if took := time.Since(begun); took < 4*time.Second {
		t.Errorf("the call in flight had %s", took)
	}
}
