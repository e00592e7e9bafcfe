//go:build unix

package stdio

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"mcpbroker/actors/rt"
)

// Spec 06: what is left of a child that has ended its connection by itself is ended in
// order: the end of stdin, and TERM.
func TestRestIsEndedInOrder(t *testing.T) {
	for _, test := range []struct {
		behaviour, err string
		tail           []string
	}{
		{"closes", "it closed its stdout; its stderr ends with: end of stdin | TERM", []string{"end of stdin", "TERM"}},
		{"bequeaths", "it exited with code 3; its stderr ends with: TERM", []string{"TERM"}},
	} {
		t.Run(test.behaviour, func(t *testing.T) {
			h := newHouse(t)
			h.bounds.exit, h.bounds.rest = 10*time.Millisecond, patience
			r := h.start(t, self(t, test.behaviour))
			if test.behaviour == "bequeaths" {
				equal(t, "the child of the child", r.hear(), `{"method":"up"}`)
				r.send("{}")
			}
			end := r.end()
			equal(t, "error", fmt.Sprint(end.Err), test.err)
			equal(t, "tail", end.Tail, test.tail)
		})
	}
}

// KILL follows once the grace is over, or the shorter one that what is left has: callers
// wait for the word of the end.
func TestRestIsKilled(t *testing.T) {
	for name, test := range map[string]struct{ grace, rest time.Duration }{
		"grace":         {100 * time.Millisecond, time.Hour},
		"shorter grace": {time.Hour, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.bounds.rest = test.rest
			w := newWitness(t)
			cfg := self(t, "leaver", w.path)
			cfg.Grace = test.grace
			r := h.start(t, cfg)
			w.alive(1)
			begun := time.Now()
			r.send("{}")
			equal(t, "error", fmt.Sprint(r.end().Err), "it exited with code 3")
			w.dead()
			if took := time.Since(begun); took < 100*time.Millisecond {
				t.Errorf("killed after %s", took)
			}
		})
	}
}

// A grace of 0 is none here, too: there is no TERM.
func TestRestWithoutGrace(t *testing.T) {
	cfg := self(t, "bequeaths")
	cfg.Grace = 0
	r := newHouse(t).start(t, cfg)
	r.hear()
	r.send("{}")
	end := r.end()
	equal(t, "error", fmt.Sprint(end.Err), "it exited with code 3")
	equal(t, "tail", end.Tail, []string(nil))
}

// A Stop without a grace, and a broker in a hurry, wait for no rest.
func TestRestInAHurry(t *testing.T) {
	for name, hurry := range map[string]func(*child){
		"stop":  func(c *child) { c.Stop(0) },
		"hurry": (*child).hurry,
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.bounds.rest = time.Hour
			w := newWitness(t)
			cfg := self(t, "leaver", w.path)
			cfg.Grace = time.Hour
			r := h.start(t, cfg)
			w.alive(1)
			r.send("{}")
			hurry(r.driver.(*child))
			r.end()
			w.dead()
		})
	}
}

// gate is a log that holds up whoever logs the text until it is opened, and nobody else.
type gate struct {
	text          string
	knocked, open chan struct{}
}

func (g *gate) Enabled(context.Context, slog.Level) bool { return true }
func (g *gate) WithAttrs([]slog.Attr) slog.Handler       { return g }
func (g *gate) WithGroup(string) slog.Handler            { return g }

func (g *gate) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, g.text) {
		close(g.knocked)
		<-g.open
	}
	return nil
}

// A process that cannot be ended is left alone; nothing is told of it once Stop has
// returned.
func TestNothingIsToldAfterStop(t *testing.T) {
	h := newHouse(t)
	log := &gate{text: "larger than", knocked: make(chan struct{}), open: make(chan struct{})}
	sys := rt.NewSystem(slog.New(log), nil)
	defer sys.Close()
	h.Children = New(sys)
	h.patient()
	h.bounds.killed = 20 * time.Millisecond
	cfg := self(t, "print", strconv.Quote(strings.Repeat("x", 2000)+"\n"))
	cfg.Limit = 1000
	r := h.start(t, cfg)
	await(t, log.knocked, "line in the log")
	stuck := r.driver.(*child)
	exited := stuck.group.exited
	stuck.group.id = 0 // no signal reaches it
	r.driver.Stop(0)
	stopped := make(chan error, 1)
	go func() { stopped <- h.Stop(context.Background()) }()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !h.hasStuck() {
		<-tick.C
	}
	select {
	case err := <-stopped:
		t.Errorf("Stop returned (%v) in the middle of a line of the log", err)
	case <-time.After(100 * time.Millisecond):
	}
	close(log.open)
	if err := await(t, stopped, "end of Stop"); err == nil || !strings.Contains(err.Error(), "cannot be ended") {
		t.Errorf("Stop: %v", err)
	}
	h.stuck = nil // what newHouse looks at
	<-exited      // with its stdin
	h.unguarded(t)
}

func (h *house) hasStuck() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.stuck) > 0
}
