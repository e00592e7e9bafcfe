package slot

import (
	"fmt"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// A check asks whether the provider works. Many servers handle one request after the
// other, so that a check waits behind a long call and its time says nothing. What says
// that the provider hangs is that no work of it shows: since the check was sent it has
// answered nothing and told of no progress, and the calls it has are past their
// deadlines, or were when they ended. What it sends unasked is no work: it may come from
// another thread of a server that hangs.

// untimedPatience is how long a call counts as being worked on where calls have no
// deadline (providerRequestTimeoutMs = 0).
const untimedPatience = time.Minute

// callerLate ends a check, and tells its caller what that says of the provider.
func (s *State) callerLate(now time.Time, m *msg.CallerLate) {
	for _, c := range s.pending {
		if c.session == m.Session && c.number == m.Call && c.client != nil {
			s.tell(c.client, &msg.CallFailed{Call: m.Call, Err: s.lateness(now, c)})
			s.leaveCall(c)
			return
		}
	}
	for _, h := range s.held {
		if q, ok := h.(*msg.ClientCall); ok && q.Session == m.Session && q.Call == m.Call {
			s.fail(q, &wire.Error{Code: wire.CodeUnavailable, Message: "no answer"})
			s.unhold(func(h any) bool { return h == any(q) })
			return
		}
	}
}

// lateness is why c has no answer. Busy: its provider works.
func (s *State) lateness(now time.Time, c *call) *wire.Error {
	err := &wire.Error{Code: wire.CodeUnavailable, Message: "no answer"}
	switch calls := s.worked(now, c); {
	case s.heardAt.After(c.started):
		err.Busy, err.Message = true, "it has worked on other requests meanwhile"
	case s.unheard > 0:
		err.Message = "no answer, nor to the calls of clients"
	case calls > 0:
		err.Busy, err.Message = true, inFlight(calls)
	}
	return err
}

func inFlight(calls int) string {
	if calls == 1 {
		return "it has a call in flight"
	}
	return fmt.Sprintf("it has %d calls in flight", calls)
}

// worked counts the calls of clients beside c that the provider has, and may still have.
func (s *State) worked(now time.Time, check *call) int {
	n := 0
	for _, c := range s.pending {
		due := c.deadline
		if due.IsZero() {
			due = c.started.Add(untimedPatience)
		}
		if c != check && c.role == clientsCall && c.client != nil && !c.ours && now.Before(due) {
			n++
		}
	}
	return n
}

// works notes an answer of the provider, or the progress of a call.
func (s *State) works(now time.Time) { s.heardAt, s.unheard = now, 0 }

// noteSilence counts a call that has expired, if the provider has worked on no other
// since it has the call.
func (s *State) noteSilence(c *call) {
	if !s.heardAt.After(c.started) && !c.ours {
		s.unheard++
	}
}
