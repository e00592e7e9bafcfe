package aggregate

import (
	"log/slog"
	"slices"

	"mcpbroker/actors/wire"
)

// A member may be the _all of another broker. If that one unites this _all in turn,
// over however many others, each change would come round as a change of its own and
// every tool once more under a longer name. So the lists of an _all say whose they
// are and of which other _alls they hold items, and a member whose lists hold this
// one's is not joined.

// markKey is where the _meta of a list result says so.
const markKey = "io.cyanmycelium/aggregate"

const looped = "it is an _all that contains this broker: a loop"

// Bounds of a mark that comes from elsewhere.
const (
	maxThrough   = 256 // brokers
	maxBrokerLen = 64  // bytes of a name
)

// readMark returns the brokers whose items a list result holds, the one that sent it
// first; nil where it is of no _all.
func readMark(result []byte) []string {
	mark := wire.Member(wire.Member(result, "_meta"), markKey)
	id, ok := wire.Unquote(wire.Member(mark, "broker"))
	if !ok || id == "" || len(id) > maxBrokerLen {
		return nil
	}
	brokers := []string{id}
	through := wire.Member(mark, "through")
	eachElement(through, func(at wire.Span) {
		id, ok := wire.Unquote(within(through, at))
		if ok && len(id) <= maxBrokerLen && len(brokers) <= maxThrough {
			brokers = append(brokers, id)
		}
	})
	return brokers
}

// marked takes a mark of a member. It reports false where it was the end of the
// membership.
func (s *State) marked(m *member, brokers []string) bool {
	if s.cfg.ID != "" && slices.Contains(brokers, s.cfg.ID) {
		s.log(slog.LevelWarn, `provider "%s" was not added to "_all": %s. Take the entry of one of the two out of its configuration, or set aggregate = false in it.`, m.slot, looped)
		s.leave(m, looped)
		return false
	}
	if len(brokers) > 0 && !slices.Equal(m.brokers, brokers) {
		set(s, &m.brokers, brokers)
		set(s, &m.remarked, true)
		s.statusChanged()
	}
	return true
}

// mark is this server's own, for the _meta of its lists.
func (s *State) mark() []byte {
	var through []string
	seen := map[string]bool{}
	for _, m := range s.joined {
		for _, id := range m.brokers {
			if !seen[id] && len(through) < maxThrough {
				seen[id] = true
				through = append(through, id)
			}
		}
	}
	b := wire.AppendString([]byte(`"`+markKey+`":{"broker":`), s.cfg.ID)
	b = append(b, `,"through":[`...)
	for i, id := range through {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendString(b, id)
	}
	return append(b, "]}"...)
}
