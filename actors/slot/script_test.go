package slot

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
	"mcpbroker/internal/script"
)

var update = flag.Bool("update", false, "rewrite the scripts in testdata to what came out")

// TestScripts plays the scripts in testdata, one subject a file. Each begins with
// its configuration:
//
//	config timeout=60s heartbeat=30s takeover=liveness relay=true maxpending=3 maxsessions=2 ids=41
//	config requests=relay maxperclient=1 maxperslot=2 maxuri=10
//
// The defaults are those of the broker. Then, in any order:
//
//	attach p1 kind=ws principal=x aggregate   a claim; kind ws-multiplex, ws or loopback
//	report p1 open=false outstanding=3s       p1's answer to the last question it got
//	gone p1 gen=1 why=text                    p1 left; gen defaults to what p1 was granted
//	gone o1 final                             for good
//	gone p1 unsent=2,note,3                   and brk-2, the last notification and brk-3 were never written
//	refused 2,note                            nor were these taken
//	drain o1 gen=1                            o1 is about to take its provider away
//	withdraw p1
//	frame p1 {...} gen=1                      what p1 sends, junk as a quoted string
//	refusal p1 id=1 busy "why"                its conduit gets no answer to brk-1
//	renewed p1 {...}                          its server began anew, and answered initialize
//	join c1 | leave c1 | stream c1 open=true  session 1
//	join c1 kind=broker                       http, ws, stdio, or a reserved slot
//	call c1 id=7 method {params}              calls are numbered per session
//	call c1 for=9 can=sampling id=7 method    passed on for session 9
//	call c1 {...}                             the same with the whole message given
//	note c1 call=1 {...}                      about c1's call 1
//	answer c1 {...}                           to what the provider asked
//	undeliverable c1 id=2                     c1 has no stream for brk-2
//	forbid c1 uri                             from now on c1 may not read it
//	callerleft c1 1
//	callerlate c1 1                           the same of a check, which is answered
//	call c1 timed=true id=7 method            without a deadline
//	own o1 | disown o1 | expect o1            o1 keeps an upstream in the slot
//	down o1 text                              and cannot connect for now
//	idle                                      since when its clients are, on the clock of "timer at"
//	oldest                                    since when a request waits, for the inventory
//	endidle a1 since=3s                       a1 ends them if they have been ever since
//	tick 30s                                  time passes and the timer is delivered when due
//	timer gen=1 | crash id=1 | giveup | describe
//	retire | retire unserved
func TestScripts(t *testing.T) {
	script.Run(t, "testdata/*.txt", *update, func() script.Interpreter { return (&machine{}).run })
}

// machine is a slot with the shell's part played by hand.
type machine struct {
	state *State
	now   time.Time

	timerAt  time.Time // zero while no timer is armed
	timerGen uint64

	refs  map[string]*ref
	calls map[string]uint64 // how many each session made
	gens  map[string]uint64 // what each provider was last granted
	sent  map[string][]byte // frames to providers by the n of brk-<n>, and the last "note"
	asked map[string]uint64 // and last asked about
	frame map[string]int    // how many each sent

	forbidden map[string]bool // session and URI
}

func (m *machine) configure(t *testing.T, c script.Command) {
	next := uint64(c.Number(t, "ids"))
	cfg := Config{
		RequestTimeout: time.Minute, HeartbeatInterval: 30 * time.Second, Takeover: Liveness,
		RelayInitialize: c.Opts["relay"] == "true",
		RelayRequests:   c.Opts["requests"] == "relay",
		MaxPending:      c.Number(t, "maxpending"), MaxSessions: c.Number(t, "maxsessions"),
		MaxSubscriptionsPerClient: c.Number(t, "maxperclient"),
		MaxSubscriptionsPerSlot:   c.Number(t, "maxperslot"),
		MaxURILength:              c.Number(t, "maxuri"),
		MayRead:                   func(session uint64, uri string) bool { return !m.forbidden[fmt.Sprint(session, " ", uri)] },
		NextID:                    func() uint64 { next++; return next },
	}
	if _, ok := c.Opts["timeout"]; ok {
		cfg.RequestTimeout = c.Duration(t, "timeout")
	}
	if _, ok := c.Opts["heartbeat"]; ok {
		cfg.HeartbeatInterval = c.Duration(t, "heartbeat")
	}
	if mode, ok := c.Opts["takeover"]; ok {
		cfg.Takeover = Takeover(mode)
	}
	m.state, m.now = New("s", cfg), epoch
	m.state.self = &ref{"slot"}
	m.refs, m.calls, m.gens = map[string]*ref{}, map[string]uint64{}, map[string]uint64{}
	m.asked, m.frame, m.forbidden = map[string]uint64{}, map[string]int{}, map[string]bool{}
	m.sent = map[string][]byte{}
}

