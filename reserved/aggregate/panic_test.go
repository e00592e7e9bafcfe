package aggregate

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// TestPanicLeavesNoTrace: a message whose handling fails, wherever that is,
// changes nothing and sends nothing; the steps after it are those of a twin that
// never failed.
func TestPanicLeavesNoTrace(t *testing.T) {
	panics := 0
	rapid.Check(t, func(t *rapid.T) {
		hit, twin := newVictim(), newVictim()
		for range rapid.IntRange(20, 120).Draw(t, "steps") {
			message := hit.next(t)
			hit.undone(t, message)
			hit.fuse = rapid.IntRange(0, 3).Draw(t, "fuse")
			effects, panicked := hit.try(t, message)
			if panicked {
				panics++
				effects, _ = hit.try(t, message)
			}
			twin.now = hit.now
			want, _ := twin.try(t, message)
			if diff := cmp.Diff(want, effects); diff != "" {
				t.Fatalf("effects differ from the twin's (-twin +hit):\n%s", diff)
			}
			if diff := cmp.Diff(snapshot(twin.state), snapshot(hit.state)); diff != "" {
				t.Fatalf("the state differs from the twin's (-twin +hit):\n%s", diff)
			}
			hit.check(t)
		}
	})
	if panics == 0 && !t.Failed() {
		t.Error("nothing panicked")
	}
}

// victim fails where it asks for its n-th session number or trace context.
type victim struct {
	machine
	fuse int
}

func newVictim() *victim {
	v := &victim{}
	v.configure(Config{Resources: true, MaxPending: 4, MaxSessions: 10, RequestTimeout: 9 * time.Second})
	session, context := v.state.cfg.NextSession, v.state.cfg.Trace
	v.state.cfg.NextSession = func() uint64 { v.burn(); return session() }
	v.state.cfg.Trace = func() string { v.burn(); return context() }
	v.step(started{})
	for n := range uint64(2) {
		v.step(&msg.JoinSlot{Session: n + 1, Client: v.ref(fmt.Sprint("c", n+1))})
	}
	v.step(&msg.SlotObserved{Info: msg.SlotInfo{Name: "a", Gen: 1, Connected: true, Aggregate: true, ConnectedSince: epoch}})
	m := v.state.members["a"]
	v.step(&fromMember{session: m.session, message: &msg.SlotJoined{Ref: v.ref("slot a"), Session: m.session}})
	for _, result := range []string{
		`{"capabilities":{"tools":{},"resources":{}}}`, `{"tools":[{"name":"x"}]}`, `{"resources":[]}`, `{"resourceTemplates":[]}`,
	} {
		v.step(&fromMember{session: m.session, message: &msg.CallReply{Call: m.request, Frame: []byte(`{"result":` + result + `}`)}})
	}
	return v
}

func (v *victim) burn() {
	if v.fuse--; v.fuse == 0 {
		panic("burnt")
	}
}

func (v *victim) try(t *rapid.T, message any) (effects []string, panicked bool) {
	before, sessions := snapshot(v.state), v.sessions
	defer func() {
		v.fuse = 0
		if recover() == nil {
			return
		}
		panicked, v.sessions = true, sessions
		if len(v.state.effects) != 0 {
			t.Fatalf("%d effects escaped from %T", len(v.state.effects), message)
		}
		if diff := cmp.Diff(before, snapshot(v.state)); diff != "" {
			t.Fatalf("the state remembers the %T that failed (-before +after):\n%s", message, diff)
		}
	}()
	return v.step(message), false
}

// undone handles a message to the end and takes it back. What the roster keeps is
// exempt: it changes last, behind all that may fail.
func (v *victim) undone(t *rapid.T, message any) {
	switch message.(type) {
	case *msg.JoinSlot, *msg.LeaveSlot:
		return
	}
	before, sessions := snapshot(v.state), v.sessions
	v.state.begin()
	v.state.now = v.now
	v.state.handle(message)
	v.state.wake()
	v.state.rollback()
	v.sessions = sessions
	if diff := cmp.Diff(before, snapshot(v.state)); diff != "" {
		t.Fatalf("the %T taken back left a trace (-before +after):\n%s", message, diff)
	}
}

