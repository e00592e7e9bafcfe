package aggregate

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/wire"
)

// inbox is a peer of the actor under test.
type inbox chan any

func (i inbox) Send(message any) { i <- message }

// shell is a running server with a registry, one slot and one client around it.
type shell struct {
	t        *testing.T
	sys      *rt.System
	ref      *rt.Ref
	registry inbox
	slot     inbox
	client   inbox

	mu    sync.Mutex
	fails func(message any) int // how many times it fails at this message
	count map[string]int
}

func newShell(t *testing.T) *shell {
	s := &shell{t: t, registry: make(inbox, 100), slot: make(inbox, 100), client: make(inbox, 100), count: map[string]int{}}
	s.sys = rt.NewSystem(nil, s.tap)
	session := uint64(100)
	s.ref = Start(s.sys, s.registry, Config{NextSession: func() uint64 { session++; return session }})
	t.Cleanup(func() {
		if err := s.sys.StopAndWait(t.Context(), s.ref.PID()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
		s.sys.Close()
	})
	next[*msg.WatchSlots](s, s.registry)
	s.ref.Send(&msg.JoinSlot{Session: 1, Client: s.client})
	next[*msg.SlotJoined](s, s.client)
	next[*msg.SlotChanged](s, s.registry)
	return s
}

// tap makes the actor fail where the test says so.
func (s *shell) tap(_ *rt.PID, message any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if again, ok := message.(*again); ok {
		message = again.message
	}
	if s.fails == nil {
		return
	}
	name := fmt.Sprintf("%T", message)
	if n := s.fails(message); s.count[name] < n {
		s.count[name]++
		panic("injected")
	}
}

func (s *shell) failAt(fails func(message any) int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = fails
}

// next receives the next message of one peer, which must be a T.
func next[T any](s *shell, from inbox) T {
	s.t.Helper()
	select {
	case message := <-from:
		if m, ok := message.(T); ok {
			return m
		}
		s.t.Fatalf("got %T, want %T", message, *new(T))
	case <-time.After(30 * time.Second):
		s.t.Fatalf("no %T within 30 s", *new(T))
	}
	panic("unreachable")
}

// publish makes a member of slot s with one tool, and returns its address for us.
func (s *shell) publish() msg.Ref {
	s.t.Helper()
	s.ref.Send(&msg.SlotObserved{Info: msg.SlotInfo{Name: "s", Connected: true, Aggregate: true, Gen: 1}})
	join := next[*msg.JoinSlot](s, s.registry)
	join.Client.Send(&msg.SlotJoined{Ref: s.slot, Session: join.Session})
	s.answer(join.Client, `{"capabilities":{"tools":{}}}`)
	next[*msg.ClientNote](s, s.slot)
	s.answer(join.Client, `{"tools":[{"name":"run"}]}`)
	next[*msg.Notify](s, s.client)
	next[*msg.Notify](s, s.client)
	if call := s.answer(join.Client, `{"prompts":[]}`); string(call.Frame.Method) != "prompts/list" {
		s.t.Errorf("it was asked for %s", call.Frame.Method)
	}
	return join.Client
}

func (s *shell) answer(to msg.Ref, result string) *msg.ClientCall {
	s.t.Helper()
	call := next[*msg.ClientCall](s, s.slot)
	if call.Frame.NeedsTrace() && !wire.ValidTraceparent([]byte(call.Trace)) {
		s.t.Errorf("call %s has the trace context %q", call.Frame.Bytes, call.Trace)
	}
	to.Send(&msg.CallReply{Call: call.Call, Frame: []byte(`{"id":1,"result":` + result + `}`)})
	return call
}

func (s *shell) call(n uint64) {
	frame := mustScan(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"s-run"}}`, n))
	s.ref.Send(&msg.ClientCall{Session: 1, Client: s.client, Call: n, Frame: frame, Trace: trace})
}

// A call in flight outlives any failure of the actor, and the caller of the
// message that failed is told.
func TestCrashes(t *testing.T) {
	s := newShell(t)
	member := s.publish()
	s.call(1)
	first := next[*msg.ClientCall](s, s.slot)

	s.failAt(func(message any) int {
		switch m := message.(type) {
		case *msg.ClientCall:
			return 1
		case *fromMember:
			if _, ok := m.message.(*msg.CallReply); ok {
				return 1
			}
		case *msg.SlotObserved, *msg.LeaveSlot:
			return 2
		case *listChanged:
			return 100
		}
		return 0
	})
	s.call(2)
	crashed := `Slot "_all" failed while handling this request; the request was not completed and may be sent again`
	if m := next[*msg.CallFailed](s, s.client); m.Call != 2 || m.Err.Message != crashed {
		t.Errorf("call 2: %+v, %v", m, m.Err)
	}
	s.call(3)
	second := next[*msg.ClientCall](s, s.slot)
	member.Send(&msg.CallReply{Call: second.Call, Frame: []byte(`{}`)})
	if m := next[*msg.CallFailed](s, s.client); m.Call != 3 || m.Err.Message != crashed {
		t.Errorf("call 3: %+v, %v", m, m.Err)
	}
	member.Send(&msg.Notify{Key: "notifications/tools/list_changed"}) // given up after some tries
	s.ref.Send(&msg.SlotObserved{Info: msg.SlotInfo{Name: "t", Connected: true, Aggregate: true}})
	if m := next[*msg.JoinSlot](s, s.registry); m.Slot != "t" {
		t.Errorf("joined %q", m.Slot)
	}
	member.Send(&msg.CallReply{Call: first.Call, Frame: []byte(`{"id":1,"result":{}}`)})
	if m := next[*msg.CallReply](s, s.client); m.Call != 1 || string(m.Frame) != `{"id":1,"result":{}}` {
		t.Errorf("call 1: %d %s", m.Call, m.Frame)
	}
	s.ref.Send(&msg.LeaveSlot{Session: 1})
	next[*msg.SlotChanged](s, s.registry)
}

// A member that floods costs one message at a time, and its other notifications
// none.
func TestMemberRefFlood(t *testing.T) {
	posted := make(inbox, 100)
	r := &memberRef{self: posted, session: 7}
	for range 1000 {
		r.Send(&msg.Notify{Class: mcp.Coalesced, Key: "notifications/tools/list_changed"})
		r.Send(&msg.Notify{Class: mcp.Droppable})
		r.Send(&msg.Notify{Class: mcp.Coalesced, Key: "notifications/resources/updated\"u\""})
	}
	r.Send(&msg.Notify{Class: mcp.Coalesced, Key: "notifications/prompts/list_changed"})
	if n := len(posted); n != 2 {
		t.Fatalf("%d messages were posted, want 2", n)
	}
	for _, want := range []list{tools, prompts} {
		m := (<-posted).(*listChanged)
		if m.kind != want || m.session != 7 {
			t.Errorf("%+v, want kind %d of session 7", m, want)
		}
		m.taken()
	}
	r.Send(&msg.Notify{Class: mcp.Coalesced, Key: "notifications/tools/list_changed"})
	if len(posted) != 1 {
		t.Error("a notification after the last was taken was not posted")
	}
	r.Send(&msg.CallProgress{Call: 1})
	<-posted
	if _, control := (<-posted).(rt.Control); control {
		t.Error("progress may use the headroom that is there for answers")
	}
}

func TestDescribe(t *testing.T) {
	s := newShell(t)
	s.publish()
	s.call(1)
	next[*msg.ClientCall](s, s.slot)
	info := make(chan msg.SlotInfo, 1)
	s.ref.Send(&msg.DescribeSlot{Slot: "_all", Reply: info})
	got := <-info
	if got.ConnectedSince.IsZero() || got.OldestPending.Before(got.ConnectedSince) {
		t.Errorf("since %v, oldest call %v", got.ConnectedSince, got.OldestPending)
	}
	got.ConnectedSince, got.OldestPending = time.Time{}, time.Time{}
	want := msg.SlotInfo{Name: "_all", Transport: msg.Loopback, Connected: true, SessionCount: 1, PendingCount: 1, MaxPending: 16384, Answered: true}
	if got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	members := make(chan []MemberStatus, 1)
	s.ref.Send(&DescribeMembers{Reply: members})
	if m := <-members; len(m) != 1 || m[0].Slot != "s" || !m[0].Joined || m[0].Tools != 1 || m[0].Since.IsZero() {
		t.Errorf("members are %+v", m)
	}
}

// Whoever waits when the server stops is told, and so is who comes after.
func TestStop(t *testing.T) {
	s := newShell(t)
	member := s.publish()
	s.call(1)
	next[*msg.ClientCall](s, s.slot)
	if err := s.sys.StopAndWait(t.Context(), s.ref.PID()); err != nil {
		t.Fatal(err)
	}
	if m := next[*msg.CallFailed](s, s.client); m.Call != 1 || m.Err.Message != "Session closed" {
		t.Errorf("%+v, %v", m, m.Err)
	}
	if m := next[*msg.LeaveSlot](s, s.slot); m.Session != 101 {
		t.Errorf("session %d left", m.Session)
	}
	s.call(2)
	if m := next[*msg.CallFailed](s, s.client); m.Call != 2 {
		t.Errorf("%+v", m)
	}
	member.Send(&msg.SlotJoined{Ref: s.slot, Session: 102})
	next[*msg.LeaveSlot](s, s.slot)
	members := make(chan []MemberStatus, 1)
	s.ref.Send(&DescribeMembers{Reply: members})
	if _, ok := <-members; ok {
		t.Error("a stopped server described its members")
	}
}
