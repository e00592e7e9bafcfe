package upstreams

import (
	"time"

	"mcpbroker/actors/msg"
)

// enterSlot makes the slot ours, and enters it as a client: checks travel the way
// of every call.
func (s *State) enterSlot() {
	if !s.cfg.Watch {
		s.tell(s.registry, &msg.OwnSlot{Slot: s.cfg.Slot, Owner: s.self})
	}
	s.joinSlot()
}

func (s *State) joinSlot() {
	s.tell(s.registry, &msg.JoinSlot{Slot: s.cfg.Slot, Session: s.session, Client: s.self, Kind: msg.BrokerClient})
}

// replaced enters the slot that has taken the place of a failed one, which knows
// nothing of how we stand. Where a connection is on its way, or on its way out with
// the slot that held it, calls wait for what comes of it.
func (s *State) replaced() {
	if s.ending() {
		return
	}
	s.tellStanding(s.registry)
	if s.slot == nil {
		s.joinSlot()
	}
}

// tellStanding says whether calls are to wait for us, or why they need not.
func (s *State) tellStanding(to msg.Ref) {
	if s.absent != nil {
		s.tell(to, &msg.HolderFailed{Slot: s.cfg.Slot, Owner: s.self, Err: s.absent})
		return
	}
	s.tell(to, &msg.HolderExpected{Slot: s.cfg.Slot, Owner: s.self})
}

func (s *State) joined(now time.Time, m *msg.SlotJoined) {
	waited := s.slot == nil
	s.slot = m.Ref
	if waited && s.phase == handshaking {
		s.greet(now)
	}
}

// granted takes the slot, or gives it back at once: the driver it was asked for
// may have ended meanwhile, another may have asked since, and a slot with a dead
// holder answers nobody. The grant made the slot forget how we stand.
func (s *State) granted(now time.Time, m *msg.ClaimGranted) {
	if s.phase != claiming || m.Conduit != s.driver {
		s.tell(m.Ref, &msg.ProviderGone{Gen: m.Gen, Why: s.absent})
		if !s.ending() {
			s.tellStanding(m.Ref)
		}
		return
	}
	s.holding, s.slotGen = m.Ref, m.Gen
	s.happen(now, news{event: granted})
}
