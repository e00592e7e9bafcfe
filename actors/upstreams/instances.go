package upstreams

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"mcpbroker/actors/msg"
)

// answerPatience is how long the actors of upstreams have to describe themselves.
const answerPatience = 500 * time.Millisecond

// Instances describes all upstreams, by slot. One whose actor does not answer
// within 500 ms, since it failed and is about to be restarted, is msg.Unknown.
func (s *Set) Instances(ctx context.Context) ([]msg.Instance, error) {
	refs, err := s.refs(ctx)
	if err != nil {
		return nil, err
	}
	slots := slices.Sorted(maps.Keys(refs))
	answers := make([]<-chan msg.Instance, len(slots))
	for n, slot := range slots {
		answers[n] = inquire(refs[slot].ref)
	}
	patience, enough := context.WithTimeout(ctx, answerPatience)
	defer enough()
	var all []msg.Instance
	for n, slot := range slots {
		switch i, err := await(patience, answers[n]); {
		case err != nil && ctx.Err() != nil:
			return nil, fmt.Errorf("describe upstream %q: %w", slot, ctx.Err())
		case refs[slot].behind:
			all = append(all, behind(refs[slot].cfg, &i))
		case err == nil:
			all = append(all, i)
		case !errors.Is(err, ErrUnknown): // it has not been stopped meanwhile
			all = append(all, silent(refs[slot].cfg))
		}
	}
	return all, nil
}

// silent is an upstream whose actor does not answer.
func silent(c Config) msg.Instance {
	return msg.Instance{
		Slot: c.Slot, Kind: c.Kind, Target: c.Target, Aggregate: c.Aggregate, Isolated: c.Isolated,
		Verdict: msg.Unknown, Error: "its actor does not answer",
	}
}

// behind is an upstream that is started once the last one of its slot has ended. What is
// seen of that is the zero Instance when it has just done so.
func behind(c Config, last *msg.Instance) msg.Instance {
	return msg.Instance{
		Slot: c.Slot, Kind: c.Kind, Target: c.Target, Aggregate: c.Aggregate, Isolated: c.Isolated,
		Verdict: msg.Starting, Behind: true, Check: (&State{cfg: c}).subject(), PID: last.PID, Error: last.Error, Events: last.Events, Tail: last.Tail,
	}
}

// Instance describes one upstream.
func (s *Set) Instance(ctx context.Context, slot string) (msg.Instance, error) {
	refs, err := s.refs(ctx)
	if err != nil {
		return msg.Instance{}, err
	}
	u, ok := refs[slot]
	if !ok {
		return msg.Instance{}, fmt.Errorf("describe upstream %q: %w", slot, ErrUnknown)
	}
	i, err := describe(ctx, u.ref)
	if u.behind && (err == nil || ctx.Err() == nil) {
		return behind(u.cfg, &i), nil
	}
	return i, err
}

// inquire asks an upstream to describe itself; the channel is closed when it has
// stopped.
func inquire(ref msg.Ref) <-chan msg.Instance {
	reply := make(chan msg.Instance, 1)
	ref.Send(&msg.DescribeInstance{Reply: reply})
	return reply
}

func describe(ctx context.Context, ref msg.Ref) (msg.Instance, error) {
	return await(ctx, inquire(ref))
}

// await waits for an answer. One that is there is taken even when ctx has ended.
func await(ctx context.Context, answer <-chan msg.Instance) (msg.Instance, error) {
	select {
	case i, ok := <-answer:
		return given(i, ok)
	default:
	}
	select {
	case i, ok := <-answer:
		return given(i, ok)
	case <-ctx.Done():
		return msg.Instance{}, ctx.Err()
	}
}

func given(i msg.Instance, ok bool) (msg.Instance, error) {
	if !ok {
		return i, ErrUnknown
	}
	return i, nil
}
