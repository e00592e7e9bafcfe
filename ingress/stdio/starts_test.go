//go:build unix

package stdio

import (
	"context"
	"fmt"
	"testing"

	"mcpbroker/actors/msg"
)

// occupy takes n of the turns to start a process.
func (h *house) occupy(n int) {
	for range n {
		h.starts <- struct{}{}
	}
}

// vacate gives n of them back.
func (h *house) vacate(n int) {
	for range n {
		<-h.starts
	}
}

// Eight processes are being started at once; the ninth waits for its turn.
func TestStartsWaitTheirTurn(t *testing.T) {
	h := newHouse(t)
	equal(t, "turns", cap(h.starts), 8)
	h.occupy(8)
	waiting, canceled := make(inbox, room), make(inbox, room)
	cancel := h.Start(self(t, "echo"), waiting, 3)
	h.Start(self(t, "echo"), canceled, 4)()
	// The end of the one says that the other, started before, had its chance too.
	end, ok := await(t, canceled, "end").(*msg.UpstreamEnded)
	if !ok || end.Gen != 4 || end.Err != nil {
		t.Errorf("canceled while it waited: %+v", end)
	}
	if len(waiting) > 0 {
		t.Errorf("started out of turn: %+v", <-waiting)
	}
	h.vacate(1)
	if _, ok := await(t, waiting, "start").(*msg.UpstreamOpened); !ok {
		t.Error("not started in its turn")
	}
	h.vacate(7)
	cancel()
	await(t, waiting, "end")
}

// A process counts while it is being started, not while it runs, and one that
// cannot be started does not count for ever.
func TestTurnEndsWithTheStart(t *testing.T) {
	h := newHouse(t)
	h.occupy(7)
	for range 3 {
		owner := make(inbox, room)
		h.Start(Config{Name: "s", Command: "/does/not/exist"}, owner, 3)
		end, ok := await(t, owner, "end").(*msg.UpstreamEnded)
		if !ok {
			t.Fatal("opened")
		}
		equal(t, "error", fmt.Sprint(end.Err), `command "/does/not/exist" does not exist`)
	}
	var all []*running
	for range 3 {
		all = append(all, h.start(t, self(t, "echo")))
	}
	for _, r := range all {
		r.send(`{"id":1}`)
		equal(t, "answer", r.hear(), `{"jsonrpc":"2.0","id":1,"result":{"id":1}}`)
	}
	equal(t, "turns taken", len(h.starts), 7)
	h.vacate(7)
}

// A broker that stops does not wait for the turn of those that have not started.
func TestStopWhileWaiting(t *testing.T) {
	h := newHouse(t)
	h.occupy(8)
	owner := make(inbox, room)
	h.Start(self(t, "echo"), owner, 3)
	if err := h.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	end, ok := await(t, owner, "end").(*msg.UpstreamEnded)
	if !ok || end.Err != nil {
		t.Errorf("ended with %+v", end)
	}
	h.vacate(8)
}
