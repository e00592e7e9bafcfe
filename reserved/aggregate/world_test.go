package aggregate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// trace is the trace context of every request; effects show it as $TRACE.
const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// epoch is when every script begins.
var epoch = time.Unix(1_000_000, 0)

// ref is an actor's address by name. Effects are never performed, so nothing is
// ever sent to it.
type ref struct{ name string }

func (*ref) Send(any) { panic("a core must not send") }

func mustScan(text string) wire.Frame {
	f, err := wire.Scan([]byte(text))
	if err != nil {
		panic(fmt.Sprintf("scan %s: %v", text, err))
	}
	return f
}

// describe renders effects one a line. The recipients of one broadcast stand in
// one line, in the order of their sessions.
func describe(effects []Effect) []string {
	var lines []string
	var last any
	for i := range effects {
		e := &effects[i]
		if note, ok := e.Message.(*msg.Notify); ok && last == note {
			head, tail, _ := strings.Cut(lines[len(lines)-1], " <- ")
			lines[len(lines)-1] = head + " " + e.To.(*ref).name + " <- " + tail
			continue
		}
		last = e.Message
		lines = append(lines, strings.ReplaceAll(effectText(e), trace, "$TRACE"))
	}
	return lines
}

func effectText(e *Effect) string {
	switch {
	case e.To != nil:
		return e.To.(*ref).name + " <- " + messageText(e.Message)
	case e.WakeGen != 0:
		return fmt.Sprintf("wake #%d in %v", e.WakeGen, e.Wake)
	case e.Changed:
		return "changed"
	}
	return strings.ToLower(e.Level.String()) + ": " + e.Log
}

func messageText(message any) string {
	switch m := message.(type) {
	case *msg.WatchSlots:
		return "watch for " + m.Watcher.(*ref).name
	case *msg.JoinSlot:
		return fmt.Sprintf("join %s as %d, kind %d, answers to %s", m.Slot, m.Session, m.Kind, m.Client.(*ref).name)
	case *msg.LeaveSlot:
		return strings.TrimRight(fmt.Sprintf("leave as %d %s", m.Session, m.Slot), " ")
	case *msg.ClientCall:
		behind := ""
		if m.For != nil {
			behind = fmt.Sprintf(" for %d can=%d", m.For.Session, m.For.Can)
		}
		return fmt.Sprintf("call #%d as %d%s %s", m.Call, m.Session, behind, m.Frame.Bytes)
	case *msg.ClientNote:
		about := ""
		if m.Call != 0 {
			about = fmt.Sprintf(" about #%d", m.Call)
		}
		return fmt.Sprintf("note as %d%s %s", m.Session, about, m.Frame.Bytes)
	case *msg.ClientAnswer:
		return fmt.Sprintf("answer as %d %s", m.Session, m.Frame.Bytes)
	case *msg.CallerLeft:
		return fmt.Sprintf("caller of #%d as %d left", m.Call, m.Session)
	case *msg.AskUndeliverable:
		return fmt.Sprintf("brk-%d undeliverable as %d", m.ID, m.Session)
	case *msg.SlotJoined:
		return "joined"
	case *msg.JoinRefused:
		return fmt.Sprintf("join refused %d %s", m.Err.Code, m.Err.Message)
	case *msg.EndSession:
		return "end session: " + m.Why
	}
	return answerText(message)
}

func answerText(message any) string {
	switch m := message.(type) {
	case *msg.CallReply:
		return fmt.Sprintf("reply #%d %s", m.Call, m.Frame)
	case *msg.CallFailed:
		return fmt.Sprintf("failed #%d %d %s", m.Call, m.Err.Code, m.Err.Message)
	case *msg.CallProgress:
		return fmt.Sprintf("progress #%d %s", m.Call, m.Frame)
	case *msg.ClientAsk:
		return fmt.Sprintf("asked brk-%d for #%d %s", m.ID, m.Call, m.Frame)
	case *msg.AskCancelled:
		return fmt.Sprintf("ask cancelled for #%d %s", m.Call, m.Frame)
	case *msg.Notify:
		class := map[mcp.Class]string{mcp.Coalesced: " (coalesced)"}[m.Class]
		return fmt.Sprintf("notify %s%s key=%s", m.Frame, class, m.Key)
	case *clientEvicted:
		return fmt.Sprintf("client %d evicted", m.member.Session)
	}
	return fmt.Sprintf("%T", message)
}

// snapshot renders everything a step may change.
func snapshot(s *State) []string {
	lines := []string{fmt.Sprintf("callers=%d held=%d last=%d expiry=%v armed=%v timer=%d versions=%v", s.callers, s.held, s.lastCall, s.expiry, s.armed, s.timerGen, s.versions)}
	for _, m := range s.bySlot() {
		lines = append(lines, memberText(s, m))
	}
	for session, m := range s.joining {
		lines = append(lines, fmt.Sprintf("session %d is %s", session, memberText(s, m)))
	}
	for i, m := range s.joined {
		lines = append(lines, fmt.Sprintf("member %d: %s", i, memberText(s, m)))
	}
	for name, c := range s.gone {
		lines = append(lines, fmt.Sprintf("gone %s: %q of %s", name, c.own, c.slot))
	}
	for k := range s.named {
		lines = append(lines, fmt.Sprintf("named %d: %v", k, s.named[k].of))
	}
	for n, c := range s.calls {
		lines = append(lines, fmt.Sprintf("call %d: %d of %d to %s id=%s asks=%v in=%v,%v,%v wait=%v due=%v", n, c.theirs, c.client.Session, c.member.slot, c.id, c.asks,
			c.client.Data.calls[c.theirs] == c, c.member.calls[n] == c, c.member.waits[n] == c, c.wait != nil, c.due))
	}
	for id, c := range s.asks {
		lines = append(lines, fmt.Sprintf("ask %d about %d", id, c.number))
	}
	for k, c := range s.catalogs {
		lines = append(lines, fmt.Sprintf("catalog %d present=%v note=%s", k, c != nil, s.notes[k]))
	}
	for _, c := range s.clients.All() {
		lines = append(lines, fmt.Sprintf("client %d can=%d calls=%d", c.Session, c.Data.can, len(c.Data.calls)))
	}
	slices.Sort(lines[1:])
	return lines
}

func memberText(s *State, m *member) string {
	text := fmt.Sprintf("%s gen=%d session=%d to=%v request=%d asked=%d declared=%b want=%b joined=%v reason=%q failures=%d retry=%v names=%v since=%v listed=%b misses=%d at=%v",
		m.slot, m.gen, m.session, m.to, m.request, m.asked, m.declared, m.want, m.joined, m.reason, m.failures, s.retries[m.slot] != nil, m.names, m.since, m.listed, m.misses, m.retryAt)
	if m.fetch != nil {
		text += fmt.Sprintf(" fetch %d pages=%d got=%d cursors=%d", m.fetch.kind, m.fetch.pages, len(m.fetch.got.entries), len(m.fetch.cursors))
	}
	for k, c := range m.lists {
		if c != nil {
			text += fmt.Sprintf(" list %d: %d bytes=%d %q", k, len(c.entries), c.bytes, c.problem)
		}
	}
	text += fmt.Sprintf(" calls=%d waits=%d suspended=%v", len(m.calls), len(m.waits), m.suspended)
	text += fmt.Sprintf(" stale=%b refreshed=%v due=%v brokers=%v remarked=%v greeted=%v was=%v", m.stale, m.refreshed, s.refreshes[m], m.brokers, m.remarked, m.greeted, m.was)
	if m.before != nil {
		text += " before: " + memberText(s, m.before)
	}
	return text
}
