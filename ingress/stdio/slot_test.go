//go:build unix

package stdio

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/registry"
	"mcpbroker/actors/slot"
	"mcpbroker/actors/upstreams"
	"mcpbroker/actors/wire"
)

// street is a house whose children are upstreams of real slots.
type street struct {
	*house
	t        *testing.T
	registry msg.Ref
	set      *upstreams.Set
	sessions atomic.Uint64
}

func newStreet(t *testing.T) *street {
	t.Helper()
	s := &street{house: newHouse(t), t: t}
	var ids atomic.Uint64
	slots := func(string) slot.Config {
		return slot.Config{RequestTimeout: patience, NextID: func() uint64 { return ids.Add(1) }}
	}
	reg := registry.Start(s.sys, registry.Config{}, slots)
	s.registry = reg
	s.set = upstreams.Start(s.sys, reg, `{"name":"broker"}`, func() uint64 { return s.sessions.Add(1) }, slots)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.set.Stop(ctx); err != nil {
			t.Error(err)
		}
		if err := s.sys.StopAndWait(ctx, reg.PID()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// run makes cfg the one upstream, in slot "s".
func (s *street) run(cfg Config) {
	s.t.Helper()
	up := upstreams.Config{Slot: "s", Kind: "stdio", Grace: patience, Start: func(owner msg.Ref, gen uint64) func() {
		return s.Start(cfg, owner, gen)
	}}
	if _, err := s.set.Apply(context.Background(), []upstreams.Config{up}); err != nil {
		s.t.Fatal(err)
	}
}

// client returns the inbox of a session on the slot, and how it calls.
func (s *street) client() (inbox, func(call uint64)) {
	s.t.Helper()
	in, session := make(inbox, room), s.sessions.Add(1)
	s.registry.Send(&msg.JoinSlot{Slot: "s", Session: session, Client: in})
	joined, ok := await(s.t, in, "answer to the join").(*msg.SlotJoined)
	if !ok {
		s.t.Fatal("the session could not join")
	}
	return in, func(call uint64) {
		f, err := wire.Scan(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"m"}`, call))
		if err != nil {
			s.t.Fatal(err)
		}
		joined.Ref.Send(&msg.ClientCall{Session: session, Client: in, Call: call, Frame: f, Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
	}
}

func outcome(t testing.TB, in inbox) string {
	t.Helper()
	for {
		switch m := await(t, in, "outcome of the call").(type) {
		case *msg.CallReply:
			return string(m.Frame)
		case *msg.CallFailed:
			return m.Err.Message
		}
	}
}

// Spec 06: a child that is killed between two calls is followed by another one at
// once; the next call works.
func TestKilledBetweenTwoCalls(t *testing.T) {
	s := newStreet(t)
	s.run(self(t, "echo"))
	in, call := s.client()
	call(1)
	if got := outcome(t, in); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":1,"result":`) {
		t.Fatalf("first call: %s", got)
	}
	before := s.until(func(i msg.Instance) bool { return i.Verdict == msg.Live })
	if err := syscall.Kill(before.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.until(func(i msg.Instance) bool { return i.Restarts == 1 })
	call(2)
	if got := outcome(t, in); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":2,"result":`) {
		t.Errorf("second call: %s", got)
	}
	after := s.until(func(i msg.Instance) bool { return i.Verdict == msg.Live })
	if after.PID == before.PID || after.Attempt != 0 {
		t.Errorf("before: %+v\nafter: %+v", before, after)
	}
}

// until asks for the instance until it is as wanted.
func (s *street) until(wanted func(msg.Instance) bool) msg.Instance {
	s.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		i, err := s.set.Instance(context.Background(), "s")
		switch {
		case err != nil:
			s.t.Fatal(err)
		case wanted(i):
			return i
		case time.Now().After(deadline):
			s.t.Fatalf("the instance stays %+v", i)
		}
	}
}

// Spec 07 row 29: a call on a command that exits at once learns why at once.
func TestCallOnACommandThatExits(t *testing.T) {
	s := newStreet(t)
	s.run(self(t, "exit", "1", "Error: API_KEY is not set"))
	in, call := s.client()
	call(1)
	// whether the call was written before the exit was seen is a matter of luck
	if got := outcome(t, in); !strings.Contains(got, "connected: it exited with code 1; its stderr ends with: Error: API_KEY is not set") {
		t.Errorf("answer: %s", got)
	}
	equal(t, "tail", s.until(func(i msg.Instance) bool { return i.Attempt == 1 }).Tail, []string{"Error: API_KEY is not set"})
}

// The last words of a process are still there once another one runs.
func TestLastWordsOutliveTheProcess(t *testing.T) {
	s := newStreet(t)
	s.run(self(t, "speaker"))
	_, call := s.client()
	call(1)
	before := s.until(func(i msg.Instance) bool { return i.Verdict == msg.Live && len(i.Tail) == 1 })
	if err := syscall.Kill(before.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	after := s.until(func(i msg.Instance) bool { return i.Restarts == 1 && len(i.Tail) == 3 })
	equal(t, "tail", after.Tail, []string{
		"I am here", fmt.Sprintf("--- process %d ended: killed by SIGKILL ---", before.PID),
		"I am here",
	})
}
