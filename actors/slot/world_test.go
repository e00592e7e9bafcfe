package slot

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// trace is the trace context every call of a test brings; effects show it as
// $TRACE.
const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// epoch is when every script begins.
var epoch = time.Unix(1_000_000, 0)

// ref is an actor's address by name. Effects are never performed, so nothing is
// ever sent to it.
type ref struct{ name string }

func (*ref) Send(any) { panic("a core must not send") }

// conduit is a provider's by name.
type conduit struct{ name string }

func (*conduit) Send([]byte, mcp.Class) bool { panic("a core must not send") }

// credit is of one frame of a provider.
type credit struct{ name string }

func (*credit) Give() { panic("a core must not give credits back") }

// mustScan returns a frame out of text that must be valid.
func mustScan(text string) wire.Frame {
	f, err := wire.Scan([]byte(text))
	if err != nil {
		panic(fmt.Sprintf("scan %s: %v", text, err))
	}
	return f
}

func request(id, method, params string) string {
	text := `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `"`
	if params != "" {
		text += `,"params":` + params
	}
	return text + "}"
}

// describe renders effects one a line. Only the recipients of one broadcast,
// whose order is not defined, are sorted.
func describe(s *State, effects []Effect) []string {
	lines := make([]string, len(effects))
	for i := range effects {
		lines[i] = strings.ReplaceAll(effectText(s, &effects[i]), trace, "$TRACE")
	}
	for from := 0; from < len(effects); {
		to := from + 1
		for to < len(effects) && sameBroadcast(&effects[from], &effects[to]) {
			to++
		}
		slices.Sort(lines[from:to])
		from = to
	}
	return lines
}

func sameBroadcast(a, b *Effect) bool {
	if note, ok := a.Message.(*msg.Notify); ok {
		return b.Message == note
	}
	_, lost := a.Message.(*msg.SlotLost)
	_, lostToo := b.Message.(*msg.SlotLost)
	return lost && lostToo
}

func effectText(s *State, e *Effect) string {
	switch {
	case e.To != nil:
		return e.To.(*ref).name + " <- " + messageText(e.Message)
	case e.Conduit != nil:
		return fmt.Sprintf("%s << %s%s", e.Conduit.(*conduit).name, e.Frame, classText(e.Class))
	case e.Credit != nil:
		return "credit " + e.Credit.(*credit).name
	case e.WakeGen != 0:
		return fmt.Sprintf("wake #%d in %v", e.WakeGen, e.Wake)
	case e.Changed && e.Asked:
		return "kept " + infoText(s.Info())
	case e.Changed:
		return "changed " + infoText(s.Info())
	case e.Failing:
		return "failing"
	case e.Retired:
		return "retired"
	}
	return strings.ToLower(e.Level.String()) + ": " + e.Log
}

func classText(c mcp.Class) string {
	return map[mcp.Class]string{mcp.Required: "", mcp.Coalesced: " (coalesced)", mcp.Droppable: " (droppable)"}[c]
}

func messageText(message any) string {
	switch m := message.(type) {
	case *msg.ClaimGranted:
		return fmt.Sprintf("granted gen=%d", m.Gen)
	case *msg.ClaimRefused:
		text := fmt.Sprintf("refused %d %s | close: %s", m.Err.Code, m.Err.Message, m.CloseReason)
		if m.LogLead == m.Err.Message {
			return text
		}
		return text + " | log: " + m.LogLead
	case *msg.LivenessAsked:
		return fmt.Sprintf("asked for liveness gen=%d", m.Gen)
	case *msg.EvictHolder:
		if m.Failed {
			return fmt.Sprintf("evicted gen=%d, the slot failed", m.Gen)
		}
		return fmt.Sprintf("evicted gen=%d", m.Gen)
	case *msg.ProviderDrained:
		return fmt.Sprintf("drained gen=%d", m.Gen)
	case *msg.SlotFree:
		return "the slot is free"
	case *msg.SlotJoined:
		return "joined"
	case *msg.JoinRefused:
		return fmt.Sprintf("join refused %d %s", m.Err.Code, m.Err.Message)
	case *msg.CallReply:
		return fmt.Sprintf("reply #%d %s", m.Call, m.Frame)
	case *msg.CallFailed:
		text := fmt.Sprintf("failed #%d %d %s", m.Call, m.Err.Code, m.Err.Message)
		if m.Err.Busy {
			text += " (busy)"
		}
		return text
	case *msg.CallProgress:
		return fmt.Sprintf("progress #%d %s", m.Call, m.Frame)
	case *msg.Notify:
		key := ""
		if m.Key != "" {
			key = " key=" + m.Key
		}
		return fmt.Sprintf("notify %s%s%s", m.Frame, classText(m.Class), key)
	case *msg.ClientAsk:
		return fmt.Sprintf("asked brk-%d for #%d %s", m.ID, m.Call, m.Frame)
	case *msg.AskCancelled:
		return fmt.Sprintf("ask cancelled for #%d %s", m.Call, m.Frame)
	case *msg.SlotLost:
		return "slot lost"
	case *msg.EndSession:
		return "end session: " + m.Why
	case *msg.IdleEnded:
		return fmt.Sprintf("idle ended: %v", m.Ended)
	}
	return fmt.Sprintf("%T", message)
}

func infoText(i msg.SlotInfo) string {
	text := string(i.Transport)
	if i.Connected {
		text += fmt.Sprintf(" connected since %v", i.ConnectedSince.Sub(epoch))
	}
	if i.Expected {
		text += " expected"
	}
	if i.Aggregate {
		text += " aggregate"
	}
	if i.ClientCount+i.OtherCount > 0 {
		text += fmt.Sprintf(" sockets=%d stdio=%d", i.ClientCount, i.OtherCount)
	}
	text += fmt.Sprintf(" sessions=%d pending=%d", i.SessionCount, i.PendingCount)
	if i.SubscriptionCount > 0 {
		text += fmt.Sprintf(" subscriptions=%d", i.SubscriptionCount)
	}
	return text
}

// subText describes a subscription but for what the messages in its queue say.
func subText(sub *subscription) string {
	state := map[subscriptionState]string{inactive: "inactive", subscribing: "subscribing", active: "active", unsubscribing: "unsubscribing"}[sub.state]
	text := fmt.Sprintf("%s %s", sub.uri, state)
	if sub.upstream != 0 {
		text += fmt.Sprintf(" by brk-%d", sub.upstream)
	}
	text += fmt.Sprintf(" for %v", sub.subscribers)
	for _, op := range sub.queue {
		word := "subscribe"
		if op.unsubscribe {
			word = "unsubscribe"
		}
		if op.left {
			word = "left"
		}
		text += fmt.Sprintf(", %s c%d #%d", word, op.call.Session, op.call.Call)
	}
	return text
}
