package slot

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"mcpbroker/actors/msg"
)

// snapshot writes down everything a State remembers. Messages it keeps appear by
// address, what it owns by value; deadlines are a set.
func snapshot(s *State) []string {
	lines := []string{
		holderText(s.holder) + fmt.Sprintf(" drain %v", s.drain),
		fmt.Sprintf("lastGen %d attached %v timer %d armed %v hold until %v", s.lastGen, s.attached, s.timerGen, s.armed, s.holdUntil),
		fmt.Sprintf("owner %v expected %v rejoins %v silent %v absent %v waits%s", s.owner, s.expected, s.rejoins, s.silent, s.absent, waitsText(s.waits)),
		fmt.Sprintf("initialize last %q answer %p leader %d initialized %v", s.lastInit, s.initAnswer, s.initLeader, s.initialized),
		fmt.Sprintf("queue %v held%s", addresses(s.initQueue), heldText(s.held)),
		fmt.Sprintf("waiting %v", addresses(s.waiting)),
		fmt.Sprintf("queued %d own %d reserved %d", s.queued, s.own, s.reserved),
		fmt.Sprintf("warned %v retired %v heard %v unheard %d", slices.Sorted(maps.Keys(s.warned)), s.retired, s.heardAt, s.unheard),
		fmt.Sprintf("abandoned %v next %d of %v", s.abandoned.ring, s.abandoned.next, slices.Sorted(maps.Keys(s.abandoned.set))),
	}
	for _, d := range s.deciding {
		lines = append(lines, fmt.Sprintf("deciding %p asked %d", d.claim, d.gen))
	}
	for _, id := range slices.Sorted(maps.Keys(s.members)) {
		m := s.members[id]
		lines = append(lines, fmt.Sprintf("member %d is %p %d kind %d used %v streaming %v can %b", id, m.ref, m.session, m.kind, m.lastUsed, m.streaming, m.can))
	}
	for _, c := range s.inOrder() {
		lines = append(lines, "pending "+callText(c))
	}
	for _, c := range s.asksInOrder() {
		lines = append(lines, "asked "+callText(c))
	}
	for _, uri := range s.uris() {
		lines = append(lines, fmt.Sprintf("subscription %q %s raw %s", uri, subText(s.subs[uri]), s.subs[uri].raw))
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
	return fmt.Sprintf("holder %p gen %d since %v aggregate %v answered %v", h.claim, h.gen, h.since, h.aggregate, h.answered)
}

func callText(c *call) string {
	return fmt.Sprintf("brk-%d of %v session %d number %d id %q token %q init %v role %d about %q within %d for %v started %v due %v retried %v cancelled %v unsent %v timed %v ours %v",
		c.id, c.client, c.session, c.number, c.origID, c.token, c.init, c.role, c.about, c.within, c.behind, c.started, c.deadline, c.retried, c.cancelled, c.unsent != nil, c.timed, c.ours)
}

// heldText shows by value what the slot has made itself.
func heldText(held []any) string {
	var b strings.Builder
	for _, h := range held {
		if m, ok := h.(*msg.ClientCall); ok && m.Retried {
			fmt.Fprintf(&b, " c%d #%d for %v again %s", m.Session, m.Call, m.For, m.Frame.Bytes)
			continue
		}
		fmt.Fprintf(&b, " %p", h)
	}
	return b.String()
}

func waitsText(waits []wait) string {
	var b strings.Builder
	for _, w := range waits {
		fmt.Fprintf(&b, "%s until %v", heldText([]any{w.call}), w.until)
	}
	return b.String()
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
		if waits := (*s.table(c))[c.id] == c; c.index != i || !waits {
			t.Fatalf("heap[%d] is brk-%d with index %d, waiting %v", i, c.id, c.index, waits)
		}
		if i > 0 && s.deadlines.less(i, (i-1)/2) {
			t.Fatalf("heap[%d] is due before its parent", i)
		}
	}
	timed := 0
	for _, table := range []map[uint64]*call{s.pending, s.asks} {
		for id, c := range table {
			if c.id != id {
				t.Fatalf("brk-%d is pending as %d", c.id, id)
			}
			if !c.deadline.IsZero() {
				timed++
			}
		}
	}
	if timed != len(s.deadlines.heap) {
		t.Fatalf("%d calls have a deadline, %d are in the heap", timed, len(s.deadlines.heap))
	}
	replayed := 0 // as many calls as there is room for may have waited for its provider
	if leader := s.pending[s.initLeader]; leader != nil && leader.origID == nil {
		replayed = 1
	}
	if n := s.load() - replayed; n > s.cfg.MaxPending {
		t.Fatalf("%d calls wait, MaxPending is %d", n, s.cfg.MaxPending)
	}
	if s.callers() > s.cfg.MaxSessions || len(s.deciding) > maxClaims || len(s.waiting) > maxClaims {
		t.Fatalf("bounds passed: %d members, %d claims decided, %d remembered", len(s.members), len(s.deciding), len(s.waiting))
	}
	if s.initLeader != 0 && (s.pending[s.initLeader] == nil || !s.pending[s.initLeader].init) {
		t.Fatalf("the leading initialize brk-%d is not pending", s.initLeader)
	}
	if s.initLeader == 0 && len(s.initQueue) > 0 {
		t.Fatalf("%d initializes wait for nobody", len(s.initQueue))
	}
	if s.holder == nil && (len(s.pending) > 0 || !s.holdUntil.IsZero() || len(s.initQueue) > 0 || len(s.held) > 0 && !s.expected) {
		t.Fatalf("calls wait on a slot without a provider")
	}
	if s.holder != nil && s.expected {
		t.Fatalf("a holder is waited for although there is one")
	}
	if s.draining() && (s.holder == nil || s.drain.told == s.owesClients()) {
		t.Fatalf("drained %t, the holder is %s", s.drain.told, holderText(s.holder))
	}
	checkWaits(t, s)
	checkSubscriptions(t, s)
	checkAsks(t, s)
}