// check holds the tables against each other.
func (v *victim) check(t *rapid.T) {
	s := v.state
	held := 0
	for _, m := range s.members {
		held += v.checkMember(t, m)
		if m.before != nil {
			held += v.checkMember(t, m.before)
		}
		if slices.Contains(s.joined, m) != m.joined || m.before != nil && !slices.Contains(s.joined, m.before) {
			t.Fatalf("member %s is not where it belongs: %s", m.slot, memberText(s, m))
		}
	}
	for _, m := range s.joined {
		if s.serving(m.slot) != m {
			t.Fatalf("member %s serves nobody: %s", m.slot, memberText(s, m))
		}
	}
	for session, m := range s.joining {
		if m.session != session || s.members[m.slot] != m && len(m.calls) == 0 {
			t.Fatalf("session %d is of nobody: %s", session, memberText(s, m))
		}
	}
	if held != s.held || len(s.calls) > s.cfg.MaxPending {
		t.Fatalf("%d bytes held, counted %d; %d calls", held, s.held, len(s.calls))
	}
	for _, c := range s.calls {
		at := c.member.calls
		if c.wait != nil {
			at = c.member.waits
		}
		if at[c.number] != c || c.client.Data.calls[c.theirs] != c || s.clients.Get(c.client.Session) != c.client {
			t.Fatalf("call %d is not with its member and its client", c.number)
		}
		if c.wait != nil && (s.serving(c.member.slot) != c.member || c.due.IsZero()) {
			t.Fatalf("call %d waits in vain or for ever: due %v", c.number, c.due)
		}
		if due := c.since.Add(s.cfg.RequestTimeout); !c.due.IsZero() && (c.due != due || s.expiry.IsZero() || s.expiry.After(due) || s.armed.After(due)) {
			t.Fatalf("call %d goes on for ever: due %v, looked after at %v, timer at %v", c.number, c.due, s.expiry, s.armed)
		}
	}
	for id, c := range s.asks {
		if s.calls[c.number] != c || !slices.Contains(c.asks, id) {
			t.Fatalf("ask %d belongs to no call", id)
		}
	}
	for key, c := range s.gone {
		if m := s.members[c.slot]; m == nil || !slices.Contains(m.names, key) && (m.before == nil || !slices.Contains(m.before.names, key)) {
			t.Fatalf("%q of %s is remembered for nobody", key, c.slot)
		}
		for k, made := range s.catalogs[:resources] {
			if made == nil {
				continue
			}
			for name, to := range made.index {
				if goneKey(list(k), name) == key && to.slot != c.slot {
					t.Fatalf("%q of %s leads to %s", key, c.slot, to.slot)
				}
			}
		}
	}
}

// checkMember holds a member against itself and counts the bytes it holds.
func (v *victim) checkMember(t *rapid.T, m *member) (held int) {
	for _, c := range m.lists {
		if c != nil {
			held += c.bytes
		}
	}
	switch {
	case (m.session != 0) != (v.state.joining[m.session] == m),
		m.joined && !m.suspended && m.to == nil,
		m.session == 0 && len(m.calls)+int(m.request) != 0,
		m.suspended && m.session != 0 && len(m.calls) == 0,
		!(m.suspended && m.joined) && len(m.waits) != 0,
		m.before != nil && (m.joined || !m.before.suspended || !m.before.joined || m.before.before != nil):
		t.Fatalf("member %s: %s", m.slot, memberText(v.state, m))
	}
	return held
}

// next draws a message that fits the state, most of the time.
func (v *victim) next(t *rapid.T) any {
	v.now = v.now.Add(time.Duration(rapid.IntRange(0, 4).Draw(t, "seconds")) * time.Second)
	if !v.timerAt.IsZero() && !v.timerAt.After(v.now) {
		v.timerAt = time.Time{}
		return &retryDue{gen: v.timerGen}
	}
	slot := rapid.SampledFrom([]string{"a", "a", "a", "a", "b", wire.SlotBroker}).Draw(t, "slot")
	if m := v.state.members[slot]; m != nil && m.before != nil && rapid.IntRange(0, 2).Draw(t, "elsewhere") > 0 {
		return v.ofSlot(t, slot) // or few restarts come to their end
	}
	switch rapid.IntRange(0, 19).Draw(t, "side") {
	case 0:
		return v.ofRegistry(t, slot)
	case 1, 2, 3, 4, 5, 6:
		return v.ofClient(t, slot)
	case 7, 8, 9, 10, 11:
		return v.aboutCall(t)
	}
	return v.ofSlot(t, slot)
}

func (v *victim) ofRegistry(t *rapid.T, slot string) any {
	if rapid.IntRange(0, 5).Draw(t, "forget") == 0 {
		return &msg.SlotForgotten{Name: slot}
	}
	info := msg.SlotInfo{Name: slot, Gen: uint64(rapid.IntRange(1, 3).Draw(t, "gen")), ConnectedSince: epoch}
	info.Connected = rapid.Bool().Draw(t, "connected")
	info.Aggregate = info.Connected && rapid.IntRange(0, 7).Draw(t, "aggregate") > 0
	info.Expected = !info.Connected && rapid.IntRange(0, 3).Draw(t, "expected") > 0
	info.MaxPending = 3
	return &msg.SlotObserved{Info: info}
}

