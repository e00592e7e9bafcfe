package slot

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// generator makes up a slot's life: messages as its peers could send them, in any
// order. The same message may be given to several states.
type generator struct {
	now    time.Time
	refs   map[string]*ref
	calls  map[uint64]uint64
	lastID uint64            // ids given out so far, for answers that match
	opened int               // requests of the provider so far
	ask    uint64            // id of what a client was asked last
	askee  uint64            // and its session
	leader uint64            // of the initialize in flight
	gen    uint64            // of the present holder, 0 for none
	asked  uint64            // generation of the last question about liveness
	gens   map[string]uint64 // what each provider was granted
	sent   [][]byte          // to the present holder, or the last
	owned  bool              // p1 alone claims the slot
}

func newGenerator() *generator {
	return &generator{now: epoch, refs: map[string]*ref{}, calls: map[uint64]uint64{}, gens: map[string]uint64{}}
}

func (g *generator) ref(name string) *ref {
	if g.refs[name] == nil {
		g.refs[name] = &ref{name}
	}
	return g.refs[name]
}

// prelude is how most lives begin: two sessions and a provider. In half of them it
// is the owner of the slot, and the registry lets no other claim it.
func (g *generator) prelude(t *rapid.T) []any {
	owner := g.ref("p2")
	if g.owned = rapid.Bool().Draw(t, "owned"); g.owned {
		owner = g.ref("p1")
	}
	return []any{
		&msg.OwnSlot{Slot: "s", Owner: owner},
		&msg.JoinSlot{Slot: "s", Session: 1, Client: g.ref("c1")},
		&msg.JoinSlot{Slot: "s", Session: 2, Client: g.ref("c2")},
		&msg.ClaimSlot{Slot: "s", Claimant: g.ref("p1"), Conduit: &conduit{"p1"}, Kind: msg.Multiplexed, Principal: "x"},
	}
}

// next draws a message. Time passes with each, so that no two sessions are
// equally idle.
func (g *generator) next(t *rapid.T) any {
	g.now = g.now.Add(time.Duration(rapid.IntRange(1, 400).Draw(t, "ms")) * time.Millisecond)
	session := rapid.Uint64Range(1, 4).Draw(t, "session")
	client := g.ref(fmt.Sprintf("c%d", session))
	if g.owned && rapid.IntRange(0, 2).Draw(t, "dies") > 0 {
		return g.dying(t, session, client)
	}
	switch kind := rapid.IntRange(0, 29).Draw(t, "kind"); kind {
	case 0, 1:
		return &msg.JoinSlot{Slot: "s", Session: session, Client: client, Kind: kindOf(session)}
	case 2:
		if rapid.Bool().Draw(t, "stay") {
			break
		}
		return &msg.LeaveSlot{Session: session}
	case 3, 4, 5, 6:
		return g.call(t, session, client)
	case 7:
		return &msg.ClientNote{Session: session, Frame: g.note(t)}
	case 8:
		number := g.calls[session] - min(rapid.Uint64Range(0, 2).Draw(t, "back"), g.calls[session])
		if rapid.Bool().Draw(t, "late") {
			return &msg.CallerLate{Session: session, Call: number}
		}
		return &msg.CallerLeft{Session: session, Call: number}
	case 9:
		return &msg.StreamChanged{Session: session, Open: rapid.Bool().Draw(t, "open")}
	case 10, 11:
		return g.claim(t)
	case 12:
		return &msg.LivenessReport{Gen: g.asked, Open: rapid.Bool().Draw(t, "open"), Outstanding: time.Duration(rapid.IntRange(0, 9).Draw(t, "s")) * time.Second}
	case 13:
		if rapid.Bool().Draw(t, "stay") {
			break
		}
		return &msg.ProviderGone{Gen: g.someGen(t), Unsent: g.lost(t), Final: rapid.IntRange(0, 3).Draw(t, "final") == 0}
	case 14:
		return &msg.CallCrashed{ID: g.someID(t)}
	case 15:
		return &msg.ProviderJunk{Gen: g.someGen(t), Head: []byte("junk"), Credit: &credit{"junk"}}
	case 16:
		return &msg.WithdrawClaim{Slot: "s", Claimant: g.ref(g.provider(t))}
	case 17:
		session, id := g.someAsk(t, session)
		return &msg.ClientAnswer{Session: session, Frame: mustScan(fmt.Sprintf(`{"jsonrpc":"2.0","id":"brk-%d","result":{}}`, id))}
	case 18:
		session, id := g.someAsk(t, session)
		return &msg.AskUndeliverable{Session: session, ID: id}
	case 20:
		return g.owner(t)
	case 24:
		return &msg.DrainProvider{Gen: g.someGen(t), Owner: g.ref("p1")}
	case 22:
		return refused{g.lost(t)}
	case 28:
		id := wire.AppendBrokerID(nil, g.someID(t))
		return &msg.ProviderRefusal{Gen: g.someGen(t), ID: id, Err: wire.NotConnected("s"), Credit: &credit{"refusal"}}
	case 29:
		answer := `{"jsonrpc":"2.0","id":"brk-0","result":{"capabilities":{"tools":{},"resources":{}}}}`
		return &msg.ProviderRenewed{Gen: g.someGen(t), Answer: mustScan(answer)}
	case 23:
		return &msg.ClaimSlot{Slot: "s", Claimant: g.ref("p1"), Conduit: &conduit{"p1"}, Kind: msg.Upstream}
	case 21:
		ago := rapid.IntRange(0, 9).Draw(t, "idle")
		return &msg.EndIdle{Since: g.now.Add(-time.Duration(ago) * time.Second / 2), Why: "room", Asker: g.ref("asker")}
	case 19:
		g.opened++
		return &msg.ProviderFrame{Gen: g.someGen(t), Frame: mustScan(request(fmt.Sprintf(`"q%d"`, g.opened), "roots/list", "")), Credit: &credit{"request"}}
	}
	return &msg.ProviderFrame{Gen: g.someGen(t), Frame: g.frame(t), Credit: &credit{"frame"}}
}

