package remote

import (
	"fmt"

	"mcpbroker/actors/wire"
)

// oversized answers the call whose response is larger than a message may be, from the
// message's first and last bytes. Without an id in them nobody can be told but the log.
func (l *link) oversized(head, tail []byte) {
	if id := wire.CutResponseID(head, tail); id != nil {
		l.refuse(id, wire.TooLarge(l.cfg.Limit))
		return
	}
	l.problem(aboutMessage, fmt.Sprintf("it sent a message larger than %d bytes (maxMessageBytes), which was dropped: %s", l.cfg.Limit, wire.Excerpt(head)))
}
