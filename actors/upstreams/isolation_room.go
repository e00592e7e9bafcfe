package upstreams

import (
	"context"
	"slices"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/wire"
)

// An isolated upstream that is full ends the session idle longest for one that
// comes, as an ordinary slot does: a client that goes away without a word would
// keep its place, and its process, for ever. Only the private slots know how idle
// they are. They are asked beside the actor, one survey at a time, and sessions
// that come meanwhile wait.

const (
	// minIdle is how long a session has had neither a stream nor a call before it
	// has to make room: one that works, or has just come, is never ended.
	minIdle = 10 * time.Second

	// maxWaiting is how many sessions wait for room. A survey cannot find room for
	// more.
	maxWaiting = maxIsolated

	// surveyPatience is how long the private slots have to answer.
	surveyPatience = time.Second
)

// queue are the sessions that wait for room, in the order they came.
type queue struct {
	joins     []*msg.JoinSlot
	surveying bool               // true while there are joins
	served    int                // for how many of the first the survey under way looks for room
	cancel    context.CancelFunc // of the survey under way, or the last
}

func (q *queue) has(session uint64) bool {
	return slices.ContainsFunc(q.joins, func(m *msg.JoinSlot) bool { return m.Session == session })
}

func (q *queue) drop(n int) {
	q.joins = slices.Delete(q.joins, n, n+1)
	if n < q.served {
		q.served--
	}
}

// roomMade: a survey has ended what it could.
type roomMade struct{}

// ControlMessage implements rt.Control.
func (roomMade) ControlMessage() {}

// await lets a session wait for room.
func (i *isolator) await(m *msg.JoinSlot) {
	if i.waiting.has(m.Session) {
		return
	}
	if len(i.waiting.joins) >= maxWaiting {
		i.refuseFull(m)
		return
	}
	i.waiting.joins = append(i.waiting.joins, m)
	i.makeRoom()
}

func (i *isolator) refuseFull(m *msg.JoinSlot) {
	m.Client.Send(&msg.JoinRefused{Err: wire.TooManyIsolated(i.cfg.Slot, maxIsolated)})
}

// makeRoom starts a survey for all that wait, unless one is under way: those who
// came after it began are the next one's.
func (i *isolator) makeRoom() {
	if i.waiting.surveying || len(i.waiting.joins) == 0 {
		return
	}
	i.waiting.surveying, i.waiting.served = true, len(i.waiting.joins)
	var slots []*rt.Ref
	for _, p := range i.inOrder() {
		if p.kind != msg.BrokerClient {
			slots = append(slots, p.slot)
		}
	}
	name, wanted, oldest := i.cfg.Slot, i.waiting.served, time.Now().Add(-minIdle)
	ctx, cancel := context.WithCancel(context.Background())
	i.waiting.cancel = cancel
	i.sys.Go(func() {
		defer i.self.Send(roomMade{})
		defer cancel()
		endIdlest(ctx, idleSlots(slots, name, oldest), wanted)
	})
}

// roomMade lets in whom there is room for. A private slot that was ended has said
// so before the survey did.
func (i *isolator) roomMade(c rt.Context) {
	i.letIn(c)
	for i.waiting.served > 0 {
		i.refuseFull(i.waiting.joins[0])
		i.waiting.drop(0)
	}
	i.waiting.surveying = false
	i.makeRoom()
}

// letIn fills the places that are free.
func (i *isolator) letIn(c rt.Context) {
	for len(i.waiting.joins) > 0 && len(i.privates) < maxIsolated {
		i.enter(c, i.waiting.joins[0])
		i.waiting.drop(0)
	}
}

// leave takes out a session that has gone.
func (i *isolator) leave(m *msg.LeaveSlot) {
	if p := i.privates[m.Session]; p != nil {
		p.slot.Send(m)
		return
	}
	for n, join := range i.waiting.joins {
		if join.Session == m.Session {
			i.waiting.drop(n)
			return
		}
	}
}

// turnAway tells those who wait that they wait in vain.
func (i *isolator) turnAway() {
	for _, m := range i.waiting.joins {
		m.Undelivered()
	}
	i.waiting.joins, i.waiting.served = nil, 0
	if i.waiting.cancel != nil {
		i.waiting.cancel() // room is made for nobody
	}
}

// idleSlot is a private slot nobody has used since.
type idleSlot struct {
	slot  *rt.Ref
	since time.Time
}

// idleSlots returns those of slots that have been idle since oldest or longer, the
// longest idle first.
func idleSlots(slots []*rt.Ref, name string, oldest time.Time) []idleSlot {
	var idle []idleSlot
	for n, info := range ask(slots, name) {
		if info != nil && !info.IdleSince.IsZero() && !info.IdleSince.After(oldest) {
			idle = append(idle, idleSlot{slots[n], info.IdleSince})
		}
	}
	slices.SortStableFunc(idle, func(a, b idleSlot) int { return a.since.Compare(b.since) })
	return idle
}

// endIdlest ends the sessions of the first n slots that are idle still, until ctx ends.
func endIdlest(ctx context.Context, idle []idleSlot, n int) {
	ctx, cancel := context.WithTimeout(ctx, surveyPatience)
	defer cancel()
	for _, i := range idle {
		if n == 0 || ctx.Err() != nil {
			return
		}
		answer := make(idleAnswer, 1)
		i.slot.Send(&msg.EndIdle{Since: i.since, Why: `isolation = "session"`, Asker: answer})
		select {
		case ended := <-answer:
			if ended {
				n--
			}
		case <-ctx.Done():
		}
	}
}

// idleAnswer is the address of an answer to EndIdle.
type idleAnswer chan bool

// Send implements msg.Ref.
func (a idleAnswer) Send(message any) {
	if m, ok := message.(*msg.IdleEnded); ok {
		a <- m.Ended
	}
}

// ask asks slots how they are, all at once. One that has ended, or says nothing in
// time, is nil in the result.
func ask(slots []*rt.Ref, name string) []*msg.SlotInfo {
	replies := make([]chan msg.SlotInfo, len(slots))
	for n, slot := range slots {
		replies[n] = make(chan msg.SlotInfo, 1)
		slot.Send(&msg.DescribeSlot{Slot: name, Reply: replies[n]})
	}
	ctx, cancel := context.WithTimeout(context.Background(), surveyPatience)
	defer cancel()
	infos := make([]*msg.SlotInfo, len(slots))
	for n, reply := range replies {
		infos[n] = received(ctx, reply)
	}
	return infos
}

// received waits for a reply. One that is there counts, however late it is asked
// for.
func received(ctx context.Context, reply <-chan msg.SlotInfo) *msg.SlotInfo {
	select {
	case info, ok := <-reply:
		return answered(info, ok)
	default:
	}
	select {
	case info, ok := <-reply:
		return answered(info, ok)
	case <-ctx.Done():
		return nil
	}
}

func answered(info msg.SlotInfo, ok bool) *msg.SlotInfo {
	if !ok {
		return nil
	}
	return &info
}
