//go:build unix

package stdio

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/wire"
)

// Spec 06: a message of which the pipe has taken one byte may have been written, and
// those behind it have not been. What the pipe has taken is read out of it.
func TestUnsentBytes(t *testing.T) {
	text := func(size int) string { return strings.Repeat("x", size) }
	for _, test := range []struct {
		name   string
		frames []string
		gone   bool // nobody holds the other end
	}{
		{"nothing, nobody reads", []string{"a", "b"}, true},
		{"a part of the first", []string{text(1 << 20), "b", "c"}, false},
		{"a part of the second", []string{"a\n", text(batchBytes - 10), text(batchBytes - 10), "d"}, false},
		{"a part of one in the middle of a batch", []string{"a", text(batchBytes - 100), text(90), text(1 << 20), "e"}, false},
		{"all but the last byte of a large one", []string{text(batchBytes - 1), text(batchBytes), "c"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			h.bounds.stalled = 200 * time.Millisecond
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if test.gone {
				equal(t, "close", r.Close(), nil)
			}
			c := newChild(h.Children, Config{}, make(inbox, room), 3)
			c.in = w
			var batch []rt.Item
			for _, frame := range test.frames {
				batch = append(batch, rt.Item{Frame: []byte(frame)})
			}
			err = c.write(batch)
			equal(t, "close", w.Close(), nil)
			taken := ""
			if !test.gone {
				all, err := io.ReadAll(r)
				if err != nil {
					t.Fatal(err)
				}
				taken = string(all)
			}
			want := 0 // the lines that begin in what was taken
			for at := 0; want < len(batch) && at < len(taken); want++ {
				at += len(batch[want].Frame) + 1
			}
			var partial *rt.WriteError
			if !errors.As(err, &partial) {
				t.Fatalf("the write came to %v", err)
			}
			equal(t, "begun", partial.Begun, want)
			if want == len(batch) {
				t.Errorf("%d of %d begun with %d bytes: the test is none", want, len(batch), len(taken))
			}
			if stalled := errors.Is(err, os.ErrDeadlineExceeded); stalled == test.gone {
				t.Errorf("the write came to %v", err)
			}
		})
	}
}

// What waited for a child that does not read goes with its end, once, and in order.
func TestUnsentOfADeafChild(t *testing.T) {
	h := newHouse(t)
	h.bounds = bounds{outbox: 4 << 20, stalled: time.Hour, drain: patience, killed: patience}
	r := h.start(t, self(t, "deaf"))
	r.hear()
	r.send(`"` + strings.Repeat("x", 1<<20) + `"`)
	var want []string
	for n := range 100 {
		want = append(want, fmt.Sprintf(`{"id":%d}`, n))
		r.send(want[n])
	}
	if err := syscall.Kill(r.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	end := r.end()
	var got []string
	for _, frame := range end.Unsent {
		got = append(got, string(frame))
	}
	if len(got) == len(want)+1 {
		got = got[1:] // killed before the writer had come to the first one
	}
	equal(t, "unsent", got, want)
	if r.driver.Send([]byte("{}"), mcp.Required) {
		t.Error("a dead child took a frame")
	}
}

// say sends a request with an id and a name of its own.
func (s *street) say(slot msg.Ref, in inbox, session, call uint64, id, params string) {
	s.t.Helper()
	f, err := wire.Scan(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":"m","params":%s}`, id, params))
	if err != nil {
		s.t.Fatal(err)
	}
	slot.Send(&msg.ClientCall{Session: session, Client: in, Call: call, Frame: f, Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
}

// member joins the slot, or asks for a sign that it has handled all that was sent to it.
func (s *street) member(to msg.Ref, in inbox, session uint64) msg.Ref {
	s.t.Helper()
	to.Send(&msg.JoinSlot{Slot: "s", Session: session, Client: in})
	for {
		if joined, ok := await(s.t, in, "answer to the join").(*msg.SlotJoined); ok {
			return joined.Ref
		}
	}
}

// Spec 06, "Starting, failing, retrying": of the calls a child has not answered when it
// is killed, those it was never written are answered by the next child, with their
// callers' own ids. What it has been written, and what was being written, fails. No
// child gets anything a second time.
func TestUnwrittenCallsGoToTheNextChild(t *testing.T) {
	s := newStreet(t)
	dir := t.TempDir()
	s.run(self(t, "sulks", dir))
	before := s.until(func(i msg.Instance) bool { return i.Verdict == msg.Live })
	in, session := make(inbox, room), s.sessions.Add(1)
	slot := s.member(s.registry, in, session)

	s.say(slot, in, session, 1, `"sulk"`, `{"name":"one"}`)
	equal(t, "the first answer", strings.Contains(outcome(t, in), `"id":"sulk"`), true)
	s.say(slot, in, session, 2, `2`, `{"name":"two"}`)
	s.say(slot, in, session, 3, `3`, `{"name":"three","x":"`+strings.Repeat("x", 1<<20)+`"}`)
	s.say(slot, in, session, 4, `"four"`, `{"name":"four"}`)
	s.say(slot, in, session, 5, `5.0`, `{"name":"five","_meta":{"progressToken":"five"}}`)
	if note, ok := await(t, in, "sign of the child").(*msg.Notify); !ok || !strings.Contains(string(note.Frame), "begun") {
		t.Fatalf("the child said %+v", note)
	}
	s.member(slot, in, session)
	if err := syscall.Kill(before.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	const dead = `Provider "s" disconnected: it was killed by SIGKILL`
	equal(t, "the call that was written", outcome(t, in), dead)
	equal(t, "the call that was being written", outcome(t, in), dead)
	four, five := outcome(t, in), outcome(t, in)
	if !strings.HasPrefix(four, `{"jsonrpc":"2.0","id":"four","result":`) || !strings.Contains(four, `"name":"four"`) {
		t.Errorf("the fourth call came to %.300s", four)
	}
	if !strings.HasPrefix(five, `{"jsonrpc":"2.0","id":5.0,"result":`) || !strings.Contains(five, `"name":"five"`) {
		t.Errorf("the fifth call came to %.300s", five)
	}
	heard, err := os.ReadFile(dir + "/heard")
	if err != nil {
		t.Fatal(err)
	}
	for name, times := range map[string]int{"one": 1, "two": 1, "three": 0, "four": 1, "five": 1} {
		equal(t, name+" was heard", strings.Count(string(heard), `"name":"`+name+`"`), times)
	}
	after := s.until(func(i msg.Instance) bool { return i.Verdict == msg.Live })
	if after.PID == before.PID || after.Restarts != 1 {
		t.Errorf("before: %+v\nafter: %+v", before, after)
	}
}

// Spec 06: a call made when the child is dead, and the broker may not know it yet, is
// answered by the next one.
func TestCallOnADeadChild(t *testing.T) {
	if !procfs(t) {
		t.Skip("needs /proc to see the child dead")
	}
	s := newStreet(t)
	s.run(self(t, "echo"))
	in, call := s.client()
	before := s.until(func(i msg.Instance) bool { return i.Verdict == msg.Live })
	if err := syscall.Kill(before.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	untilDead(t, before.PID)
	for n := range uint64(20) {
		call(n + 1)
	}
	for n := range 20 {
		if got, want := outcome(t, in), fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":`, n+1); !strings.HasPrefix(got, want) {
			t.Errorf("call %d: %s", n+1, got)
		}
	}
}

// untilDead waits until a process is gone. A zombie is not dead enough: a thread of it
// may still have its stdin open.
func untilDead(t *testing.T, pid int) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %d lives on: %s", pid, stat)
		}
	}
}
