package upstreams

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"path/filepath"
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
//	config tool=echo args={"a":1} interval=30s timeout=10s threshold=3 maxrestarts=2 aggregate
//	config watch tool=echo           a slot whose provider comes by itself
//	config first=30s quick=5 slow=5m minuptime=60s starttimeout=60s grace=5s
//	config kind=sse off              a remote; without checks
//
// The defaults are those of the broker. Then, in any order:
//
//	start                            the actor runs
//	joined | lost | unjoinable       our session on the slot
//	replaced                         another slot stands in the place of ours
//	opened gen=1                     the driver has a connection; gen defaults to the present one
//	ended gen=1 denied tail=a,b "why"
//	ended unsent=a,b "why"           frames that were never written
//	said gen=1 "line"                on stderr
//	detected gen=1 sse               another transport than the configured one
//	granted gen=5 | refused "why"    of the slot; refused held: another provider has it
//	refused stale "why"              for the connection before the present one
//	free                             the slot that another provider had
//	granted stale                    for the connection before the present one
//	evicted gen=5 | liveness gen=5
//	reply call=1 {...}               to our request; call defaults to the last one
//	failed call=1 busy "why"
//	retune ...                       another config for the same connection
//	ask id=7                         a request of the server
//	seen gen=3 | unseen | forgotten  the registry's word on the slot
//	restart | halt handover          by an operator, by the set
//	halt now                         by a broker that stops
//	drained gen=5                    no call of a client is in flight any more
//	ready                            joined, opened, granted and a welcome, in short
//	pass                             the timer, and a check that passes
//	tick 30s                         time passes and the timer is delivered when due
//	timer gen=1 | describe | events
func TestScripts(t *testing.T) {
	used, usedWatched := noteRules(t, rules), noteRules(t, watchedRules)
	played := 0
	script.Run(t, "testdata/*.txt", *update, func() script.Interpreter {
		played++
		return (&machine{}).run
	})
	if all, _ := filepath.Glob("testdata/*.txt"); played < len(all) {
		return
	}
	checkUsed(t, rules, used)
	checkUsed(t, watchedRules, usedWatched)
}

func checkUsed(t *testing.T, rules []rule, used []bool) {
	t.Helper()
	for i, r := range rules {
		if !used[i] {
			t.Errorf("no script has a %s that is %s", r.from, r.on)
		}
	}
}

// noteRules notes which rows of a table are played.
func noteRules(t *testing.T, rules []rule) []bool {
	used := make([]bool, len(rules))
	before := append([]rule(nil), rules...)
	t.Cleanup(func() { copy(rules, before) })
	for i := range rules {
		do := rules[i].do
		rules[i].do = func(s *State, now time.Time, n news) {
			used[i] = true
			if do != nil {
				do(s, now, n)
			}
		}
	}
	return used
}

var epoch = time.Unix(1_000_000, 0).UTC()

// ref is an actor's address by name. Effects are never performed.
type ref struct{ name string }

func (*ref) Send(any) { panic("a core must not send") }

// driver is a connection by its generation.
type driver struct{ gen uint64 }

func (*driver) Send([]byte, mcp.Class) bool { panic("a core must not send") }
func (*driver) Attach(msg.Ref, uint64)      { panic("a core must not attach") }
func (*driver) Stop(time.Duration)          { panic("a core must not stop a driver") }

// machine is an upstream with the shell's part played by hand.
type machine struct {
	state    *State
	now      time.Time
	timerAt  time.Time // zero while no timer is armed
	timerGen uint64
	grants   uint64
	halts    map[chan<- struct{}]int
}

func newMachine(cfg Config) *machine {
	cfg.Slot = "s"
	m := &machine{state: New(cfg, `{"name":"broker"}`, 9), now: epoch, halts: map[chan<- struct{}]int{}}
	m.state.self, m.state.registry = &ref{"self"}, &ref{"registry"}
	return m
}

func (m *machine) configure(t *testing.T, c script.Command) {
	*m = *newMachine(config(t, c))
}

