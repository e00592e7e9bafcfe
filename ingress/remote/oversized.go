package remote

import (
	"fmt"
	"regexp"

	"mcpbroker/actors/wire"
)

// brokerID finds the id of a response to a request of the slot. Servers put it first or
// last, so a message need not be kept whole to find it.
var brokerID = regexp.MustCompile(`"id"\s*:\s*("brk-[1-9][0-9]{0,19}")`)

// oversized answers the call whose response is larger than a message may be, from the
// message's first and last bytes. Without an id in them nobody can be told but the log.
func (l *link) oversized(head, tail []byte) {
	id := brokerID.FindSubmatch(head)
	if all := brokerID.FindAllSubmatch(tail, -1); id == nil && len(all) > 0 {
		id = all[len(all)-1]
	}
	if id != nil {
		l.answer(id[1], wire.TooLarge(l.cfg.Limit))
		return
	}
	l.problem(aboutMessage, fmt.Sprintf("it sent a message larger than %d bytes (maxMessageBytes), which was dropped: %s", l.cfg.Limit, wire.Excerpt(head)))
}
