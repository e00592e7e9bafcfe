package slot

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// holder is the provider that serves the slot. A change replaces the value.
type holder struct {
	claim     *msg.ClaimSlot
	gen       uint64
	since     time.Time
	aggregate bool
	answered  bool // it has sent a JSON-RPC message
}

// decision is a claim that waits for the holder's word on its liveness.
type decision struct {
	claim *msg.ClaimSlot
	gen   uint64 // the holder that was asked
}

// claim decides about a newcomer. A held slot is a message exchange: the holder
// is asked whether its socket is open and its peer still answers.
func (s *State) claim(now time.Time, c *msg.ClaimSlot) {
	h := s.holder
	switch {
	case h == nil:
		s.attach(now, c)
	case h.claim.Claimant == c.Claimant && c.Kind == msg.Upstream && h.claim.Conduit != c.Conduit:
		s.lose(wire.Disconnected(s.name), nil) // its connection has ended before this claim was made
		s.attach(now, c)
	case h.claim.Claimant == c.Claimant:
		s.grant(h)
	case h.claim.Kind == msg.Loopback:
		s.refuse(c, c.Refused(wire.ReservedSlot(s.name), "reserved system slot, held by a provider in this process"))
	case len(s.deciding) >= maxClaims:
		s.refuseHeld(c, "Too many claims on the slot are being decided.")
	default:
		s.deciding = append(s.deciding, decision{c, h.gen})
		s.tell(h.claim.Claimant, &msg.LivenessAsked{Slot: s.name, Gen: h.gen, Asker: s.self})
	}
}

// livenessReport decides the oldest claim that waits for it.
func (s *State) livenessReport(now time.Time, m *msg.LivenessReport) {
	for i, d := range s.deciding {
		if d.gen != m.Gen {
			continue
		}
		s.deciding = append(append([]decision(nil), s.deciding[:i]...), s.deciding[i+1:]...)
		s.decide(now, d.claim, m)
		return
	}
}

func (s *State) decide(now time.Time, c *msg.ClaimSlot, m *msg.LivenessReport) {
	if s.holder == nil || s.holder.gen != m.Gen {
		s.claim(now, c)
		return
	}
	if !m.Open {
		s.takeOver(now, c)
		return
	}
	mode := s.cfg.Takeover
	if mode == Always {
		if s.samePrincipal(c) {
			s.log(slog.LevelWarn, `[broker] provider "%s": takeover mode "always" terminated the incumbent socket for a newcomer of the same principal`, s.name)
			s.takeOver(now, c)
			return
		}
		s.log(slog.LevelWarn, `[broker] provider "%s": takeover mode "always" was not honored and fell back to "liveness": it needs providerAuth, with both sockets authenticated as one principal`, s.name)
		mode = Liveness
	}
	if mode == Liveness && s.cfg.HeartbeatInterval > 0 && m.Outstanding >= LivenessGrace(s.cfg.HeartbeatInterval) {
		s.log(slog.LevelWarn, `[broker] provider "%s": the incumbent socket missed its last heartbeat (unanswered for %dms) and was terminated for a newcomer`,
			s.name, m.Outstanding.Milliseconds())
		s.takeOver(now, c)
		return
	}
	s.refuseHeld(c, s.whyHeld(mode))
}

// LivenessGrace is how long a ping must have gone unanswered before it counts as
// missed: half the interval, 5 s at most (F-10).
func LivenessGrace(interval time.Duration) time.Duration {
	return min(interval/2, maxLivenessGrace)
}

func (s *State) samePrincipal(c *msg.ClaimSlot) bool {
	return c.Principal != "" && c.Principal == s.holder.claim.Principal
}

func (s *State) whyHeld(mode Takeover) string {
	switch {
	case mode == Reject:
		return `providerTakeover is "reject", so a connected incumbent is never replaced.`
	case s.cfg.HeartbeatInterval == 0:
		return `The heartbeat is disabled (providerHeartbeatIntervalMs: 0), so nothing can show that the incumbent is dead.`
	}
	return "The incumbent answered the last heartbeat."
}

func (s *State) refuseHeld(c *msg.ClaimSlot, why string) {
	err := wire.AlreadyConnected(s.name, why, s.recovery(c))
	s.remember(c)
	refusal := c.Refused(err, "")
	refusal.Held, refusal.CloseReason = true, wire.CloseReason(wire.HeldReason(s.name))
	s.refuse(c, refusal)
}