func config(t *testing.T, c script.Command) Config {
	cfg := Config{
		Slot: "s", Kind: c.Opts["kind"], Grace: 5 * time.Second, Isolated: c.Has("isolated"),
		Aggregate: c.Has("aggregate"), Watch: c.Has("watch"), MaxRestarts: c.Number(t, "maxrestarts"),
		MinUptime: c.Duration(t, "minuptime"), StartTimeout: c.Duration(t, "starttimeout"),
		Schedule: Schedule{First: c.Duration(t, "first"), Quick: c.Number(t, "quick"), Slow: c.Duration(t, "slow")},
		Health: Health{
			Off: c.Has("off"), Tool: c.Opts["tool"], Args: c.Opts["args"], Threshold: c.Number(t, "threshold"),
			Interval: c.Duration(t, "interval"), Timeout: c.Duration(t, "timeout"),
		},
	}
	if _, given := c.Opts["grace"]; given {
		cfg.Grace = c.Duration(t, "grace")
	}
	return cfg
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
	case c.Name == "events":
		return m.events()
	case c.Name == "ready":
		m.play(t, "joined", "opened pid=42", "granted", welcome)
		return nil
	case c.Name == "pass":
		m.tick(0)
		m.play(t, `reply {"jsonrpc":"2.0","id":1,"result":{}}`)
		return nil
	}
	return m.step(m.message(t, c))
}

const welcome = `reply {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}`

// play runs commands whose effects are shown elsewhere.
func (m *machine) play(t *testing.T, lines ...string) {
	for _, line := range lines {
		m.run(t, script.Parse(line))
	}
}

func (m *machine) step(message any) []string {
	before := m.state.phase
	effects := m.state.Step(m.now, message)
	var lines []string
	if m.state.phase != before {
		lines = append(lines, fmt.Sprintf("%s -> %s", before, m.state.phase))
	}
	for i := range effects {
		e := &effects[i]
		if e.WakeGen != 0 {
			m.timerAt, m.timerGen = m.now.Add(e.Wake), e.WakeGen
		}
		lines = append(lines, m.effectText(e))
	}
	return lines
}

// tick lets time pass, delivering the armed timer as the shell would.
func (m *machine) tick(d time.Duration) []string {
	var lines []string
	end := m.now.Add(d)
	for !m.timerAt.IsZero() && !m.timerAt.After(end) {
		m.now, m.timerAt = m.timerAt, time.Time{}
		lines = append(lines, fmt.Sprintf("timer #%d at %v", m.timerGen, m.now.Sub(epoch)))
		lines = append(lines, m.step(timerDue{m.timerGen})...)
	}
	m.now = end
	return lines
}