// kindOf makes the last session one of the broker's own.
func kindOf(session uint64) msg.ClientKind {
	if session == 4 {
		return msg.BrokerClient
	}
	return msg.HTTPClient
}

// owner draws a word of the one that keeps an upstream, or of another.
func (g *generator) owner(t *rapid.T) any {
	who := g.ref(rapid.SampledFrom([]string{"p1", "p1", "p2"}).Draw(t, "owner"))
	switch rapid.IntRange(0, 5).Draw(t, "word") {
	case 0:
		return &msg.OwnSlot{Slot: "s", Owner: who}
	case 1:
		return &msg.DisownSlot{Slot: "s", Owner: who}
	case 2:
		return &msg.HolderFailed{Slot: "s", Owner: who, Err: wire.UpstreamDown("s", "it exited", "Wait.")}
	}
	return &msg.HolderExpected{Slot: "s", Owner: who}
}

// dying draws from the life of an upstream that dies often.
func (g *generator) dying(t *rapid.T, session uint64, client *ref) any {
	switch {
	case g.gen != 0 && rapid.IntRange(0, 6).Draw(t, "drains") == 0:
		return &msg.DrainProvider{Gen: g.gen, Owner: g.ref("p1")}
	case g.gen == 0 && rapid.IntRange(0, 2).Draw(t, "back") > 0:
		return &msg.ClaimSlot{Slot: "s", Claimant: g.ref("p1"), Conduit: &conduit{"p1"}, Kind: msg.Upstream}
	case g.gen != 0 && rapid.IntRange(0, 3).Draw(t, "gone") == 0:
		return &msg.ProviderGone{Gen: g.gen, Unsent: g.lost(t)}
	}
	return g.call(t, session, client)
}

// lost is what a connection that dies has not written of what it was sent.
func (g *generator) lost(t *rapid.T) [][]byte {
	written := rapid.IntRange(0, len(g.sent)).Draw(t, "written")
	return g.sent[written:len(g.sent):len(g.sent)]
}

func (g *generator) provider(t *rapid.T) string {
	if g.owned {
		return "p1"
	}
	return fmt.Sprintf("p%d", rapid.IntRange(1, 4).Draw(t, "provider"))
}

func (g *generator) claim(t *rapid.T) *msg.ClaimSlot {
	name := g.provider(t)
	kind := rapid.SampledFrom([]msg.ProviderKind{msg.Dedicated, msg.Multiplexed}).Draw(t, "transport")
	return &msg.ClaimSlot{Slot: "s", Claimant: g.ref(name), Conduit: &conduit{name}, Kind: kind, Principal: rapid.SampledFrom([]string{"", "x"}).Draw(t, "principal")}
}