func (m *machine) run(t *testing.T, c script.Command) []string {
	switch {
	case c.Name == "config":
		m.configure(t, c)
		return nil
	case m.state == nil:
		t.Fatal("a script begins with config")
	case c.Name == "tick":
		return m.tick(script.ParseDuration(t, c.Arg(0)))
	case c.Name == "describe":
		return m.describe()
	case c.Name == "idle":
		return []string{since("idle", m.state.Info().IdleSince)}
	case c.Name == "oldest":
		return []string{since("waiting", m.state.Info().OldestPending)}
	case c.Name == "forbid":
		m.forbidden[fmt.Sprint(session(t, c.Arg(0)), " ", c.Arg(1))] = true
		return nil
	}
	return m.step(m.message(t, c))
}

func (m *machine) step(message any) []string {
	effects := m.state.Step(m.now, message)
	for i := range effects {
		e := &effects[i]
		switch g := e.Message.(type) {
		case *msg.ClaimGranted:
			m.gens[e.To.(*ref).name] = g.Gen
		case *msg.LivenessAsked:
			m.asked[e.To.(*ref).name] = g.Gen
		}
		if e.WakeGen != 0 {
			m.timerAt, m.timerGen = m.now.Add(e.Wake), e.WakeGen
		}
		if e.Conduit != nil {
			m.sent[sentAs(e.Frame)] = e.Frame
		}
	}
	return describe(m.state, effects)
}

// tick lets time pass, delivering the armed timer as the shell would.
func (m *machine) tick(d time.Duration) []string {
	var lines []string
	end := m.now.Add(d)
	for !m.timerAt.IsZero() && !m.timerAt.After(end) {
		m.now, m.timerAt = m.timerAt, time.Time{}
		lines = append(lines, fmt.Sprintf("timer #%d at %v", m.timerGen, m.now.Sub(epoch)))
		lines = append(lines, m.step(&msg.TimerDue{Gen: m.timerGen})...)
	}
	m.now = end
	return lines
}

func (m *machine) describe() []string {
	s := m.state
	lines := []string{infoText(s.Info())}
	for _, c := range s.inOrder() {
		owner := "nobody"
		if c.client != nil {
			owner = fmt.Sprintf("%s #%d", c.client.(*ref).name, c.number)
		}
		lines = append(lines, fmt.Sprintf("brk-%d of %s, due at %v", c.id, owner, c.deadline.Sub(epoch)))
	}
	for _, w := range s.waiting {
		lines = append(lines, "remembered claim of "+w.Claimant.(*ref).name)
	}
	for _, uri := range s.uris() {
		lines = append(lines, subText(s.subs[uri]))
	}
	for _, a := range s.asksInOrder() {
		lines = append(lines, fmt.Sprintf("%s asked as brk-%d for brk-%d, due at %v", a.about, a.id, a.within, a.deadline.Sub(epoch)))
	}
	return lines
}

func since(what string, at time.Time) string {
	if at.IsZero() {
		return "not " + what
	}
	return fmt.Sprintf("%s since %v", what, at.Sub(epoch))
}

func (m *machine) ref(name string) *ref {
	if m.refs[name] == nil {
		m.refs[name] = &ref{name}
	}
	return m.refs[name]
}

// session is the number in a client's name.
func session(t *testing.T, name string) uint64 {
	n, err := strconv.ParseUint(strings.TrimLeft(name, "c"), 10, 64)
	if err != nil {
		t.Fatalf("script: client %q: %v", name, err)
	}
	return n
}

func (m *machine) gen(t *testing.T, c script.Command, known map[string]uint64) uint64 {
	if _, ok := c.Opts["gen"]; ok {
		return uint64(c.Number(t, "gen"))
	}
	return known[c.Arg(0)]
}

