package slot_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/registry"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/slot"
	"mcpbroker/actors/wire"
)

// TestCrashes makes the actor of a slot fail once at one message and checks that
// the one who sent it is told, or that the fact is handled after all, and that a
// call which is none of its business is answered as if nothing had happened.
func TestCrashes(t *testing.T) {
	tests := []struct {
		name  string
		at    func(message any) bool // fails at the first that matches
		act   func(w *world)
		wants []string // what peers hear of it
	}{
		{
			name: "call", at: is[*msg.ClientCall],
			act: func(w *world) { w.call(2) },
			wants: []string{
				`client: failed 2 -32603 Slot "s" failed while handling this request; the request was not completed and may be sent again`,
			},
		},
		{
			name: "answer", at: is[*msg.ProviderFrame],
			act: func(w *world) { w.call(2); w.answer(2) },
			wants: []string{
				`provider: {"jsonrpc":"2.0","id":"brk-2","method":"m","params":[]}`,
				`credit`,
				`client: failed 2 -32603 Slot "s" failed while handling this request; the request was not completed and may be sent again`,
			},
		},
		{
			name: "refusal", at: is[*msg.ProviderRefusal],
			act: func(w *world) {
				w.call(2)
				w.slot.Send(&msg.ProviderRefusal{Gen: w.gen, ID: []byte(`"brk-2"`), Err: wire.NotConnected("s"), Credit: credit{w}})
			},
			wants: []string{
				`provider: {"jsonrpc":"2.0","id":"brk-2","method":"m","params":[]}`,
				`credit`,
				`client: failed 2 -32603 Slot "s" failed while handling this request; the request was not completed and may be sent again`,
			},
		},
		{
			name: "renewal", at: is[*msg.ProviderRenewed],
			act: func(w *world) {
				w.slot.Send(&msg.ProviderRenewed{Gen: w.gen, Answer: frame(`{"jsonrpc":"2.0","id":"brk-0","result":{"capabilities":{"tools":{}}}}`)})
			},
			wants: []string{"client: *msg.Notify"},
		},
		{
			name: "deadline", at: is[*msg.TimerDue],
			act: func(w *world) { w.call(2); w.spare(); time.Sleep(time.Minute) },
			wants: []string{
				`provider: {"jsonrpc":"2.0","id":"brk-2","method":"m","params":[]}`,
				`provider: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"brk-2","reason":"The caller no longer waits for the answer"}}`,
				`client: failed 2 -32000 Provider "s" did not respond within 30000ms. Raise providerRequestTimeoutMs for slow tools, or call broker_diagnose on the _broker slot to see what the provider is doing.`,
			},
		},
		{
			name: "drain", at: is[*msg.DrainProvider],
			act: func(w *world) {
				w.call(2)
				w.spare()
				w.slot.Send(&msg.DrainProvider{Gen: w.gen, Owner: w.peer("owner")})
				w.answer(2)
			},
			wants: []string{
				`provider: {"jsonrpc":"2.0","id":"brk-2","method":"m","params":[]}`,
				`credit`,
				`client: reply 2 {"jsonrpc":"2.0","id":2,"result":{}}`,
				`owner: *msg.ProviderDrained`,
			},
		},
		{
			name: "claim and liveness", at: is[*msg.LivenessReport],
			act: func(w *world) {
				w.slot.Send(&msg.ClaimSlot{Slot: "s", Claimant: w.peer("newcomer"), Conduit: provider{w.peer("newcomer")}, Kind: msg.Dedicated})
				synctest.Wait()
				w.slot.Send(&msg.LivenessReport{Gen: w.gen, Open: true})
			},
			wants: []string{
				"holder: asked",
				`newcomer: refused Slot already held by a live provider; call provider_status on _broker. Slot: "s"`,
			},
		},
		{
			name: "session", at: is[*msg.LeaveSlot],
			act: func(w *world) {
				w.join(2)
				w.slot.Send(&msg.ClientCall{Session: 2, Client: w.peer("other"), Call: 9, Frame: frame(`{"id":9,"method":"m","params":[]}`)})
				synctest.Wait()
				w.slot.Send(&msg.LeaveSlot{Session: 2})
			},
			wants: []string{
				"other: joined",
				`provider: {"id":"brk-2","method":"m","params":[]}`,
				`provider: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"brk-2","reason":"The caller no longer waits for the answer"}}`,
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, test.at)
				defer w.close(t)
				w.call(1)
				synctest.Wait()
				w.heard() // of the innocent call
				w.arm()
				test.act(w)
				synctest.Wait()
				if diff := cmp.Diff(test.wants, w.heard()); diff != "" {
					t.Errorf("heard (-want +got):\n%s", diff)
				}
				if w.spared {
					return
				}
				w.answer(1)
				synctest.Wait()
				if diff := cmp.Diff([]string{"credit", `client: reply 1 {"jsonrpc":"2.0","id":1,"result":{}}`}, w.heard()); diff != "" {
					t.Errorf("of the innocent call (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestCrashWhileProviderLeaves: the provider's goodbye is handled after all.
func TestCrashWhileProviderLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, is[*msg.ProviderGone])
		defer w.close(t)
		w.call(1)
		synctest.Wait()
		w.heard()
		w.arm()
		w.slot.Send(&msg.ProviderGone{Gen: w.gen})
		synctest.Wait()
		want := []string{`client: failed 1 -32000 Provider "s" disconnected`}
		if diff := cmp.Diff(want, w.heard()); diff != "" {
			t.Errorf("heard (-want +got):\n%s", diff)
		}
	})
}

// TestCrashAtEachMessage: a slot that fails at whatever it is given is given up,
// and everybody is told.
func TestCrashAtEachMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(message any) bool { return is[*msg.ProviderGone](message) })
		defer w.close(t)
		w.call(1)
		synctest.Wait()
		w.heard()
		w.armFor(1000)
		w.slot.Send(&msg.ProviderGone{Gen: w.gen})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		want := []string{
			`client: failed 1 -32000 Slot "s" failed repeatedly and was reset; its provider has to connect again`,
			"holder: evicted failed=true",
			"client: lost",
		}
		if diff := cmp.Diff(want, w.heard()); diff != "" {
			t.Errorf("heard (-want +got):\n%s", diff)
		}
	})
}

