package aggregate

import (
	"sync/atomic"

	"mcpbroker/actors/msg"
)

// memberRef is the server's address as the client of one member. What is sent to
// it arrives with the session it was sent for; of a member's notifications only
// those about lists do, one at a time.
type memberRef struct {
	self    msg.Ref
	session uint64
	waiting [kinds]atomic.Bool // a listChanged is on its way
}

// Send implements msg.Ref.
func (r *memberRef) Send(message any) {
	switch m := message.(type) {
	case *msg.Notify:
		r.notify(m)
	case *msg.CallProgress:
		r.self.Send(progressed{m})
	default:
		r.self.Send(&fromMember{session: r.session, message: message})
	}
}

func (r *memberRef) notify(note *msg.Notify) {
	for k := range templates {
		if lists[k].changed == note.Key && !r.waiting[k].Swap(true) {
			r.self.Send(&listChanged{session: r.session, kind: k, taken: func() { r.waiting[k].Store(false) }})
		}
	}
}
