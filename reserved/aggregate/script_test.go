package aggregate

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
	"mcpbroker/internal/script"
)

var update = flag.Bool("update", false, "rewrite the scripts in testdata to what came out")

// TestScripts plays the scripts in testdata, one subject a file. Each begins with
//
//	config id=here resources=true maxpending=2 maxsessions=2 timeout=1m
//
// Sessions of the server in its members are numbered from 101. Then, in any order:
//
//	observe s gen=1 aggregate        a slot with a provider; without gen it has none
//	observe s gen=1 upstream         its provider is one the broker starts or dials
//	observe s expected               its owner connects; max=2 calls may be in flight on it
//	forget s
//	joined s | refused s "text" | lost s | end s "why"
//	result s {...} | error s {...}   the answer to the server's own request in flight
//	timeout s | remote s "503 Busy"  the broker's answer to it: too late, or refused by a remote server
//	reply s call=2 {...} | failed s call=2 "why" | progress s call=2 {...}
//	ask s call=2 id=7 {...} | withdraw s call=2 {...}
//	changed s tools                  its list_changed
//	open s {...} tools=a,b           joined, initialize and lists at once; it has no prompts
//	join c1 kind=ws | leave c1 | stream c1 open=true
//	evict c1                         its place was taken
//	call c1 id=7 method {params}
//	note c1 {...} | answer c1 {...} | callerleft c1 1 | undeliverable c1 id=7
//	crash s call=2
//	tick 5s                          time passes and the timer is delivered when due
//	members
//
// session=101 makes the message of a slot one for that session instead of its
// present one.
func TestScripts(t *testing.T) {
	script.Run(t, "testdata/*.txt", *update, func() script.Interpreter { return (&machine{}).run })
}

// machine is a server with the shell's part played by hand.
type machine struct {
	state *State
	now   time.Time

	timerAt  time.Time
	timerGen uint64

	refs     map[string]*ref
	calls    map[string]uint64
	sessions uint64
	evicted  *clientEvicted // the last
}

func (m *machine) configure(cfg Config) {
	m.now, m.refs, m.calls, m.sessions = epoch, map[string]*ref{}, map[string]uint64{}, 100
	cfg.NextSession = func() uint64 { m.sessions++; return m.sessions }
	cfg.Trace = func() string { return trace }
	m.state = NewState(cfg, m.ref("registry"), func(session uint64) msg.Ref { return m.ref(fmt.Sprint("@", session)) })
	m.state.self = m.ref("self")
}

func (m *machine) run(t *testing.T, c script.Command) []string {
	switch {
	case c.Name == "config":
		m.configure(Config{
			ID: c.Opts["id"], Version: "1.2", Resources: c.Opts["resources"] == "true",
			MaxPending: c.Number(t, "maxpending"), MaxSessions: c.Number(t, "maxsessions"),
			RequestTimeout: timeout(t, c),
		})
		return m.step(started{})
	case m.state == nil:
		t.Fatal("a script begins with config")
	case c.Name == "tick":
		return m.tick(script.ParseDuration(t, c.Arg(0)))
	case c.Name == "members":
		return m.members()
	case c.Name == "open":
		return m.open(c)
	}
	return m.step(m.message(t, c))
}

func (m *machine) step(message any) []string {
	effects := m.state.Step(m.now, message)
	for i := range effects {
		e := &effects[i]
		if e.WakeGen != 0 {
			m.timerAt, m.timerGen = m.now.Add(e.Wake), e.WakeGen
		}
		if gone, ok := e.Message.(*clientEvicted); ok {
			m.evicted = gone
		}
	}
	return describe(effects)
}

func (m *machine) tick(d time.Duration) []string {
	var lines []string
	end := m.now.Add(d)
	for !m.timerAt.IsZero() && !m.timerAt.After(end) {
		m.now, m.timerAt = m.timerAt, time.Time{}
		lines = append(lines, fmt.Sprintf("timer #%d at %v", m.timerGen, m.now.Sub(epoch)))
		lines = append(lines, m.step(&retryDue{gen: m.timerGen})...)
	}
	m.now = end
	return lines
}

