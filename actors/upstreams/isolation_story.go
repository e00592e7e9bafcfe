package upstreams

import (
	"context"
	"fmt"
	"slices"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
)

// An isolated upstream is as well as the worst of its sessions. While there is none,
// what is known of it is how the last session fared.

// story is what is remembered of the upstreams of sessions, which end with them.
type story struct {
	events history
	last   *msg.Instance // as the last one that failed was
	failAt time.Time
	goodAt time.Time // when one last came up
}

// privateFailed: the upstream of a session could not be started, or ended.
type privateFailed struct {
	at       time.Time
	instance msg.Instance
}

// privateServes: the upstream of a session has come up.
type privateServes struct{ at time.Time }

// ControlMessage implements rt.Control.
func (*privateFailed) ControlMessage() {}

// ControlMessage implements rt.Control.
func (*privateServes) ControlMessage() {}

func (s *story) failed(m *privateFailed) {
	s.last, s.failAt = &m.instance, m.at
	s.events = s.events.with(m.at, "the process of a session failed: "+m.instance.Error)
}

func (s *story) serves(m *privateServes) {
	s.goodAt = m.at
	s.events = s.events.with(m.at, "the process of a session is up")
}

// describePatience is how long the upstreams of sessions have to describe themselves. It
// is shorter than what the isolator has.
const describePatience = answerPatience / 2

// describe answers beside the actor.
func (i *isolator) describe(m *msg.DescribeInstance) {
	d := msg.Instance{
		Slot: i.cfg.Slot, Kind: i.cfg.Kind, Target: i.cfg.Target, Aggregate: i.cfg.Aggregate, Isolated: true,
		Verdict: msg.Starting, Check: "one process for each session", Sessions: len(i.privates), Events: i.story.events,
	}
	if i.story.last != nil {
		d.Tail = i.story.last.Tail
		if i.story.failAt.After(i.story.goodAt) {
			assume(&d, i.story.last)
		}
	}
	var refs []*rt.Ref
	for _, p := range i.inOrder() {
		refs = append(refs, p.upstream)
	}
	if len(refs) == 0 {
		m.Reply <- d
		return
	}
	d.Since = i.since
	i.sys.Go(func() {
		sum(&d, interview(refs))
		m.Reply <- d
	})
}

// interview has upstreams describe themselves, all at once. Those that do not are left
// out.
func interview(refs []*rt.Ref) []msg.Instance {
	answers := make([]<-chan msg.Instance, len(refs))
	for n, ref := range refs {
		answers[n] = inquire(ref)
	}
	ctx, cancel := context.WithTimeout(context.Background(), describePatience)
	defer cancel()
	var all []msg.Instance
	for _, answer := range answers {
		if i, err := await(ctx, answer); err == nil {
			all = append(all, i)
		}
	}
	return all
}

// sum makes d as bad as the worst of all.
func sum(d *msg.Instance, all []msg.Instance) {
	var worst *msg.Instance
	alike := 0
	for n := range all {
		i := &all[n]
		d.Restarts += i.Restarts
		switch {
		case worst == nil || badness(i.Verdict) > badness(worst.Verdict):
			worst, alike = i, 1
		case i.Verdict == worst.Verdict:
			alike++
		}
	}
	if worst == nil {
		return
	}
	assume(d, worst)
	if len(worst.Tail) > 0 {
		d.Tail = worst.Tail
	}
	if d.Error != "" && len(all) > 1 {
		d.Error = fmt.Sprintf("%s (%d of %d sessions are like this)", d.Error, alike, len(all))
	}
}

// assume makes d what is known of the upstream of a session.
func assume(d, i *msg.Instance) {
	d.Verdict, d.Check, d.Error, d.Cause = i.Verdict, i.Check, i.Error, i.Cause
	d.Attempt, d.LastAttempt, d.NextRetry = i.Attempt, i.LastAttempt, i.NextRetry
	d.Unresolved, d.Denied, d.GaveUp, d.CrashLoop = i.Unresolved, i.Denied, i.GaveUp, i.CrashLoop
	d.Unremedied, d.ToolMissing = i.Unremedied, i.ToolMissing
}

// verdicts from good to bad.
var verdicts = []msg.Verdict{msg.Halted, msg.Healthy, msg.Live, msg.Starting, msg.Degraded, msg.Unhealthy, msg.Failed}

func badness(v msg.Verdict) int { return slices.Index(verdicts, v) }
