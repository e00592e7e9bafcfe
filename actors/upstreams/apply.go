package upstreams

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"mcpbroker/actors/rt"
)

// Changes are what a new configuration came to, by slot, against the one before. What
// has not come to be of that, since the last upstream of a slot is still being stopped,
// is no change.
type Changes struct{ Added, Removed, Changed []string }

// Apply makes the set that of list: upstreams that are not in it are stopped,
// changed ones are stopped and started, new ones started; the others go on as if
// nothing had happened. What has to stop finishes its calls in flight before, for 5 s at
// most. It returns once all that had to stop have stopped, and
// calls on those that start are held back and not refused. When ctx ends before that,
// the changes are in effect all the same and the error is an *UnfinishedError; after any
// other error nothing has changed.
func (s *Set) Apply(ctx context.Context, list []Config) (Changes, error) {
	return s.apply(ctx, &apply{list: list})
}

func (s *Set) apply(ctx context.Context, m *apply) (Changes, error) {
	a, err := s.order(ctx, m)
	if err != nil {
		return Changes{}, fmt.Errorf("apply the upstreams: %w", err)
	}
	if late := a.late(ctx); len(late) > 0 {
		return a.changes, &UnfinishedError{Stopping: late, Err: ctx.Err()}
	}
	begin := slices.AppendSeq(slices.Concat(a.changes.Added, a.changes.Changed), maps.Keys(a.stopping))
	if err := s.begun(ctx, begin); err != nil {
		return a.changes, &UnfinishedError{Err: err}
	}
	return a.changes, nil
}

// UnfinishedError is an Apply that was not waited for to the end.
type UnfinishedError struct {
	Stopping []string // slots whose last upstream has not stopped; empty when only the next have not begun
	Err      error    // of the context, or rt.ErrStopped
}

func (e *UnfinishedError) Error() string {
	if len(e.Stopping) == 0 {
		return fmt.Sprintf("wait for upstreams to begin: %v", e.Err)
	}
	return fmt.Sprintf("wait for upstreams to stop (%s): %v", strings.Join(e.Stopping, ", "), e.Err)
}

// Unwrap returns Err.
func (e *UnfinishedError) Unwrap() error { return e.Err }

// order has the keeper make the changes, or not: an order that ctx ends is withdrawn
// unless the keeper has taken it.
func (s *Set) order(ctx context.Context, order *apply) (applied, error) {
	reply := make(chan applied, 1)
	order.reply = reply
	s.sys.Send(s.pid, order)
	select {
	case a, ok := <-reply:
		return a, unlessClosed(ok)
	case <-ctx.Done():
		if order.take() {
			return applied{}, ctx.Err()
		}
		a, ok := <-reply
		return a, unlessClosed(ok)
	}
}

func unlessClosed(answered bool) error {
	if !answered {
		return rt.ErrStopped
	}
	return nil
}

// begun waits until the upstreams of these slots have told the registry that the slots
// are theirs.
func (s *Set) begun(ctx context.Context, slots []string) error {
	refs, err := s.refs(ctx)
	for _, slot := range slots {
		if u, kept := refs[slot]; kept && err == nil {
			err = u.begun(ctx)
		}
	}
	return err
}

// begun: the word to begin may stand behind the question in the mailbox of a new
// actor, or of one that failed at it. Asked again, it comes first.
func (u listed) begun(ctx context.Context) error {
	for !u.cfg.Watch && !u.behind {
		switch i, err := describe(ctx, u.ref); {
		case errors.Is(err, ErrUnknown): // it has been stopped meanwhile
			return nil
		case err != nil:
			return err
		case u.cfg.Isolated, !i.LastAttempt.IsZero():
			return nil
		}
	}
	return nil
}

type apply struct {
	list   []Config
	atOnce bool // the broker stops: calls in flight get no time
	reply  chan<- applied
	taken  atomic.Bool
}

// take reports whether the caller is the first: the keeper, to make the changes, or who
// ordered them, to withdraw.
func (m *apply) take() bool { return m.taken.CompareAndSwap(false, true) }

type applied struct {
	changes  Changes
	stopping map[string]<-chan struct{} // closed once the slot's last upstream has been followed by the next
}

// late waits until all have stopped, and returns the slots of those that have not when
// ctx ends.
func (a *applied) late(ctx context.Context) []string {
	var slots []string
	for _, slot := range slices.Sorted(maps.Keys(a.stopping)) {
		select {
		case <-a.stopping[slot]:
			continue
		case <-ctx.Done():
		}
		select {
		case <-a.stopping[slot]:
		default:
			slots = append(slots, slot)
		}
	}
	return slots
}

// ControlMessage implements rt.Control.
func (*apply) ControlMessage() {}

// Undelivered implements rt.Undeliverable.
func (m *apply) Undelivered() { close(m.reply) }
