package registry

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/internal/script"
)

var update = flag.Bool("update", false, "rewrite the scripts in testdata to what came out")

// TestScripts plays the scripts in testdata. Each begins with "config maxslots=2".
// What peers send: join SLOT c1, claim SLOT p1 aggregate, withdraw SLOT p1. What
// slots report: changed SLOT sessions=1 pending=1 connected aggregate expected idle, retired
// SLOT gone, failing SLOT, died SLOT, left SLOT c1 (a session that never came to know its
// slot). The broker's own: hold SLOT r1, release SLOT r1, watch w1 slot=a, unwatch w1, own SLOT o1,
// disown SLOT o1, expect SLOT o1. Besides: tick 1s, inventory, lookup SLOT. A slot whose name is empty or
// has spaces is given at the end of the line: join by=c1 "name".
func TestScripts(t *testing.T) {
	script.Run(t, "testdata/*.txt", *update, func() script.Interpreter { return (&machine{now: time.Unix(1_000_000, 0)}).run })
}

type ref struct{ name string }

func (*ref) Send(any) { panic("a core must not send") }

// refNamed returns the one ref of that name: owners are compared.
var refNamed = func() func(name string) *ref {
	refs := map[string]*ref{}
	return func(name string) *ref {
		if refs[name] == nil {
			refs[name] = &ref{name}
		}
		return refs[name]
	}
}()

type machine struct {
	state *State
	now   time.Time
}

func (m *machine) run(t *testing.T, c script.Command) []string {
	slot := c.Arg(0)
	if c.Body != "" {
		slot, _ = strconv.Unquote(c.Body)
	}
	switch c.Name {
	case "config":
		m.state = New(Config{MaxSlots: c.Number(t, "maxslots")})
		return nil
	case "tick":
		m.now = m.now.Add(script.ParseDuration(t, c.Arg(0)))
		return nil
	case "inventory":
		return m.inventory()
	case "lookup":
		return []string{fmt.Sprint(m.state.Lookup(slot) != nil)}
	}
	return effects(m.state.Step(m.now, message(t, c, slot)))
}

func message(t *testing.T, c script.Command, slot string) any {
	name := c.Arg(1)
	if by, ok := c.Opts["by"]; ok {
		name = by
	}
	who := refNamed(name)
	switch c.Name {
	case "join":
		return &msg.JoinSlot{Slot: slot, Client: who}
	case "claim":
		return &msg.ClaimSlot{Slot: slot, Claimant: who, Kind: msg.Multiplexed, Aggregate: c.Has("aggregate")}
	case "withdraw":
		return &msg.WithdrawClaim{Slot: slot, Claimant: who}
	case "left":
		return &msg.LeaveSlot{Slot: slot, Session: 1}
	case "changed":
		info := msg.SlotInfo{
			Name: slot, Transport: msg.NoProvider, Expected: c.Has("expected"),
			SessionCount: c.Number(t, "sessions"), PendingCount: c.Number(t, "pending"),
		}
		if c.Has("connected") {
			info.Transport, info.Connected, info.Aggregate = msg.Dedicated, true, c.Has("aggregate")
		}
		if c.Has("idle") {
			info.IdleSince = time.Unix(1, 0)
		}
		return &msg.SlotChanged{Info: info}
	case "hold":
		return &msg.HoldReserved{Slot: slot, Ref: who}
	case "own":
		return &msg.OwnSlot{Slot: slot, Owner: who}
	case "disown":
		return &msg.DisownSlot{Slot: slot, Owner: who}
	case "expect":
		return &msg.HolderExpected{Slot: slot, Owner: who}
	case "release":
		return &msg.ReleaseSlot{Slot: slot, Ref: who}
	case "watch":
		return &msg.WatchSlots{Watcher: refNamed(c.Arg(0)), Slot: c.Opts["slot"]}
	case "unwatch":
		return &msg.UnwatchSlots{Watcher: refNamed(c.Arg(0))}
	case "retired":
		return &msg.SlotRetired{Name: slot, Gone: c.Has("gone")}
	case "failing":
		return &msg.SlotFailing{Name: slot}
	case "died":
		return &msg.SlotDied{Name: slot}
	}
	t.Fatalf("script: unknown command %q", c.Name)
	return nil
}

func (m *machine) inventory() []string {
	var lines []string
	for _, i := range m.state.Inventory() {
		lines = append(lines, fmt.Sprintf("%q %s connected=%v aggregate=%v sessions=%d pending=%d",
			i.Name, i.Transport, i.Connected, i.Aggregate, i.SessionCount, i.PendingCount))
	}
	return lines
}

func effects(list []Effect) []string {
	var lines []string
	for i := range list {
		switch e := &list[i]; {
		case e.Create != nil:
			lines = append(lines, fmt.Sprintf("create %q", e.Create.Name))
		case e.Stop != nil:
			lines = append(lines, fmt.Sprintf("stop %q", e.Stop.Name))
		case e.To != nil:
			lines = append(lines, fmt.Sprintf("slot %q <- %s", e.To.Name, text(e.Message)))
		default:
			lines = append(lines, e.Direct.(*ref).name+" <- "+text(e.Message))
		}
	}
	return lines
}

func text(message any) string {
	switch m := message.(type) {
	case *msg.JoinSlot:
		return "join of " + m.Client.(*ref).name
	case *msg.ClaimSlot:
		return strings.TrimSuffix(fmt.Sprintf("claim of %s aggregate=%v", m.Claimant.(*ref).name, m.Aggregate), " aggregate=false")
	case *msg.WithdrawClaim:
		return "withdrawal of " + m.Claimant.(*ref).name
	case *msg.LeaveSlot:
		return fmt.Sprintf("session %d leaves", m.Session)
	case *msg.RetireSlot:
		if m.Unserved {
			return "retire, though clients wait"
		}
		return "retire"
	case *msg.OwnSlot:
		return "owned by " + m.Owner.(*ref).name
	case *msg.SlotReplaced:
		return "your slot was replaced: " + m.Slot
	case *msg.DisownSlot:
		return "disowned by " + m.Owner.(*ref).name
	case *msg.HolderExpected:
		return m.Owner.(*ref).name + " is expected"
	case *msg.SlotObserved:
		return strings.TrimSuffix(fmt.Sprintf("observed %q connected=%v expected=%v", m.Info.Name, m.Info.Connected, m.Info.Expected), " expected=false")
	case *msg.SlotForgotten:
		return fmt.Sprintf("forgotten %q", m.Name)
	case *msg.JoinRefused:
		return fmt.Sprintf("join refused %d %s", m.Err.Code, m.Err.Message)
	case *msg.ClaimRefused:
		return fmt.Sprintf("claim refused %d %s | close: %s | log: %s", m.Err.Code, m.Err.Message, m.CloseReason, m.LogLead)
	}
	return fmt.Sprintf("%T", message)
}