func (m *machine) message(t *testing.T, c script.Command) any {
	gen := func(otherwise uint64) uint64 {
		if _, given := c.Opts["gen"]; given {
			return uint64(c.Number(t, "gen"))
		}
		return otherwise
	}
	call := m.state.lastCall
	if _, given := c.Opts["call"]; given {
		call = uint64(c.Number(t, "call"))
	}
	s := m.state
	switch c.Name {
	case "start":
		return started{}
	case "joined":
		return &msg.SlotJoined{Ref: &ref{"slot"}, Session: 9}
	case "lost":
		return &msg.SlotLost{}
	case "replaced":
		return &msg.SlotReplaced{Slot: "s"}
	case "unjoinable":
		return &msg.JoinRefused{Err: wire.TooManySlots("s", 1)}
	case "opened":
		g := gen(s.gen)
		return &msg.UpstreamOpened{Gen: g, Driver: &driver{g}, PID: c.Number(t, "pid"), Mask: func(text string) string { return strings.ReplaceAll(text, "s3cret", "***") }}
	case "ended":
		return &msg.UpstreamEnded{Gen: gen(s.gen), Err: failure(t, c), Exit: strings.ReplaceAll(c.Opts["exit"], "_", " "), Tail: words(c, "tail"), Denied: c.Has("denied"), Unsent: unsent(c)}
	case "said":
		return &msg.UpstreamSaid{Gen: gen(s.gen), Line: body(t, c), Stray: c.Has("stray")}
	case "detected":
		return &msg.UpstreamDetected{Gen: gen(s.gen), Transport: c.Arg(0)}
	case "granted":
		m.grants++
		granted := &msg.ClaimGranted{Slot: "s", Ref: &ref{"slot"}, Gen: gen(m.grants), Conduit: s.driver}
		if c.Has("stale") {
			granted.Conduit = &driver{}
		}
		return granted
	case "refused":
		refused := &msg.ClaimRefused{Slot: "s", Conduit: s.driver, Held: c.Has("held"), Err: &wire.Error{Code: wire.CodeUnavailable, Message: body(t, c)}}
		if c.Has("stale") {
			refused.Conduit = &driver{}
		}
		return refused
	case "free":
		return &msg.SlotFree{Slot: "s"}
	case "retune":
		return &retune{config(t, c)}
	case "drained":
		return &msg.ProviderDrained{Gen: gen(s.slotGen)}
	case "evicted":
		return &msg.EvictHolder{Slot: "s", Gen: gen(s.slotGen), Failed: true}
	case "liveness":
		return &msg.LivenessAsked{Slot: "s", Gen: gen(s.slotGen), Asker: &ref{"slot"}}
	case "reply":
		return &msg.CallReply{Call: call, Frame: []byte(c.Body)}
	case "failed":
		return &msg.CallFailed{Call: call, Err: &wire.Error{Code: wire.CodeUnavailable, Message: body(t, c), Busy: c.Has("busy")}}
	case "ask":
		return &msg.ClientAsk{ID: uint64(c.Number(t, "id"))}
	case "restart":
		return &msg.RestartInstance{}
	case "halt":
		done := make(chan struct{})
		m.halts[done] = len(m.halts) + 1
		return haltNow{done: done, handover: c.Has("handover"), atOnce: c.Has("now")}
	case "seen":
		gen := c.Number(t, "gen")
		return &msg.SlotObserved{Info: msg.SlotInfo{Name: "s", Connected: true, Gen: uint64(gen), ConnectedSince: epoch}}
	case "unseen":
		return &msg.SlotObserved{Info: msg.SlotInfo{Name: "s"}}
	case "forgotten":
		return &msg.SlotForgotten{Name: "s"}
	case "timer":
		return timerDue{uint64(c.Number(t, "gen"))}
	}
	t.Fatalf("script: unknown command %q", c.Name)
	return nil
}

func body(t *testing.T, c script.Command) string {
	text, err := strconv.Unquote(c.Body)
	if err != nil {
		t.Fatalf("script: %s needs a quoted string at its end", c.Name)
	}
	return text
}

func failure(t *testing.T, c script.Command) error {
	if c.Body == "" {
		return nil
	}
	text := body(t, c)
	if c.Has("unresolved") {
		return fmt.Errorf("%s: %w", text, msg.ErrUnresolved)
	}
	return errors.New(text)
}

func words(c script.Command, option string) []string {
	if c.Opts[option] == "" {
		return nil
	}
	return strings.Split(c.Opts[option], ",")
}

func unsent(c script.Command) (frames [][]byte) {
	for _, word := range words(c, "unsent") {
		frames = append(frames, []byte(word))
	}
	return frames
}

func (m *machine) effectText(e *Effect) string {
	switch {
	case e.To != nil:
		return e.To.(*ref).name + " <- " + messageText(e.Message)
	case e.Start != 0:
		return fmt.Sprintf("start driver %d", e.Start)
	case e.Cancel && e.Stray:
		return "give up the start once more"
	case e.Cancel:
		return "give up the start"
	case e.Driver != nil && e.Slot != nil:
		return fmt.Sprintf("attach driver %d to %s gen=%d", e.Driver.(*driver).gen, e.Slot.(*ref).name, e.Gen)
	case e.Driver != nil && e.Stray:
		return fmt.Sprintf("kill driver %d, which is nobody's", e.Driver.(*driver).gen)
	case e.Driver != nil:
		return fmt.Sprintf("stop driver %d within %v", e.Driver.(*driver).gen, e.Grace)
	case e.Log != "":
		return strings.ToLower(slog.Level.String(e.Level)) + ": " + e.Log
	case e.WakeGen != 0:
		return fmt.Sprintf("wake #%d in %v", e.WakeGen, e.Wake)
	case e.Done != nil:
		return fmt.Sprintf("halt %d is done", m.halts[e.Done])
	case e.Stop:
		return "the actor ends"
	}
	return "nothing"
}

