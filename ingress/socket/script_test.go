package socket

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
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

// TestScripts plays the scripts in testdata. Each begins with the kind of socket,
// whose slots are actors named after them:
//
//	dedicated slot=s heartbeat=30s provider=/provider providers=/providers
//	multiplexed heartbeat=0
//
// From the peer: frame {...} or frame "text or \xff", pong sweep=1. From slots:
// grant s gen=1, refuse s, ask s gen=1, evict s gen=1 failed. Besides: tick 30s
// (the timer is delivered when due), heartbeat sweep=1, close 1001 text, slow,
// slow stuck=10s, closed how, closed fault=... toobig=64, release.
func TestScripts(t *testing.T) {
	script.Run(t, "testdata/*.txt", *update, func() script.Interpreter { return (&machine{now: time.Unix(1_000_000, 0)}).run })
}

// ref is an actor by name; refs are compared by it.
type ref struct{ name string }

func (ref) Send(any) { panic("a core must not send") }

type conduit struct{ slot string }

func (conduit) Send([]byte, mcp.Class) bool { panic("a core must not send") }

type credit struct{ n int }

func (*credit) Give() { panic("a core must not give credits back") }

// machine is a socket with the shell's part played by hand.
type machine struct {
	core   core
	link   *link
	reader Actor // only its scan is used
	frames int

	now   time.Time
	timer time.Time // zero while not armed
	sweep uint64
	last  uint64 // sweep of the last ping
}

func (m *machine) run(t *testing.T, c script.Command) []string {
	switch {
	case c.Name == "dedicated" || c.Name == "multiplexed":
		return m.open(t, c)
	case m.core == nil:
		t.Fatal("a script begins with the kind of socket")
	case c.Name == "tick":
		return m.tick(script.ParseDuration(t, c.Arg(0)))
	}
	return m.step(m.message(t, c))
}

func (m *machine) open(t *testing.T, c script.Command) []string {
	cfg := Config{Heartbeat: 30 * time.Second, Provider: "/provider", Providers: "/providers"}
	if _, ok := c.Opts["heartbeat"]; ok {
		cfg.Heartbeat = c.Duration(t, "heartbeat")
	}
	if path, ok := c.Opts["provider"]; ok {
		cfg.Provider, cfg.Providers = path, c.Opts["providers"]
	}
	if c.Name == "dedicated" {
		slot := c.Opts["slot"]
		if c.Body != "" {
			slot, _ = strconv.Unquote(c.Body)
		}
		d := newDedicated(cfg, ref{"registry"}, slot)
		m.core, m.link = d, &d.link
	} else {
		x := newMultiplexed(cfg, ref{"registry"}, func(slot string) msg.Conduit { return conduit{slot} })
		m.core, m.link, m.reader.envelope = x, &x.link, true
	}
	m.link.self = ref{"socket"}
	m.link.begin()
	m.link.start()
	return m.perform(m.link.effects)
}

func (m *machine) step(message any) []string { return m.perform(m.core.Step(m.now, message)) }

func (m *machine) tick(d time.Duration) []string {
	var lines []string
	end := m.now.Add(d)
	for !m.timer.IsZero() && !m.timer.After(end) {
		m.now, m.timer = m.timer, time.Time{}
		lines = append(lines, m.step(&msg.HeartbeatDue{Sweep: m.sweep})...)
	}
	m.now = end
	return lines
}

// perform arms the timer and renders effects one a line.
func (m *machine) perform(effects []Effect) []string {
	lines := make([]string, len(effects))
	for i := range effects {
		e := &effects[i]
		if e.Wake > 0 {
			m.timer, m.sweep = m.now.Add(e.Wake), e.Sweep
		}
		if e.Ping {
			m.last = e.Sweep
		}
		lines[i] = effectText(e)
	}
	return lines
}