// checkWaits: held calls have their times in order, and nothing else has one.
func checkWaits(t fatal, s *State) {
	t.Helper()
	for i, w := range s.waits {
		if !slices.Contains(s.held, any(w.call)) {
			t.Fatalf("c%d #%d waits without being held", w.call.Session, w.call.Call)
		}
		if i > 0 && w.until.Before(s.waits[i-1].until) {
			t.Fatalf("c%d #%d waits behind one that waits longer", w.call.Session, w.call.Call)
		}
	}
	for _, h := range s.held {
		m, ok := h.(*msg.ClientCall)
		if ok && !m.Timed && !slices.ContainsFunc(s.waits, func(w wait) bool { return w.call == m }) {
			t.Fatalf("c%d #%d is held for ever", m.Session, m.Call)
		}
	}
}

// checkSubscriptions: the counters and the pending calls agree with the table,
// and each entry is in one of the states its comments name.
func checkSubscriptions(t fatal, s *State) {
	t.Helper()
	queued, total := 0, 0
	perSession := map[uint64]int{}
	for uri, sub := range s.subs {
		queued += len(sub.queue)
		total += sub.size()
		checkSubscription(t, s, sub)
		if sub.uri != uri {
			t.Fatalf("%q is listed as %q", sub.uri, uri)
		}
		for session := range s.members {
			if sub.holds(session) {
				perSession[session]++
			}
		}
	}
	own := 0
	for _, c := range s.pending {
		if c.noLoad() {
			own++
		}
		if !c.role.own() {
			continue
		}
		if sub := s.subs[c.about]; sub == nil || sub.upstream != c.id {
			t.Fatalf("brk-%d is pending for %q, which does not wait for it", c.id, c.about)
		}
	}
	if queued != s.queued || own != s.own {
		t.Fatalf("%d queued and %d own are counted as %d and %d", queued, own, s.queued, s.own)
	}
	if total > s.cfg.MaxSubscriptionsPerSlot {
		t.Fatalf("%d subscriptions, the slot may have %d", total, s.cfg.MaxSubscriptionsPerSlot)
	}
	for session, n := range perSession {
		if n > s.cfg.MaxSubscriptionsPerClient {
			t.Fatalf("session %d has %d subscriptions, it may have %d", session, n, s.cfg.MaxSubscriptionsPerClient)
		}
	}
}

func checkSubscription(t fatal, s *State, sub *subscription) {
	t.Helper()
	asking := sub.state == subscribing || sub.state == unsubscribing
	switch {
	case asking != (sub.upstream != 0):
		t.Fatalf("%s asks the provider, or does not", subText(sub))
	case asking && (s.pending[sub.upstream] == nil || s.pending[sub.upstream].about != sub.uri):
		t.Fatalf("%s waits for a call that is not pending", subText(sub))
	case sub.state == active && (len(sub.subscribers) == 0 || len(sub.queue) > 0):
		t.Fatalf("%s is active for nobody, or makes somebody wait", subText(sub))
	case sub.state == inactive && s.holder != nil && !s.holding():
		t.Fatalf("%s is neither asked for nor gone", subText(sub))
	case s.holder == nil && (sub.state != inactive || len(sub.queue) > 0):
		t.Fatalf("%s waits without a provider", subText(sub))
	}
	seen := map[uint64]bool{}
	for _, session := range sub.subscribers {
		if seen[session] || s.members[session] == nil {
			t.Fatalf("%s lists session %d twice, or it has left", subText(sub), session)
		}
		seen[session] = true
	}
	for i, op := range sub.queue {
		if op.left && (i > 0 || !asking) || !op.left && s.members[op.call.Session] == nil {
			t.Fatalf("%s waits for nobody", subText(sub))
		}
	}
}

// checkAsks: what a client was asked belongs to a call of its own in flight.
func checkAsks(t fatal, s *State) {
	t.Helper()
	for _, a := range s.asks {
		c := s.pending[a.within]
		if s.holder == nil || c == nil || c.session != a.session || c.client == nil || s.members[a.session] == nil {
			t.Fatalf("brk-%d was asked for a call that is over", a.id)
		}
	}
	if len(s.asks) > s.cfg.MaxPending {
		t.Fatalf("%d asks, MaxPending is %d", len(s.asks), s.cfg.MaxPending)
	}
}