func (m *machine) message(t *testing.T, c script.Command) any {
	who := c.Arg(0)
	switch c.Name {
	case "attach":
		return m.claim(c)
	case "report":
		return &msg.LivenessReport{Gen: m.gen(t, c, m.asked), Open: c.Opts["open"] != "false", Outstanding: c.Duration(t, "outstanding")}
	case "gone":
		gone := &msg.ProviderGone{Gen: m.gen(t, c, m.gens), Final: c.Has("final"), Unsent: m.frames(t, c.Opts["unsent"])}
		if why := c.Opts["why"]; why != "" {
			gone.Why = wire.UpstreamLost("s", why)
		}
		return gone
	case "drain":
		return &msg.DrainProvider{Gen: m.gen(t, c, m.gens), Owner: m.ref(who)}
	case "refused":
		return refused{m.frames(t, c.Arg(0))}
	case "withdraw":
		return &msg.WithdrawClaim{Slot: "s", Claimant: m.ref(who)}
	case "frame":
		return m.providerFrame(t, c)
	case "refusal":
		return m.refusal(t, c)
	case "renewed":
		return &msg.ProviderRenewed{Gen: m.gen(t, c, m.gens), Answer: mustScan(c.Body)}
	case "join":
		return &msg.JoinSlot{Slot: "s", Session: session(t, who), Client: m.ref(who), Kind: kinds[c.Opts["kind"]]}
	case "leave":
		return &msg.LeaveSlot{Session: session(t, who)}
	case "stream":
		return &msg.StreamChanged{Session: session(t, who), Open: c.Opts["open"] == "true"}
	case "call":
		return m.call(t, c)
	case "note":
		return &msg.ClientNote{Session: session(t, who), Frame: mustScan(c.Body), Call: uint64(c.Number(t, "call"))}
	case "answer":
		return &msg.ClientAnswer{Session: session(t, who), Frame: mustScan(c.Body)}
	case "undeliverable":
		return &msg.AskUndeliverable{Session: session(t, who), ID: uint64(c.Number(t, "id"))}
	case "callerleft":
		n, _ := strconv.ParseUint(c.Arg(1), 10, 64)
		return &msg.CallerLeft{Session: session(t, who), Call: n}
	case "callerlate":
		n, _ := strconv.ParseUint(c.Arg(1), 10, 64)
		return &msg.CallerLate{Session: session(t, who), Call: n}
	case "timer":
		return &msg.TimerDue{Gen: uint64(c.Number(t, "gen"))}
	case "crash":
		return &msg.CallCrashed{ID: uint64(c.Number(t, "id"))}
	case "own":
		return &msg.OwnSlot{Slot: "s", Owner: m.ref(who)}
	case "disown":
		return &msg.DisownSlot{Slot: "s", Owner: m.ref(who)}
	case "expect":
		return &msg.HolderExpected{Slot: "s", Owner: m.ref(who)}
	case "down":
		return &msg.HolderFailed{Slot: "s", Owner: m.ref(who), Err: wire.UpstreamDown("s", c.Arg(1), "Next attempt in 30s.")}
	case "endidle":
		return &msg.EndIdle{Since: epoch.Add(c.Duration(t, "since")), Why: "room", Asker: m.ref(who)}
	case "retire":
		return &msg.RetireSlot{Unserved: c.Has("unserved")}
	case "giveup":
		return giveUp{}
	}
	t.Fatalf("script: unknown command %q", c.Name)
	return nil
}

func (m *machine) claim(c script.Command) *msg.ClaimSlot {
	kind := msg.Dedicated
	if k, ok := c.Opts["kind"]; ok {
		kind = msg.ProviderKind(k)
	}
	who := c.Arg(0)
	return &msg.ClaimSlot{
		Slot: "s", Claimant: m.ref(who), Conduit: &conduit{who}, Kind: kind,
		Principal: c.Opts["principal"], Aggregate: c.Has("aggregate"),
	}
}

func (m *machine) call(t *testing.T, c script.Command) *msg.ClientCall {
	who, text := c.Arg(0), c.Body
	if method := c.Arg(1); method != "" {
		text = request(c.Opts["id"], method, c.Body)
	}
	m.calls[who]++
	call := &msg.ClientCall{Session: session(t, who), Client: m.ref(who), Call: m.calls[who], Frame: mustScan(text), Trace: trace, Timed: c.Opts["timed"] == "true"}
	if behind := c.Number(t, "for"); behind != 0 {
		call.For = &msg.Origin{Session: uint64(behind), Can: mcp.DeclaredBy([]byte(`{"capabilities":{"` + c.Opts["can"] + `":{}}}`))}
	}
	return call
}

// sentAs is how scripts speak of a frame to a provider.
func sentAs(frame []byte) string {
	f := mustScan(string(frame))
	if id, ok := wire.ParseBrokerID(f.Raw(f.ID)); ok {
		return fmt.Sprint(id)
	}
	return "note"
}

// frames are those a script speaks of.
func (m *machine) frames(t *testing.T, names string) (frames [][]byte) {
	for name := range strings.SplitSeq(names, ",") {
		switch frame := m.sent[name]; {
		case frame != nil:
			frames = append(frames, frame)
		case name != "":
			t.Fatalf("script: no provider was sent %q", name)
		}
	}
	return frames
}

var kinds = map[string]msg.ClientKind{"ws": msg.WebSocketClient, "stdio": msg.StdioClient, "broker": msg.BrokerClient}

func (m *machine) refusal(t *testing.T, c script.Command) any {
	why, err := strconv.Unquote(c.Body)
	if err != nil {
		t.Fatalf("script: a refusal says why: %v", err)
	}
	return &msg.ProviderRefusal{
		Gen: m.gen(t, c, m.gens), ID: wire.AppendBrokerID(nil, uint64(c.Number(t, "id"))),
		Err: &wire.Error{Code: wire.CodeUnavailable, Message: why, Busy: c.Has("busy")}, Credit: m.credit(c.Arg(0)),
	}
}

// credit is of the next frame of a provider.
func (m *machine) credit(who string) *credit {
	m.frame[who]++
	return &credit{fmt.Sprintf("%s/%d", who, m.frame[who])}
}

// providerFrame scans as a socket's reader does.
func (m *machine) providerFrame(t *testing.T, c script.Command) any {
	gen, give := m.gen(t, c, m.gens), m.credit(c.Arg(0))
	text := []byte(c.Body)
	if junk, err := strconv.Unquote(c.Body); err == nil && !c.Has("verbatim") {
		text = []byte(junk)
	}
	f, err := wire.Scan(text)
	if err != nil {
		return &msg.ProviderJunk{Gen: gen, Head: wire.Preview(text), Credit: give}
	}
	return &msg.ProviderFrame{Gen: gen, Frame: f, Credit: give}
}
