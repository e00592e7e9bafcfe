package slot

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// snapshot writes down everything a State remembers. Messages it keeps appear by
// address, what it owns by value; deadlines are a set.
func snapshot(s *State) []string {
	lines := []string{
		holderText(s.holder),
		fmt.Sprintf("lastGen %d timer %d armed %v hold until %v", s.lastGen, s.timerGen, s.armed, s.holdUntil),
		fmt.Sprintf("initialize last %q answer %p leader %d initialized %v", s.lastInit, s.initAnswer, s.initLeader, s.initialized),
		fmt.Sprintf("queue %v held %v", addresses(s.initQueue), addresses(s.held)),
		fmt.Sprintf("waiting %v", addresses(s.waiting)),
		fmt.Sprintf("warned %v retired %v", slices.Sorted(maps.Keys(s.warned)), s.retired),
		fmt.Sprintf("abandoned %v next %d of %v", s.abandoned.ring, s.abandoned.next, slices.Sorted(maps.Keys(s.abandoned.set))),
	}
	for _, d := range s.deciding {
		lines = append(lines, fmt.Sprintf("deciding %p asked %d", d.claim, d.gen))
	}
	for _, id := range slices.Sorted(maps.Keys(s.members)) {
		m := s.members[id]
		lines = append(lines, fmt.Sprintf("member %d is %p %d used %v streaming %v", id, m.ref, m.session, m.lastUsed, m.streaming))
	}
	for _, c := range s.inOrder() {
		lines = append(lines, "pending "+callText(c))
	}
	due := slices.Clone(s.deadlines.heap)
	sortCalls(due)
	for _, c := range due {
		lines = append(lines, fmt.Sprintf("due brk-%d at %v", c.id, c.deadline))
	}
	return lines
}

func holderText(h *holder) string {
	if h == nil {
		return "no holder"
	}
	return fmt.Sprintf("holder %p gen %d since %v aggregate %v", h.claim, h.gen, h.since, h.aggregate)
}

func callText(c *call) string {
	return fmt.Sprintf("brk-%d of %v session %d number %d id %q token %q init %v started %v due %v",
		c.id, c.client, c.session, c.number, c.origID, c.token, c.init, c.started, c.deadline)
}

func addresses[T any](list []T) string {
	var b strings.Builder
	for _, item := range list {
		fmt.Fprintf(&b, " %p", any(item))
	}
	return b.String()
}

// fatal is what the property tests fail with: a *testing.T or a *rapid.T.
type fatal interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkInvariants: the heap and the pending calls agree, and bounds hold.
func checkInvariants(t fatal, s *State) {
	t.Helper()
	for i, c := range s.deadlines.heap {
		if c.index != i || s.pending[c.id] != c {
			t.Fatalf("heap[%d] is brk-%d with index %d, pending %v", i, c.id, c.index, s.pending[c.id] == c)
		}
		if i > 0 && s.deadlines.less(i, (i-1)/2) {
			t.Fatalf("heap[%d] is due before its parent", i)
		}
	}
	timed := 0
	for id, c := range s.pending {
		if c.id != id {
			t.Fatalf("brk-%d is pending as %d", c.id, id)
		}
		if !c.deadline.IsZero() {
			timed++
		}
	}
	if timed != len(s.deadlines.heap) {
		t.Fatalf("%d calls have a deadline, %d are in the heap", timed, len(s.deadlines.heap))
	}
	if n := len(s.pending) + len(s.held) + len(s.initQueue); n > s.cfg.MaxPending {
		t.Fatalf("%d calls wait, MaxPending is %d", n, s.cfg.MaxPending)
	}
	if len(s.members) > s.cfg.MaxSessions || len(s.deciding) > maxClaims || len(s.waiting) > maxClaims {
		t.Fatalf("bounds passed: %d members, %d claims decided, %d remembered", len(s.members), len(s.deciding), len(s.waiting))
	}
	if s.initLeader != 0 && (s.pending[s.initLeader] == nil || !s.pending[s.initLeader].init) {
		t.Fatalf("the leading initialize brk-%d is not pending", s.initLeader)
	}
	if s.initLeader == 0 && len(s.initQueue) > 0 {
		t.Fatalf("%d initializes wait for nobody", len(s.initQueue))
	}
	if s.holder == nil && (len(s.pending) > 0 || s.holding() || len(s.initQueue) > 0) {
		t.Fatalf("calls wait on a slot without a provider")
	}
}