// call gives each call an id of its own, as a session sees to.
func (g *generator) call(t *rapid.T, session uint64, client *ref) *msg.ClientCall {
	g.calls[session]++
	id := fmt.Sprint(g.calls[session])
	text := rapid.SampledFrom([]string{
		request(id, "tools/call", fmt.Sprintf(`{"_meta":{"progressToken":"p"},"name":"%s %s"}`, client.name, id)),
		request(id, "tools/call", fmt.Sprintf(`{"name":"%s %s"}`, client.name, id)),
		request(id, "tools/list", ""),
		request(id, "initialize", `{"n":1}`),
		request(id, "initialize", `{"capabilities":{"roots":{}}}`),
		request(id, "resources/subscribe", `{"uri":"u:a"}`),
		request(id, "resources/subscribe", `{"uri":"u:b"}`),
		request(id, "resources/subscribe", `{"uri":"u:c"}`),
		request(id, "resources/unsubscribe", `{"uri":"u:a"}`),
		request(id, "resources/unsubscribe", `{"uri":"u:b"}`),
		request(id, "resources/unsubscribe", `{"uri":"\u0075:c"}`),
	}).Draw(t, "frame")
	call := &msg.ClientCall{Session: session, Client: client, Call: g.calls[session], Frame: mustScan(text), Trace: trace, Timed: rapid.IntRange(0, 4).Draw(t, "timed") == 0}
	if kindOf(session) == msg.BrokerClient && rapid.Bool().Draw(t, "behind") {
		call.For = &msg.Origin{Session: 9}
	}
	return call
}

func (g *generator) note(t *rapid.T) wire.Frame {
	text := rapid.SampledFrom([]string{
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`,
		fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, rapid.IntRange(1, 6).Draw(t, "id")),
	}).Draw(t, "note")
	return mustScan(text)
}

// frame is mostly an answer or progress to one of the last ids given out.
func (g *generator) frame(t *rapid.T) wire.Frame {
	id := g.someID(t)
	text := rapid.SampledFrom([]string{
		fmt.Sprintf(`{"jsonrpc":"2.0","id":"brk-%d","result":{}}`, id),
		fmt.Sprintf(`{"jsonrpc":"2.0","id":"brk-%d","error":{"code":1,"message":"m"}}`, id),
		fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"brk-%d","progress":1}}`, id),
		`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`,
		`{"jsonrpc":"2.0","method":"notifications/register","params":{"aggregate":true}}`,
		`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"u:a"}}`,
		`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"u:\u0062"}}`,
		`{"jsonrpc":"2.0","method":"notifications/resources/updated"}`,
		fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q%d"}}`, g.opened),
		`[1]`,
	}).Draw(t, "frame")
	return mustScan(text)
}

func (g *generator) someID(t *rapid.T) uint64 {
	back := rapid.Uint64Range(0, 4).Draw(t, "back")
	if back == 0 && g.leader != 0 {
		return g.leader
	}
	return g.lastID - min(back, g.lastID)
}

// someAsk is mostly the last one a client has got.
func (g *generator) someAsk(t *rapid.T, session uint64) (askee, id uint64) {
	if rapid.IntRange(0, 3).Draw(t, "wrong") == 0 {
		return session, g.someID(t)
	}
	return g.askee, g.ask
}

// someGen is the holder's generation, or an older one now and then.
func (g *generator) someGen(t *rapid.T) uint64 {
	if rapid.IntRange(0, 4).Draw(t, "stale") == 0 {
		return g.gen / 2
	}
	return g.gen
}

// learn takes from a step's effects what the peers would know.
func (g *generator) learn(s *State, effects []Effect) {
	g.gen, g.leader = 0, s.initLeader
	if s.holder != nil {
		g.gen = s.holder.gen
	}
	for i := range effects {
		if frame := effects[i].Frame; frame != nil {
			g.sent = append(g.sent, frame)
		}
		switch m := effects[i].Message.(type) {
		case *msg.ClaimGranted:
			g.sent = nil
		case *msg.LivenessAsked:
			g.asked = m.Gen
		case *msg.ClientAsk:
			g.ask, g.askee = m.ID, s.asks[m.ID].session
		}
	}
}

// clock plays the shell's timer.
type clock struct {
	at  time.Time
	gen uint64
}

func (c *clock) arm(now time.Time, effects []Effect) {
	for i := range effects {
		if e := &effects[i]; e.WakeGen != 0 {
			c.at, c.gen = now.Add(e.Wake), e.WakeGen
		}
	}
}

// due returns the timer's message when it is time for it.
func (c *clock) due(now time.Time) *msg.TimerDue {
	if c.at.IsZero() || c.at.After(now) {
		return nil
	}
	c.at = time.Time{}
	return &msg.TimerDue{Gen: c.gen}
}
