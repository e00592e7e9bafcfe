package introspection

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
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
	switch {
	case r.all:
		a.lookAtAll(r, done.answers)
		return
	case r.questions[0].kind.ofUpstreams():
		done.answers[0] = a.aboutInstances(r.questions[0])
		return
	}
	asked := a.askUpstreams()
	info, err := a.lookAtOne(r.slot)
	behind := <-asked
	for i, q := range r.questions {
		if err != nil {
			done.answers[i] = q.fail(err)
			continue
		}
		done.answers[i] = q.status(a.clock(), info, behind)
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
	var behind <-chan upstreams
	if slices.ContainsFunc(r.questions, func(q *question) bool { return q.kind == askList }) {
		behind = a.askUpstreams()
	}
	infos, err := a.survey()
	var found upstreams
	if behind != nil {
		found = <-behind
	}
	for i, q := range r.questions {
		if err != nil {
			answers[i] = q.fail(err)
			continue
		}
		a.answer(q, infos, found, &answers[i])
	}
}

// askUpstreams describes the upstreams while the caller asks the slots. What does not
// answer in time is not known.
func (a *Actor) askUpstreams() <-chan upstreams {
	reply := make(chan upstreams, 1)
	if a.instances == nil {
		reply <- nil
		return reply
	}
	a.sys.Go(func() {
		var found upstreams
		defer func() { reply <- found }()
		defer a.recovered()
		if all, err := a.surveyInstances(); err == nil {
			found = upstreamsOf(all)
		}
	})
	return reply
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
func (a *Actor) answer(q *question, infos []msg.SlotInfo, behind upstreams, to *any) {
	defer a.recovered()
	if q.kind == askList {
		*to = q.list(a.clock(), infos, behind)
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

// aboutInstances answers a question that is put to upstreams. It runs beside the
// actor.
func (a *Actor) aboutInstances(q *question) any {
	all, err := a.surveyInstances()
	if err != nil {
		return q.fail(wire.NoInventory(patience))
	}
	if q.kind == askInstances {
		list := instanceList{len(all), make([]instanceInfo, len(all))}
		for i := range all {
			list.Instances[i] = describeInstance(a.clock(), &all[i])
		}
		return q.object(encode(list))
	}
	found := findInstance(all, q.slot)
	switch {
	case found == nil && q.uri != "":
		return q.fail(wire.ResourceNotFound(q.uri))
	case found == nil:
		return q.reply(textResult(fmt.Sprintf("Unknown instance: %s. Call instances_list to see the names there are; they are case-sensitive.", quote(q.slot)), true))
	case q.kind == askRestart:
		return a.restartInstance(q)
	}
	return q.object(encode(instanceDetails(a.clock(), found)))
}

func (a *Actor) surveyInstances() ([]msg.Instance, error) {
	ctx, cancel := context.WithTimeout(a.ctx, patience)
	defer cancel()
	return a.instances(ctx)
}

// restartInstance asks for a restart and waits for what comes of it.
func (a *Actor) restartInstance(q *question) any {
	ctx, cancel := context.WithTimeout(a.ctx, restartPatience)
	defer cancel()
	asked := a.clock()
	if err := a.restart(ctx, q.slot); err != nil {
		return q.reply(textResult(fmt.Sprintf("The restart of %s could not be asked for: %v.", quote(q.slot), err), true))
	}
	result, seen := a.follow(ctx, q.slot, asked)
	if seen == nil {
		return q.reply(textResult(fmt.Sprintf("The restart of %s was asked for, but the upstream is gone: it was taken out of the configuration, or the broker stops.", quote(q.slot)), true))
	}
	now := a.clock()
	object := encode(restartInfo{
		Name: q.slot, Outcome: result, Message: tellOutcome(now, result, seen), WaitedMs: now.Sub(asked).Milliseconds(),
		Instance: instanceDetails(now, seen),
	})
	return q.reply(objectResult(object, result == outcomeFailed))
}

// follow looks at an upstream until its restart is decided or ctx ends. The
// upstream is as it was last seen, nil if there is none any more.
func (a *Actor) follow(ctx context.Context, slot string, asked time.Time) (outcome, *msg.Instance) {
	look := time.NewTimer(0)
	defer look.Stop()
	var seen *msg.Instance
	for {
		select {
		case <-look.C:
		case <-ctx.Done():
			return outcomePending, seen
		}
		if all, err := a.surveyInstances(); err == nil {
			if seen = findInstance(all, slot); seen == nil {
				return outcomePending, nil
			}
			if result := judgeRestart(seen, asked); result != outcomePending {
				return result, seen
			}
		}
		look.Reset(restartLook)
	}
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