func (m *machine) members() []string {
	var lines []string
	for _, x := range m.state.Members() {
		line := x.Slot
		if x.Joined {
			line += fmt.Sprintf(" joined at %v, %d tools, %d prompts", x.Since.Sub(epoch), x.Tools, x.Prompts)
		}
		if x.Joining {
			line += fmt.Sprintf(" since %v", x.Since.Sub(epoch))
		}
		if x.Restarting {
			line += ", restarting"
		}
		if x.Reason != "" {
			line += ": " + x.Reason
		}
		lines = append(lines, line)
	}
	return lines
}

func (m *machine) ref(name string) *ref {
	if m.refs[name] == nil {
		m.refs[name] = &ref{name}
	}
	return m.refs[name]
}

func number(t *testing.T, name string) uint64 {
	n, err := strconv.ParseUint(strings.TrimLeft(name, "c"), 10, 64)
	if err != nil {
		t.Fatalf("script: client %q: %v", name, err)
	}
	return n
}

func (m *machine) message(t *testing.T, c script.Command) any {
	who := c.Arg(0)
	switch c.Name {
	case "observe":
		return m.observed(t, c)
	case "forget":
		return &msg.SlotForgotten{Name: who}
	case "join":
		kinds := map[string]msg.ClientKind{"ws": msg.WebSocketClient, "broker": msg.BrokerClient}
		return &msg.JoinSlot{Slot: "_all", Session: number(t, who), Client: m.ref(who), Kind: kinds[c.Opts["kind"]]}
	case "leave":
		return &msg.LeaveSlot{Session: number(t, who)}
	case "call":
		return m.call(t, c)
	case "note":
		return &msg.ClientNote{Session: number(t, who), Frame: mustScan(c.Body)}
	case "answer":
		return &msg.ClientAnswer{Session: number(t, who), Frame: mustScan(c.Body)}
	case "undeliverable":
		return &msg.AskUndeliverable{Session: number(t, who), ID: uint64(c.Number(t, "id"))}
	case "callerleft":
		return &msg.CallerLeft{Session: number(t, who), Call: number(t, c.Arg(1))}
	case "stream":
		return &msg.StreamChanged{Session: number(t, who), Open: c.Opts["open"] == "true"}
	case "evict":
		return m.evicted
	case "giveup":
		return giveUp{}
	}
	return m.ofMember(t, c)
}

// gone is what a call on a slot comes to whose provider has left: with a reason that
// of an upstream.
func gone(slot, why string) *wire.Error {
	switch why {
	case "":
		return wire.Disconnected(slot)
	case "empty":
		return wire.NotConnected(slot)
	}
	return wire.UpstreamLost(slot, why)
}

func timeout(t *testing.T, c script.Command) time.Duration {
	if c.Opts["timeout"] == "" {
		return 0
	}
	return script.ParseDuration(t, c.Opts["timeout"])
}

func (m *machine) observed(t *testing.T, c script.Command) any {
	info := msg.SlotInfo{
		Name: c.Arg(0), Gen: uint64(c.Number(t, "gen")), Aggregate: c.Has("aggregate"),
		Expected: c.Has("expected"), MaxPending: c.Number(t, "max"),
	}
	if c.Has("upstream") {
		info.Transport = msg.Upstream
	}
	if info.Gen != 0 {
		info.Connected, info.ConnectedSince = true, epoch.Add(time.Duration(info.Gen)*time.Second)
	}
	return &msg.SlotObserved{Info: info}
}

