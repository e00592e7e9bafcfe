package socket

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// TestCreditsAndClaims drives both framings at random: the credit of every frame
// is given back or passed on exactly once, what is passed on goes to the slot that
// holds it under its present generation, a socket says goodbye or is cut once, and
// every generation it was granted is given up or was taken from it.
func TestCreditsAndClaims(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{Heartbeat: time.Second, Provider: "/provider", Providers: "/providers"}
		w := &watch{credits: map[*credit]int{}, held: map[string]uint64{}}
		var c core
		if w.dedicated = rapid.Bool().Draw(t, "dedicated"); w.dedicated {
			d := newDedicated(cfg, ref{"registry"}, "a")
			c, w.link = d, &d.link
			w.claimed = "a"
		} else {
			x := newMultiplexed(cfg, ref{"registry"}, func(slot string) msg.Conduit { return conduit{slot} })
			c, w.link, w.reader.envelope = x, &x.link, true
		}
		w.link.self = ref{"socket"}
		now := time.Unix(1_000_000, 0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(100 * time.Millisecond)
			w.after(t, c.Step(now, w.draw(t)))
		}
		w.after(t, c.Step(now, released{}))
		for credit, n := range w.credits {
			if n != 1 {
				t.Fatalf("credit %d was given back or passed on %d times", credit.n, n)
			}
		}
		if len(w.held) != 0 {
			t.Fatalf("generations never given up: %v", w.held)
		}
	})
}

// watch is what the socket's peers know of it.
type watch struct {
	link      *link
	reader    Actor
	dedicated bool
	credits   map[*credit]int
	held      map[string]uint64 // slots granted and not given up
	claimed   string            // a slot that owes an answer to a claim
	gen       uint64
	goodbyes  int
}

func (w *watch) draw(t *rapid.T) any {
	slot := "a"
	if !w.dedicated {
		slot = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "slot")
	}
	switch rapid.IntRange(0, 11).Draw(t, "kind") {
	case 0, 1:
		if w.claimed == "" {
			break
		}
		slot, w.claimed = w.claimed, ""
		w.gen++
		w.held[slot] = w.gen
		return &msg.ClaimGranted{Slot: slot, Ref: ref{"slot " + slot}, Gen: w.gen}
	case 2:
		if w.claimed == "" {
			break
		}
		slot, w.claimed = w.claimed, ""
		return &msg.ClaimRefused{Slot: slot, Err: wire.NotConnected(slot), CloseReason: "r", LogLead: "l"}
	case 3:
		return &msg.LivenessAsked{Slot: slot, Gen: w.held[slot]}
	case 4:
		gen := w.held[slot]
		if gen == 0 {
			break
		}
		delete(w.held, slot)
		return &msg.EvictHolder{Slot: slot, Gen: gen, Failed: rapid.Bool().Draw(t, "failed")}
	case 5:
		return &msg.HeartbeatDue{Sweep: w.link.sweep}
	case 6:
		return &msg.Ponged{Sweep: w.link.sweep}
	case 7:
		if rapid.IntRange(0, 9).Draw(t, "stop") == 9 {
			return &msg.CloseSocket{Code: wire.CloseGoingAway, Reason: "stop"}
		}
	}
	return w.frame(t, slot)
}

