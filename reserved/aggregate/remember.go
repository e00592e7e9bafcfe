package aggregate

import (
	"strings"

	"mcpbroker/actors/wire"
)

// The names of a member that left are kept as they were listed. A call of one is
// answered with what became of the member, and no other member comes to have it: a
// client that listed before would call another tool than it means. A member that
// returns has its names again, wherever in the order it stands then, and keeps them
// while it stays. For all others names are given as if nobody had left.

// alias is a name in _all and what it stands for.
type alias struct {
	name     string
	original []byte // the member's own name, raw
}

// naming is the names of one kind of list as a catalog last gave them.
type naming struct {
	index map[string]target
	of    map[string][]alias // by slot, in the order of its list
}

// claim is whose a remembered name is.
type claim struct{ slot, own string }

func goneKey(k list, name string) string { return lists[k].item + " " + name }

// maxGone bounds the names remembered, longestGone the bytes of one: names of prompts
// have no limit.
const (
	maxGone     = 20000
	longestGone = 256
)

// remember keeps the names of a member that leaves, with those it was remembered by
// before and has not been listed under since. Names of what it has no more are forgotten.
func (s *State) remember(m *member) {
	var names []string
	kept := map[string]bool{}
	for _, k := range []list{tools, prompts} {
		for _, n := range s.called(m, k) {
			key := goneKey(k, n.name)
			own, _ := wire.Unquote(n.original)
			if !kept[key] && s.claim(m, key, own) {
				names, kept[key] = append(names, key), true
			}
		}
	}
	for _, key := range m.names {
		if !kept[key] {
			s.unclaim(m, key)
		}
	}
	set(s, &m.names, names)
}

// called lists what a member's items are called: as they were remembered and last
// listed, and those that were not by the names they would have alone, where nobody has
// them.
func (s *State) called(m *member, k list) (all []alias) {
	last, before, listed := &s.named[k], s.kept(m, k), map[string]bool{}
	add := func(name string, original []byte) {
		own, _ := wire.Unquote(original)
		for _, earlier := range before[own] {
			all = append(all, alias{earlier, original})
		}
		delete(before, own)
		if name != "" {
			all = append(all, alias{name, original})
		}
	}
	for _, n := range last.of[m.slot] {
		listed[string(n.original)] = true
		add(n.name, n.original)
	}
	for i := range m.lists[k].len() {
		e := &m.lists[k].entries[i]
		if listed[string(e.original)] {
			continue
		}
		name := e.name
		if _, taken := last.index[name]; taken {
			name = ""
		}
		add(name, e.original)
	}
	return all
}

// claim remembers a name, unless it is another member's or there is no room.
func (s *State) claim(m *member, key, own string) bool {
	c, known := s.gone[key]
	switch {
	case known && c.slot != m.slot, len(key) > longestGone:
		return false
	case !known && len(s.gone) >= maxGone:
		s.unclaimPresent(m)
		if len(s.gone) >= maxGone {
			return false
		}
	}
	if !known || c.own != own {
		put(s, s.gone, key, claim{m.slot, own})
	}
	return true
}

func (s *State) unclaim(m *member, key string) {
	if s.gone[key].slot == m.slot {
		drop(s, s.gone, key)
	}
}

// unclaimPresent makes room for the names of m: those of members that are back can be
// done without.
func (s *State) unclaimPresent(m *member) {
	for _, other := range s.joined {
		if other.slot == m.slot || len(other.names) == 0 {
			continue
		}
		for _, key := range other.names {
			s.unclaim(other, key)
		}
		set(s, &other.names, nil)
	}
}

// kept is what a member's items were called when it left, by its own names.
func (s *State) kept(m *member, k list) map[string][]string {
	prefix := goneKey(k, "")
	var names map[string][]string
	for _, key := range m.names {
		c, ok := s.gone[key]
		name, ofKind := strings.CutPrefix(key, prefix)
		if !ok || !ofKind || c.slot != m.slot {
			continue
		}
		if names == nil {
			names = map[string][]string{}
		}
		names[c.own] = append(names[c.own], name)
	}
	return names
}

// absence is what a call of something of a slot is answered that is in no list: nil
// where there is no more to say than that.
func (s *State) absence(slot string) *wire.Error {
	m := s.serving(slot)
	switch {
	case m == nil || m.joined || m.reason == unasked:
		return nil
	case m.away():
		return wire.NoLongerConnected(slot)
	}
	return wire.LeftOut(slot, m.reason)
}

// forget removes a member that has left, and the names it is remembered by.
func (s *State) forget(m *member) {
	drop(s, s.members, m.slot)
	drop(s, s.retries, m.slot)
	drop(s, s.startled, m.slot)
	for _, key := range m.names {
		s.unclaim(m, key)
	}
	s.statusChanged()
}
