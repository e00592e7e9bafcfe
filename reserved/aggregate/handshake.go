package aggregate

import (
	"log/slog"
	"slices"
	"strings"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// A member is asked for tools and prompts whatever it has declared (spec 03 3.3). It
// has joined once the lists that it has declared are there; what else it turns out to
// have is added when it comes. That it has not is no trouble, however it says so. Items
// in a list are as good as a declaration of it.

func (s *State) slotJoined(m *member, joined *msg.SlotJoined) {
	switch {
	case m == nil:
		s.tell(joined.Ref, &msg.LeaveSlot{Session: joined.Session})
	case m.to == nil:
		set(s, &m.to, joined.Ref)
		params := `{"protocolVersion":"` + mcp.Revision20251125 + `","capabilities":{},"clientInfo":{"name":"mcp-broker-aggregate","version":`
		s.request(m, mcp.Initialize, append(wire.AppendString([]byte(params), s.cfg.Version), "}}"...))
	}
}

// request sends a request of our own. One is in flight per member.
func (s *State) request(m *member, method string, params []byte) {
	set(s, &s.lastCall, s.lastCall+1)
	set(s, &m.asked, m.asked+1)
	set(s, &m.request, s.lastCall)
	if !m.joined {
		set(s, &m.since, s.now)
	}
	frame, err := wire.Scan(ownRequest(m.slot, m.asked, method, params))
	if err != nil {
		panic(err) // the parts are JSON, so the whole is
	}
	s.tell(m.to, &msg.ClientCall{Session: m.session, Client: m.ref, Call: m.request, Frame: frame, Trace: s.cfg.Trace()})
}

// initialized takes the answer to our initialize.
func (s *State) initialized(m *member, frame []byte) {
	set(s, &m.greeted, true)
	result := wire.Member(frame, "result")
	if len(result) == 0 || result[0] != '{' {
		s.handshakeFailed(m, "initialize refused: "+refusal(frame), false)
		return
	}
	capabilities := wire.Member(result, "capabilities")
	declared, listed := listSet(0), listSet(0)
	if s.startled[m.slot] < mostStartled {
		listed = listed.with(tools).with(prompts)
	}
	for k := range kinds {
		if has := wire.Member(capabilities, lists[k].capability); s.serves(k) && len(has) > 0 && has[0] == '{' {
			declared, listed = declared.with(k), listed.with(k)
		}
	}
	instructions, _ := wire.Unquote(wire.Member(result, "instructions"))
	set(s, &m.instructions, instructionsOf(instructions))
	set(s, &m.declared, declared)
	set(s, &m.listed, listed)
	set(s, &m.want, listed)
	note, _ := wire.Scan([]byte(`{"jsonrpc":"2.0","method":"` + mcp.Initialized + `"}`))
	s.tell(m.to, &msg.ClientNote{Session: m.session, Frame: note})
	s.next(m)
}

// handshakeFailed takes a member out that did not get as far as its lists.
func (s *State) handshakeFailed(m *member, reason string, again bool) {
	remedy := "It is tried again when it reconnects; broker_diagnose on the _broker slot says more."
	if again {
		remedy = "It is tried again by and by; broker_diagnose on the _broker slot says more."
	}
	if m.failures == 0 || !again {
		s.log(slog.LevelError, `provider "%s" failed its handshake and was not added to "_all": %s. %s`, m.slot, strings.TrimSuffix(reason, "."), remedy)
	}
	s.leave(m, reason)
	if again {
		s.retryLater(m)
	}
}

// published makes a member of _all out of one whose lists are there.
func (s *State) published(m *member) {
	set(s, &m.joined, true)
	set(s, &m.was, true)
	set(s, &m.since, s.now)
	set(s, &m.reason, "")
	set(s, &m.failures, 0)
	set(s, &m.remarked, false)
	s.log(slog.LevelInfo, `provider "%s" joined "_all" with %s and %s`, m.slot, counted(m.lists[tools].len(), "tool"), counted(m.lists[prompts].len(), "prompt"))
	if m.before != nil {
		s.resume(m)
		return
	}
	set(s, &s.joined, append(slices.Clip(s.joined), m))
	s.listsChanged(m)
}

// complete reports that the lists a member has are there, and those its predecessor
// had.
func (m *member) complete() bool {
	for k := range kinds {
		if m.lists[k] == nil && (m.declared.has(k) || m.succeeds(k)) {
			return false
		}
	}
	return true
}

// succeeds: the member stands in for one that had items of this kind.
func (m *member) succeeds(k list) bool {
	return m.before != nil && m.listed.has(k) && m.before.lists[k].len() > 0
}

// makeWay withdraws the request for a list that is not declared, which may be waited
// for in vain, if one that is wants fetching.
func (s *State) makeWay(m *member) {
	if m.fetch == nil || m.declared.has(m.fetch.kind) || m.want&m.declared == 0 {
		return
	}
	s.tell(m.to, &msg.CallerLeft{Session: m.session, Call: m.request})
	set(s, &m.want, m.want.with(m.fetch.kind))
	set(s, &m.fetch, nil)
	set(s, &m.request, 0)
}

// shown takes note of a list that has items.
func (s *State) shown(m *member, k list) {
	if m.declared.has(k) {
		return
	}
	set(s, &m.declared, m.declared.with(k))
	s.log(slog.LevelInfo, `provider "%s" lists %s without having declared the capability`, m.slot, lists[k].key)
}

// Some servers do not answer what they do not know, they end. mostStartled providers of a slot
// in a row may do so with a request for an undeclared list unanswered; the next one is
// asked for what it has declared only, so that our curiosity keeps nobody from working.
const mostStartled = 2

// startle: the provider left with the present request unanswered.
func (s *State) startle(m *member) {
	if m.fetch == nil || m.declared.has(m.fetch.kind) {
		return
	}
	put(s, s.startled, m.slot, s.startled[m.slot]+1)
	if s.startled[m.slot] == mostStartled {
		s.log(slog.LevelWarn, `provider "%s" has ended %d times when it was asked for %s, which it does not declare; it is not asked any more`, m.slot, mostStartled, lists[m.fetch.kind].key)
	}
}

// calmed takes note of an answer to such a request.
func (s *State) calmed(m *member) {
	if s.startled[m.slot] > 0 && !m.declared.has(m.fetch.kind) {
		drop(s, s.startled, m.slot)
	}
}
