package introspection

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// patience is how long slots are waited for. One that has not answered by then
// keeps what it last reported.
const patience = 2 * time.Second

// look carries a round out, beside the actor, and posts what came of it. Whatever
// happens each question gets an answer.
func (a *Actor) look(r *round) {
	done := &roundDone{round: r, answers: make([]any, len(r.questions))}
	for i, q := range r.questions {
		done.answers[i] = q.fail(wire.Crashed(Slot))
	}
	defer a.self.Send(done)
	defer a.recovered()
	if r.all {
		a.lookAtAll(r, done.answers)
		return
	}
	info, err := a.lookAtOne(r.slot)
	for i, q := range r.questions {
		if err != nil {
			done.answers[i] = q.fail(err)
			continue
		}
		done.answers[i] = q.status(a.clock(), info)
	}
}

func (a *Actor) recovered() {
	if cause := recover(); cause != nil {
		a.sys.Log().Error(fmt.Sprintf("[broker] slot %q: answering from the state of slots failed: %v", Slot, cause), slog.String("stack", string(debug.Stack())))
	}
}

// lookAtOne describes one slot; nil is one that does not exist.
func (a *Actor) lookAtOne(slot string) (*msg.SlotInfo, *wire.Error) {
	ctx, cancel := context.WithTimeout(a.ctx, patience)
	info, ok := receive(ctx, a.describe(slot))
	cancel()
	if ok {
		return &info, nil
	}
	// Unknown, retiring, or silent: what the registry last heard of it decides.
	infos, err := a.list()
	for i := range infos {
		if infos[i].Name == slot {
			return &infos[i], nil
		}
	}
	return nil, err
}

func (a *Actor) lookAtAll(r *round, answers []any) {
	infos, err := a.survey()
	for i, q := range r.questions {
		if err != nil {
			answers[i] = q.fail(err)
			continue
		}
		a.answer(q, infos, &answers[i])
	}
}

// survey describes all slots, in the order they were created.
func (a *Actor) survey() ([]msg.SlotInfo, *wire.Error) {
	infos, err := a.list()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(a.ctx, patience)
	defer cancel()
	replies := make([]<-chan msg.SlotInfo, len(infos))
	for i := range infos {
		replies[i] = a.describe(infos[i].Name)
	}
	for i, reply := range replies {
		if info, ok := receive(ctx, reply); ok {
			infos[i] = info
		}
	}
	return infos, nil
}

// answer answers one question about all slots. If that fails it keeps the answer
// it has.
func (a *Actor) answer(q *question, infos []msg.SlotInfo, to *any) {
	defer a.recovered()
	if q.kind == askList {
		*to = q.list(a.clock(), infos)
		return
	}
	if q.slot != "" && !contains(infos, q.slot) {
		*to = q.unknownSlot()
		return
	}
	report := []byte("{}")
	if a.diagnose != nil {
		ctx, cancel := context.WithTimeout(a.ctx, patience)
		defer cancel()
		report = a.diagnose(ctx, infos, q.slot)
	}
	*to = q.object(report)
}

func contains(infos []msg.SlotInfo, slot string) bool {
	for i := range infos {
		if infos[i].Name == slot {
			return true
		}
	}
	return false
}

func (a *Actor) list() ([]msg.SlotInfo, *wire.Error) {
	ctx, cancel := context.WithTimeout(a.ctx, patience)
	defer cancel()
	reply := make(chan []msg.SlotInfo, 1)
	a.registry.Send(&msg.ListInventory{Reply: reply})
	infos, ok := receive(ctx, reply)
	if !ok {
		return nil, wire.NoInventory(patience)
	}
	return infos, nil
}

func (a *Actor) describe(slot string) <-chan msg.SlotInfo {
	reply := make(chan msg.SlotInfo, 1)
	a.registry.Send(&msg.DescribeSlot{Slot: slot, Reply: reply})
	return reply
}

// receive waits for one value; a closed channel has none. A value that is there
// is taken even when ctx has ended.
func receive[T any](ctx context.Context, from <-chan T) (T, bool) {
	select {
	case value, ok := <-from:
		return value, ok
	default:
	}
	select {
	case value, ok := <-from:
		return value, ok
	case <-ctx.Done():
		var none T
		return none, false
	}
}