func (w *watch) frame(t *rapid.T, slot string) *msg.SocketFrame {
	given := &credit{len(w.credits) + 1}
	w.credits[given] = 0
	text := rapid.SampledFrom([]string{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"provider":"` + slot + `","payload":{"jsonrpc":"2.0","method":"x"}}`,
		`{"provider":"` + slot + `","payload":null}`, `{"provider":"` + slot + `"}`, "junk", "\xff", "[1]",
	}).Draw(t, "frame")
	if !w.dedicated && rapid.IntRange(0, 2).Draw(t, "envelope") > 0 {
		text = `{"provider":"` + slot + `","payload":{}}`
	}
	return w.reader.scan([]byte(text), given)
}

func (w *watch) after(t *rapid.T, effects []Effect) {
	t.Helper()
	for i := range effects {
		e := &effects[i]
		switch {
		case e.Credit != nil:
			w.credits[e.Credit.(*credit)]++
		case e.Close || e.Terminate:
			if w.goodbyes++; w.goodbyes > 1 {
				t.Fatal("the socket ends twice")
			}
		case e.Frame != nil && w.link.closing && w.goodbyes > 0:
			t.Fatalf("written after the goodbye: %s", e.Frame)
		case e.To != nil:
			w.told(t, e.To.(ref), e.Message)
		}
	}
}

func (w *watch) told(t *rapid.T, to ref, message any) {
	t.Helper()
	slot := strings.TrimPrefix(to.name, "slot ")
	switch m := message.(type) {
	case *msg.ProviderFrame:
		w.passed(t, slot, m.Gen, m.Credit)
	case *msg.ProviderJunk:
		w.passed(t, slot, m.Gen, m.Credit)
	case *msg.ProviderGone:
		if w.held[slot] != m.Gen {
			t.Fatalf("generation %d of %s is given up, held is %d", m.Gen, slot, w.held[slot])
		}
		delete(w.held, slot)
	case *msg.ClaimSlot:
		if w.held[m.Slot] != 0 {
			t.Fatalf("%s is claimed while it is held", m.Slot)
		}
		w.claimed = m.Slot
	}
}

func (w *watch) passed(t *rapid.T, slot string, gen uint64, given msg.Credit) {
	t.Helper()
	if gen == 0 || w.held[slot] != gen {
		t.Fatalf("a frame for generation %d of %s, held is %d", gen, slot, w.held[slot])
	}
	w.credits[given.(*credit)]++
}

// TestRefusalLog: a slot that is refused on every frame is logged the first time
// and then once in a hundred (F-16), and answered every time.
func TestRefusalLog(t *testing.T) {
	x := newMultiplexed(Config{}, ref{"registry"}, func(slot string) msg.Conduit { return conduit{slot} })
	reader := Actor{envelope: true}
	var logged []string
	written := 0
	for i := range 250 {
		x.Step(time.Time{}, reader.scan([]byte(`{"provider":"a","payload":{}}`), &credit{i}))
		for _, e := range x.Step(time.Time{}, &msg.ClaimRefused{Slot: "a", Err: wire.NotConnected("a"), LogLead: "why"}) {
			if e.Log != "" {
				logged = append(logged, e.Log)
			}
			if e.Frame != nil {
				written++
			}
		}
	}
	if written != 250 || len(logged) != 3 {
		t.Fatalf("%d refusals written, %d logged; want 250, 3", written, len(logged))
	}
	for i, line := range logged {
		want := fmt.Sprintf(`[broker] WARNING: multiplexed WebSocket provider "a" rejected: why (refusal %d on this socket)`, 100*i+1)
		if line != want {
			t.Errorf("log line %d is %q, want %q", i, line, want)
		}
	}
}

// TestCloseReasons: a close reason is at most 123 bytes of valid UTF-8, whatever
// the slot's name (spec 01 2.2, regression 12).
func TestCloseReasons(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDedicated(Config{Provider: "/provider", Providers: "/providers"}, ref{"registry"}, rapid.String().Draw(t, "slot"))
		d.Step(time.Time{}, &msg.ClaimGranted{Slot: d.slot, Ref: ref{"slot"}, Gen: 1})
		effects := d.Step(time.Time{}, (&Actor{}).scan([]byte(`{"provider":"x","payload":{}}`), &credit{}))
		for _, e := range effects {
			if e.Close && (len(e.Reason) > 123 || !utf8.ValidString(e.Reason)) {
				t.Fatalf("reason of %d bytes: %q", len(e.Reason), e.Reason)
			}
		}
		if len(effects) != 4 || !effects[3].Close {
			t.Fatalf("%d effects, the last must close", len(effects))
		}
	})
}
