package aggregate

import (
	"strconv"
	"strings"
	"time"
	"unicode"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// DescribeMembers asks the server for its members. The reply channel must have
// room for one.
type DescribeMembers struct {
	control
	Reply chan<- []MemberStatus
}

// Undelivered closes the reply channel without a value.
func (m *DescribeMembers) Undelivered() { close(m.Reply) }

// MemberStatus is one slot that is a member of _all, or that asked to be one.
type MemberStatus struct {
	Slot           string
	Joined         bool
	Joining        bool   // its handshake is not over
	Restarting     bool   // it has joined, but its provider is being started again
	Loop           bool   // it is an _all that contains this one
	Reason         string // why it is missing, or which of its lists is not complete, or stale
	Tools, Prompts int
	Since          time.Time // when it joined, or what its handshake waits for was asked; else zero
}

// Members lists the members in the order they joined, then the missing by slot.
func (s *State) Members() []MemberStatus {
	var all []MemberStatus
	for _, m := range s.joined {
		var problems []string
		if m.suspended {
			problems = append(problems, stale)
		}
		for _, c := range m.lists {
			if c != nil && c.problem != "" {
				problems = append(problems, c.problem)
			}
		}
		all = append(all, MemberStatus{
			Slot: m.slot, Joined: true, Restarting: m.suspended, Reason: strings.Join(problems, "; "),
			Tools: m.lists[tools].len(), Prompts: m.lists[prompts].len(), Since: m.since,
		})
	}
	for _, m := range s.bySlot() {
		if m.stands() || m.reason == unasked {
			continue
		}
		missing := MemberStatus{Slot: m.slot, Joining: m.reason == inProgress, Loop: m.reason == looped, Reason: m.reason}
		if missing.Joining {
			missing.Since = m.since
		}
		all = append(all, missing)
	}
	return all
}

// Info describes the slot for the inventory.
func (s *State) Info() msg.SlotInfo {
	info := msg.SlotInfo{
		Name: wire.SlotAggregate, Transport: msg.Loopback, Connected: true, ConnectedSince: s.since,
		PendingCount: len(s.calls), MaxPending: s.cfg.MaxPending, Answered: true,
	}
	for _, c := range s.calls {
		if info.OldestPending.IsZero() || c.since.Before(info.OldestPending) {
			info.OldestPending = c.since
		}
	}
	s.clients.Count(&info)
	return info
}

// statusChanged: who is a member, or what it lacks, is not what it was.
func (s *State) statusChanged() { set(s, &s.notes, [kinds][]byte{}) }

// stale is what is said of a member whose provider is being started again.
const stale = "its lists are those of before the restart"

// note is the _meta of a list result: whose items it holds, and whose it lacks.
func (s *State) note(k list) []byte {
	if s.notes[k] == nil {
		set(s, &s.notes[k], s.makeNote(k))
	}
	return s.notes[k]
}

func (s *State) makeNote(k list) []byte {
	var joined, restarting, missing roll
	for _, m := range s.joined {
		joined.add(wire.AppendString(nil, m.slot))
		if m.suspended {
			restarting.explain(m.slot, stale)
		}
		if c := m.lists[k]; c != nil && c.problem != "" {
			missing.explain(m.slot, c.problem)
		}
	}
	for _, m := range s.bySlot() {
		if !m.stands() && m.reason != unasked {
			missing.explain(m.slot, m.reason)
		}
	}
	b := append([]byte(`{"io.cyanmycelium/members":{"joined":[`), joined.json...)
	if len(restarting.json) > 0 {
		b = append(append(b, `],"restarting":[`...), restarting.json...)
	}
	b = append(append(b, `],"missing":[`...), missing.json...)
	b = append(b, ']')
	if omitted := joined.omitted + restarting.omitted + missing.omitted; omitted > 0 {
		b = strconv.AppendInt(append(b, `,"omitted":`...), int64(omitted), 10)
	}
	b = append(b, '}')
	if s.cfg.ID != "" {
		b = append(append(b, ','), s.mark()...)
	}
	return append(b, '}')
}

// roll is the inside of a JSON array of bounded size.
type roll struct {
	json    []byte
	omitted int
}

func (r *roll) explain(slot, reason string) {
	item := wire.AppendString([]byte(`{"slot":`), slot)
	r.add(append(wire.AppendString(append(item, `,"reason":`...), reason), '}'))
}

func (r *roll) add(item []byte) {
	const most = 64 << 10
	switch {
	case len(r.json)+len(item) > most:
		r.omitted++
		return
	case len(r.json) > 0:
		r.json = append(r.json, ',')
	}
	r.json = append(r.json, item...)
}

// Bounds of the instructions, in bytes.
const (
	maxInstructions    = 2 << 10 // of one member
	maxAllInstructions = 32 << 10
)

func instructionsOf(text string) string { return clip(strings.TrimSpace(text), maxInstructions) }

// instructions joins what the members tell their clients, under a heading each.
func (s *State) instructions() string {
	var b strings.Builder
	for _, m := range s.joined {
		if m.instructions == "" {
			continue
		}
		part := "## " + plain(m.slot) + "\n\n" + m.instructions
		if b.Len() > 0 {
			part = "\n\n" + part
		}
		if b.Len()+len(part) > maxAllInstructions {
			break
		}
		b.WriteString(part)
	}
	return b.String()
}

// refusal is the reason a provider gave, for logs and statuses.
func refusal(frame []byte) string {
	failure := wire.Member(frame, "error")
	text, _ := wire.Unquote(wire.Member(failure, "message"))
	if text == "" {
		return "the answer is neither a result nor an error with a message"
	}
	return shorten(text)
}

// shorten keeps a foreign text to one line of bounded length.
func shorten(text string) string { return clip(plain(text), 300) }

func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// clip cuts a text to n bytes on a character boundary and marks the cut.
func clip(text string, n int) string {
	const mark = "..."
	if len(text) <= n {
		return text
	}
	end := n - len(mark)
	for end > 0 && text[end]&0xC0 == 0x80 {
		end--
	}
	return text[:end] + mark
}