func is[M any](message any) bool { _, ok := message.(M); return ok }

func frame(text string) wire.Frame {
	f, err := wire.Scan([]byte(text))
	if err != nil {
		panic(err)
	}
	return f
}

// world is a running slot "s" with a session and a provider, and its peers' ears.
type world struct {
	sys      *rt.System
	registry *rt.Ref
	slot     msg.Ref
	gen      uint64
	spared   bool // the innocent call does not outlive the test's deed

	mu    sync.Mutex
	fuse  int // how often the slot still fails
	at    func(any) bool
	lines []string
	peers map[string]*peer
}

// peer is anybody around the slot.
type peer struct {
	w     *world
	name  string
	ended bool // it takes no frame any more
}

func newWorld(t *testing.T, at func(any) bool) *world {
	w := &world{at: at, peers: map[string]*peer{}}
	w.sys = rt.NewSystem(nil, w.tap)
	next := uint64(0)
	w.registry = registry.Start(w.sys, registry.Config{}, func(string) slot.Config {
		return slot.Config{RequestTimeout: 30 * time.Second, HeartbeatInterval: 30 * time.Second, Takeover: slot.Liveness, NextID: func() uint64 { next++; return next }}
	})
	w.registry.Send(&msg.JoinSlot{Slot: "s", Session: 1, Client: w.peer("client")})
	w.registry.Send(&msg.ClaimSlot{Slot: "s", Claimant: w.peer("holder"), Conduit: provider{w.peer("provider")}, Kind: msg.Dedicated})
	synctest.Wait()
	if diff := cmp.Diff([]string{"client: joined", "holder: granted"}, w.heard()); diff != "" {
		t.Fatalf("heard at first (-want +got):\n%s", diff)
	}
	return w
}

func (w *world) close(t *testing.T) {
	if err := w.sys.StopAndWait(context.Background(), w.registry.PID()); err != nil {
		t.Error(err)
	}
	w.sys.Close()
}

func (w *world) tap(_ *rt.PID, message any) {
	w.mu.Lock()
	fails := w.fuse > 0 && w.at(message)
	if fails {
		w.fuse--
	}
	w.mu.Unlock()
	if fails {
		panic("injected")
	}
}

func (w *world) arm() { w.armFor(1) }

func (w *world) armFor(times int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fuse = times
}

// spare answers the innocent call before time passes.
func (w *world) spare() {
	w.answer(1)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spared = true
	w.lines = w.lines[:1] // the deed's own line
}

func (w *world) peer(name string) *peer {
	if w.peers[name] == nil {
		w.peers[name] = &peer{w: w, name: name}
	}
	return w.peers[name]
}

func (w *world) hear(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, fmt.Sprintf(format, args...))
}

// heard returns what peers heard since the last time.
func (w *world) heard() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := w.lines
	w.lines = nil
	return lines
}

func (w *world) join(session uint64) {
	w.slot.Send(&msg.JoinSlot{Slot: "s", Session: session, Client: w.peer("other")})
	synctest.Wait()
}

func (w *world) call(n uint64) {
	text := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"m","params":[]}`, n)
	w.slot.Send(&msg.ClientCall{Session: 1, Client: w.peer("client"), Call: n, Frame: frame(text)})
	synctest.Wait()
}

func (w *world) answer(n uint64) {
	w.slot.Send(&msg.ProviderFrame{Gen: w.gen, Frame: frame(fmt.Sprintf(`{"jsonrpc":"2.0","id":"brk-%d","result":{}}`, n)), Credit: credit{w}})
}

type credit struct{ w *world }

// Give implements msg.Credit.
func (c credit) Give() { c.w.hear("credit") }

// Send implements msg.Ref.
func (p *peer) Send(message any) {
	switch m := message.(type) {
	case *msg.SlotJoined:
		p.w.slot = m.Ref
		p.w.hear("%s: joined", p.name)
	case *msg.ClaimGranted:
		p.w.gen = m.Gen
		p.w.hear("%s: granted", p.name)
	case *msg.ClaimRefused:
		p.w.hear("%s: refused %s", p.name, m.CloseReason)
	case *msg.LivenessAsked:
		p.w.hear("%s: asked", p.name)
	case *msg.CallReply:
		p.w.hear("%s: reply %d %s", p.name, m.Call, m.Frame)
	case *msg.CallFailed:
		p.w.hear("%s: failed %d %d %s", p.name, m.Call, m.Err.Code, m.Err.Message)
	case *msg.EvictHolder:
		p.w.hear("%s: evicted failed=%v", p.name, m.Failed)
	case *msg.SlotLost:
		p.w.hear("%s: lost", p.name)
	default:
		p.w.hear("%s: %T", p.name, message)
	}
}

// provider is the conduit of a peer.
type provider struct{ *peer }

// Send implements msg.Conduit.
func (p provider) Send(frame []byte, _ mcp.Class) bool {
	if p.hasEnded() {
		return false
	}
	p.w.hear("%s: %s", p.name, frame)
	return true
}

func (p *peer) hasEnded() bool {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return p.ended
}

// end makes the peer's conduit refuse what comes.
func (p *peer) end() {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.ended = true
}