func (v *victim) ofClient(t *rapid.T, slot string) any {
	session := uint64(rapid.IntRange(1, 3).Draw(t, "session"))
	client := v.ref(fmt.Sprint("c", session))
	switch rapid.IntRange(0, 6).Draw(t, "client") {
	case 0:
		return &msg.JoinSlot{Session: session, Client: client}
	case 1:
		if rapid.Bool().Draw(t, "leave") {
			return &msg.LeaveSlot{Session: session}
		}
	}
	text := rapid.SampledFrom([]string{
		`"method":"tools/call","params":{"name":"` + slot + `-x"}`, `"method":"tools/call","params":{"name":"` + slot + `-y"}`,
		`"method":"tools/list"`, `"method":"resources/list"`, `"method":"resources/read","params":{"uri":"slot:` + slot + `/u"}`,
		`"method":"initialize","params":{"capabilities":{"roots":{}}}`, `"method":"ping"`,
	}).Draw(t, "call")
	v.calls["c"]++
	return &msg.ClientCall{Session: session, Client: client, Call: v.calls["c"], Frame: mustScan(fmt.Sprintf(`{"id":%d,%s}`, v.calls["c"], text)), Trace: trace}
}

// aboutCall draws what happens to a call in flight.
func (v *victim) aboutCall(t *rapid.T) any {
	s := v.state
	calls := byNumber(s.calls)
	if len(calls) == 0 {
		return v.ofClient(t, "a")
	}
	c := calls[rapid.IntRange(0, len(calls)-1).Draw(t, "of")]
	from := func(message any) any { return &fromMember{session: c.member.session, message: message} }
	cancel := `{"method":"notifications/cancelled","params":{"requestId":"brk-7"}}`
	switch rapid.IntRange(0, 9).Draw(t, "about") {
	case 0:
		return from(&msg.CallReply{Call: c.number, Frame: []byte(`{"id":1,"result":{"contents":[{"uri":"u"}]}}`)})
	case 1:
		return from(&msg.CallFailed{Call: c.number, Err: wire.Disconnected("s")})
	case 2:
		return progressed{&msg.CallProgress{Call: c.number, Frame: []byte(`{}`)}}
	case 3:
		return from(&msg.AskCancelled{Call: c.number, Frame: []byte(cancel)})
	case 4:
		return &msg.CallerLeft{Session: c.client.Session, Call: c.theirs}
	case 5:
		return &msg.ClientNote{Session: c.client.Session, Frame: mustScan(`{"method":"notifications/cancelled","params":{"requestId":` + string(c.id) + `}}`)}
	case 6:
		return &callCrashed{session: c.member.session, call: c.number}
	}
	if ids := slices.Sorted(maps.Keys(s.asks)); len(ids) > 0 && rapid.Bool().Draw(t, "answer") {
		asked := s.asks[ids[0]]
		if rapid.Bool().Draw(t, "undeliverable") {
			return &msg.AskUndeliverable{Session: asked.client.Session, ID: ids[0]}
		}
		return &msg.ClientAnswer{Session: asked.client.Session, Frame: mustScan(fmt.Sprintf(`{"id":"brk-%d","result":{}}`, ids[0]))}
	}
	v.calls["ask"]++
	return from(&msg.ClientAsk{Call: c.number, ID: v.calls["ask"], Frame: []byte(`{}`)})
}

func (v *victim) ofSlot(t *rapid.T, slot string) any {
	m := v.state.members[slot]
	if m == nil || m.session == 0 {
		return v.ofRegistry(t, slot)
	}
	from := func(message any) any { return &fromMember{session: m.session, message: message} }
	switch pick := rapid.IntRange(0, 15).Draw(t, "slot"); {
	case pick == 15:
		return from(&msg.SlotLost{})
	case pick == 14:
		return from(&msg.EndSession{Why: "room"})
	case pick == 13:
		return &listChanged{session: m.session, kind: list(rapid.IntRange(0, 2).Draw(t, "list"))}
	case m.to == nil && pick == 12:
		return from(&msg.JoinRefused{Err: wire.SlotGone()})
	case m.to == nil:
		return from(&msg.SlotJoined{Ref: v.ref("slot " + slot), Session: m.session})
	case m.request == 0:
		return &listChanged{session: m.session, kind: tools}
	case pick == 12:
		return from(&msg.CallFailed{Call: m.request, Err: wire.SlotGone()})
	case pick == 11:
		return from(&msg.CallReply{Call: m.request, Frame: []byte(`{"error":{"code":-32000,"message":"no"}}`)})
	}
	result := rapid.SampledFrom([]string{
		`{"capabilities":{"tools":{},"resources":{}}}`,
		`{"tools":[{"name":"x"}],"resources":[{"uri":"u"}],"resourceTemplates":[]}`,
		`{"tools":[{"name":"x"},{"name":"x"}],"nextCursor":"1"}`, `{"tools":[{"name":"y"}],"nextCursor":"2"}`,
	}).Draw(t, "result")
	if m.fetch == nil {
		result = rapid.SampledFrom([]string{`{"capabilities":{"tools":{},"resources":{}}}`, `{"capabilities":{}}`}).Draw(t, "capabilities")
	}
	return from(&msg.CallReply{Call: m.request, Frame: []byte(`{"result":` + result + `}`)})
}