// recovery is what whoever runs a refused provider can do.
func (s *State) recovery(c *msg.ClaimSlot) string {
	if c.Kind == msg.Upstream {
		return "A provider that comes by itself holds the slot of this upstream: give its entry in the configuration another name, or end the provider; the upstream is started as soon as the slot is free."
	}
	if ms := s.cfg.HeartbeatInterval.Milliseconds(); ms > 0 {
		return fmt.Sprintf("If it is dead, wait up to %dms for the heartbeat to notice; or close the old socket, or publish under another name.", ms)
	}
	return "Enable the heartbeat, close the old socket, or publish under another name."
}

func (s *State) refuse(c *msg.ClaimSlot, r *msg.ClaimRefused) { s.tell(c.Claimant, r) }

// refuseAll answers every claim that waits for a decision or for the slot.
func (s *State) refuseAll(err *wire.Error) {
	for _, d := range s.deciding {
		s.refuse(d.claim, d.claim.Refused(err, ""))
	}
	for _, w := range s.waiting {
		s.refuse(w, w.Refused(err, ""))
	}
	s.deciding, s.waiting = nil, nil
}

// remember keeps the claim of a shared socket, which has no other way to learn
// that the slot is free again (F-42).
func (s *State) remember(c *msg.ClaimSlot) {
	if c.Kind != msg.Multiplexed || len(s.waiting) >= maxClaims {
		return
	}
	for _, w := range s.waiting {
		if w.Claimant == c.Claimant {
			return
		}
	}
	s.waiting = append(s.waiting, c)
}

func (s *State) withdraw(m *msg.WithdrawClaim) {
	s.waiting = without(s.waiting, func(w *msg.ClaimSlot) bool { return w.Claimant == m.Claimant })
	s.deciding = without(s.deciding, func(d decision) bool { return d.claim.Claimant == m.Claimant })
}

// takeOver gives the slot to c. The old holder's callers are told at once
// (F-11); its socket's later messages carry an old generation.
func (s *State) takeOver(now time.Time, c *msg.ClaimSlot) {
	old := s.holder
	s.tell(old.claim.Claimant, &msg.EvictHolder{Slot: s.name, Gen: old.gen})
	s.detach(wire.Disconnected(s.name))
	s.attach(now, c)
}

// attach makes c the holder. Claims that wait for the word of an older holder,
// which may never come, are put to the new one.
func (s *State) attach(now time.Time, c *msg.ClaimSlot) {
	s.lastGen++
	s.holder = &holder{claim: c, gen: s.lastGen, since: now, aggregate: c.Aggregate}
	copy(s.attached[1:], s.attached[:])
	s.attached[0] = now
	s.waiting = without(s.waiting, func(w *msg.ClaimSlot) bool { return w.Claimant == c.Claimant })
	s.expected, s.absent = false, nil
	s.grant(s.holder)
	s.changed()
	s.replay(now)
	if !s.holding() {
		s.release(now)
	}
	open := s.deciding
	s.deciding = nil
	for _, d := range open {
		s.claim(now, d.claim)
	}
}

func (s *State) grant(h *holder) {
	s.tell(h.claim.Claimant, &msg.ClaimGranted{Slot: s.name, Ref: s.self, Gen: h.gen, Conduit: h.claim.Conduit})
}

// detach empties the slot; why answers the calls in flight. What was learned from
// the old holder does not hold for the next one.
func (s *State) detach(why *wire.Error) {
	s.failAll(why)
	s.holder, s.drain, s.initAnswer, s.initialized = nil, drain{}, nil, false
	s.heardAt, s.unheard = time.Time{}, 0
}

func (s *State) providerGone(now time.Time, m *msg.ProviderGone) {
	if s.holder == nil || s.holder.gen != m.Gen {
		return
	}
	owners := s.ownersHold()
	s.rejoins, s.silent = owners && s.holder.aggregate, m.Silent
	why := cmp.Or(m.Why, wire.Disconnected(s.name))
	s.lose(why, m.Unsent)
	s.expected = owners && !m.Final // the owner says what is to come
	s.changed()
	if m.Final {
		s.failHeld(why) // behind the word to the registry: who asks then finds the slot empty
	}
	switch {
	case len(s.deciding) > 0:
		next := s.deciding[0].claim
		s.deciding = append([]decision(nil), s.deciding[1:]...)
		s.attach(now, next)
	case len(s.waiting) > 0:
		s.attach(now, s.waiting[0])
	case s.owner != nil && !owners:
		s.tell(s.owner, &msg.SlotFree{Slot: s.name})
	}
}