func (m *machine) call(t *testing.T, c script.Command) any {
	who := c.Arg(0)
	text := `{"jsonrpc":"2.0","id":` + c.Opts["id"] + `,"method":"` + c.Arg(1) + `"`
	if c.Body != "" {
		text += `,"params":` + c.Body
	}
	m.calls[who]++
	return &msg.ClientCall{Session: number(t, who), Client: m.ref(who), Call: m.calls[who], Frame: mustScan(text + "}"), Trace: trace}
}

// ofMember is what a slot, or the registry, sends to the server as its client.
func (m *machine) ofMember(t *testing.T, c script.Command) any {
	slot := c.Arg(0)
	session, request := uint64(c.Number(t, "session")), uint64(c.Number(t, "call"))
	if x := m.state.members[slot]; x != nil && session == 0 {
		session = x.session
		if request == 0 {
			request = x.request
		}
	}
	text, _ := strconv.Unquote(c.Body)
	var message any
	switch c.Name {
	case "joined":
		message = &msg.SlotJoined{Ref: m.ref("slot " + slot), Session: session}
	case "refused":
		message = &msg.JoinRefused{Err: &wire.Error{Code: wire.CodeUnavailable, Message: text}}
	case "result", "error":
		message = &msg.CallReply{Call: request, Frame: []byte(`{"jsonrpc":"2.0","id":1,"` + c.Name + `":` + c.Body + `}`)}
	case "timeout":
		message = &msg.CallFailed{Call: request, Err: wire.NoAnswer(slot, time.Minute)}
	case "remote":
		message = &msg.CallFailed{Call: request, Err: wire.RemoteRefused(slot, text, "")}
	case "failed":
		message = &msg.CallFailed{Call: request, Err: gone(slot, text)}
	case "reply":
		message = &msg.CallReply{Call: request, Frame: []byte(c.Body)}
	case "progress":
		return progressed{&msg.CallProgress{Call: request, Frame: []byte(c.Body)}}
	case "ask":
		message = &msg.ClientAsk{Call: request, ID: uint64(c.Number(t, "id")), Frame: []byte(c.Body)}
	case "withdraw":
		message = &msg.AskCancelled{Call: request, Frame: []byte(c.Body)}
	case "lost":
		message = &msg.SlotLost{}
	case "end":
		message = &msg.EndSession{Why: text}
	case "crash":
		return &callCrashed{session: session, call: request}
	case "changed":
		return &listChanged{session: session, kind: map[string]list{"tools": tools, "prompts": prompts, "resources": resources}[c.Arg(1)]}
	default:
		t.Fatalf("script: unknown command %q", c.Name)
	}
	return &fromMember{session: session, message: message}
}

// open makes a member of a slot with tools of these names.
func (m *machine) open(c script.Command) []string {
	slot := c.Arg(0)
	m.step(&msg.SlotObserved{Info: msg.SlotInfo{Name: slot, Connected: true, Aggregate: true, Gen: 1, ConnectedSince: epoch}})
	x := m.state.members[slot]
	send := func(message any) []string { return m.step(&fromMember{session: x.session, message: message}) }
	send(&msg.SlotJoined{Ref: m.ref("slot " + slot), Session: x.session})
	initialized := `{"result":{"capabilities":{"tools":{}}}}`
	if c.Body != "" {
		initialized = `{"result":` + c.Body + `}`
	}
	send(&msg.CallReply{Call: x.request, Frame: []byte(initialized)})
	var items []string
	for _, name := range strings.Split(c.Opts["tools"], ",") {
		items = append(items, `{"name":"`+name+`"}`)
	}
	last := send(&msg.CallReply{Call: x.request, Frame: []byte(`{"result":{"tools":[` + strings.Join(items, ",") + `]}}`)})
	if x.fetch == nil || x.fetch.kind != prompts {
		return last
	}
	lines := last[:len(last)-1] // without the request for prompts
	return append(lines, send(&msg.CallReply{Call: x.request, Frame: []byte(`{"error":{"code":-32601,"message":"Method not found"}}`)})...)
}