func messageText(message any) string {
	switch m := message.(type) {
	case *msg.OwnSlot:
		return "own " + m.Slot
	case *msg.WatchSlots:
		return "watch the slots"
	case *msg.DisownSlot:
		return "disown " + m.Slot
	case *msg.JoinSlot:
		return fmt.Sprintf("join %s as session %d", m.Slot, m.Session)
	case *msg.LeaveSlot:
		return fmt.Sprintf("session %d leaves", m.Session)
	case *msg.HolderExpected:
		return "a holder is expected"
	case *msg.HolderFailed:
		return "no holder: " + m.Err.Message
	case *msg.ClaimSlot:
		text := fmt.Sprintf("claim %s for driver %d", m.Slot, m.Conduit.(*driver).gen)
		if m.Aggregate {
			text += ", aggregate"
		}
		return text
	case *msg.ProviderGone:
		text := fmt.Sprintf("the provider of gen=%d is gone", m.Gen)
		if m.Final {
			text += " for good"
		}
		if m.Why != nil {
			text += ": " + m.Why.Message
		}
		if len(m.Unsent) > 0 {
			text += fmt.Sprintf("; it never got %s", m.Unsent)
		}
		return text
	case *msg.DrainProvider:
		return fmt.Sprintf("drain gen=%d for %s", m.Gen, m.Owner.(*ref).name)
	case *msg.LivenessReport:
		return fmt.Sprintf("gen=%d open=%t", m.Gen, m.Open)
	case *msg.ClientCall:
		return fmt.Sprintf("call #%d %s", m.Call, m.Frame.Bytes)
	case *msg.ClientNote:
		return fmt.Sprintf("note %s", m.Frame.Bytes)
	case *msg.CallerLate:
		return fmt.Sprintf("call #%d is late", m.Call)
	case *privateFailed:
		return "the process of the session failed"
	case *privateServes:
		return "the process of the session is up"
	case *msg.CallerLeft:
		return fmt.Sprintf("nobody waits for call #%d", m.Call)
	case *msg.AskUndeliverable:
		return fmt.Sprintf("brk-%d cannot be asked", m.ID)
	}
	return fmt.Sprintf("%T", message)
}

// describe shows what operators see, in one line and the tail.
func (m *machine) describe() []string {
	d := m.state.Describe()
	text := fmt.Sprintf("%s by %s, restarts=%d attempt=%d", d.Verdict, d.Check, d.Restarts, d.Attempt)
	if d.Kind != "" {
		text += " kind=" + d.Kind
	}
	if d.PID != 0 {
		text += fmt.Sprintf(" pid=%d", d.PID)
	}
	for _, at := range []struct {
		name string
		time time.Time
	}{{"since", d.Since}, {"last", d.LastAttempt}, {"next", d.NextRetry}} {
		if !at.time.IsZero() {
			text += fmt.Sprintf(" %s=%v", at.name, at.time.Sub(epoch))
		}
	}
	for _, flag := range []struct {
		name string
		set  bool
	}{{"unresolved", d.Unresolved}, {"denied", d.Denied}, {"gave-up", d.GaveUp}, {"crash-loop", d.CrashLoop}, {"unremedied", d.Unremedied}, {"tool-missing", d.ToolMissing}} {
		if flag.set {
			text += " " + flag.name
		}
	}
	if d.Cause != "" {
		text += " cause=" + string(d.Cause)
	}
	if d.Error != "" {
		text += ": " + d.Error
	}
	lines := []string{text}
	for _, line := range d.Tail {
		lines = append(lines, "stderr: "+line)
	}
	return lines
}

func (m *machine) events() []string {
	var lines []string
	for _, e := range m.state.Describe().Events {
		lines = append(lines, fmt.Sprintf("%v %s", e.At.Sub(epoch), e.Text))
	}
	return lines
}