func effectText(e *Effect) string {
	switch {
	case e.To != nil:
		return e.To.(ref).name + " <- " + messageText(e.Message)
	case e.Frame != nil:
		return "write " + string(e.Frame)
	case e.Credit != nil:
		return fmt.Sprintf("credit %d", e.Credit.(*credit).n)
	case e.Log != "":
		return map[slog.Level]string{slog.LevelWarn: "warn: ", slog.LevelError: "error: "}[e.Level] + e.Log
	case e.Close:
		return fmt.Sprintf("close %d %s", e.Code, e.Reason)
	case e.Terminate:
		return "terminate"
	case e.Ping:
		return fmt.Sprintf("ping #%d", e.Sweep)
	}
	return fmt.Sprintf("wake #%d in %v", e.Sweep, e.Wake)
}

func messageText(message any) string {
	switch m := message.(type) {
	case *msg.ClaimSlot:
		text := fmt.Sprintf("claim %q for %s as %s through %q", m.Slot, m.Claimant.(ref).name, m.Kind, m.Conduit.(conduit).slot)
		if m.Aggregate {
			text += " aggregate"
		}
		return text
	case *msg.WithdrawClaim:
		return fmt.Sprintf("withdraw %q of %s", m.Slot, m.Claimant.(ref).name)
	case *msg.ProviderFrame:
		return fmt.Sprintf("frame gen=%d credit %d %s", m.Gen, m.Credit.(*credit).n, m.Frame.Bytes)
	case *msg.ProviderJunk:
		return fmt.Sprintf("junk gen=%d credit %d %s", m.Gen, m.Credit.(*credit).n, m.Head)
	case *msg.ProviderGone:
		text := fmt.Sprintf("gone gen=%d", m.Gen)
		if m.Why != nil {
			text += " why " + m.Why.Message
		}
		return text
	case *msg.LivenessReport:
		return fmt.Sprintf("report gen=%d open=%v outstanding=%v", m.Gen, m.Open, m.Outstanding)
	}
	return fmt.Sprintf("%T", message)
}

func (m *machine) message(t *testing.T, c script.Command) any {
	slot := c.Arg(0)
	gen, sweep := uint64(c.Number(t, "gen")), uint64(c.Number(t, "sweep"))
	switch c.Name {
	case "frame":
		m.frames++
		text := c.Body
		if raw, err := strconv.Unquote(c.Body); err == nil {
			text = raw
		}
		return m.reader.scan([]byte(text), &credit{m.frames})
	case "grant":
		return &msg.ClaimGranted{Slot: slot, Ref: ref{"slot " + slot}, Gen: gen}
	case "refuse":
		err := wire.NotConnected(slot)
		return &msg.ClaimRefused{Slot: slot, Err: err, CloseReason: "reason of " + slot, LogLead: "because of " + slot}
	case "ask":
		return &msg.LivenessAsked{Slot: slot, Gen: gen}
	case "evict":
		return &msg.EvictHolder{Slot: slot, Gen: gen, Failed: c.Has("failed")}
	case "pong":
		if sweep == 0 {
			sweep = m.last
		}
		return &msg.Ponged{Sweep: sweep}
	case "heartbeat":
		return &msg.HeartbeatDue{Sweep: sweep}
	case "close":
		code, _ := strconv.Atoi(c.Arg(0))
		return &msg.CloseSocket{Code: code, Reason: strings.Join(c.Args[1:], " ")}
	case "slow":
		if text, ok := c.Opts["stuck"]; ok {
			return &msg.PeerTooSlow{Stuck: script.ParseDuration(t, text)}
		}
		return &msg.PeerTooSlow{}
	case "closed":
		m := &msg.SocketClosed{How: strings.Join(c.Args, " ")}
		if text, ok := c.Opts["fault"]; ok {
			m.Fault = errors.New(text)
		}
		m.TooBig, _ = strconv.Atoi(c.Opts["toobig"])
		return m
	case "release":
		return released{}
	}
	t.Fatalf("script: unknown command %q", c.Name)
	return nil
}
