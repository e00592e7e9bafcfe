package introspection

import (
	"cmp"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
	"mcpbroker/reserved/roster"
)

// Slot is the name of the slot this package serves.
const Slot = wire.SlotBroker

// Identity is what broker_info reports.
type Identity struct {
	Name      string
	Version   string
	StartedAt time.Time // zero: not started
	Host      string    // as configured
	Port      int       // the one clients reach, not the 0 that asked for any
	TLS       bool
	Paths     Paths
}

// Configuration is what became of the broker's configuration file since its start.
type Configuration struct {
	File       string    // empty: there is none
	ReloadedAt time.Time // when a change of it was last looked at; zero: never
	Refused    string    // why that was not taken; empty when it was
	Restart    []string  // settings that were taken and wait for a restart
}

// Paths are the effective URL paths of the broker.
type Paths struct {
	Provider  string `json:"provider"`
	Providers string `json:"providers"`
	Client    string `json:"client"`
	MCP       string `json:"mcp"`
	SSE       string `json:"sse"`
	Messages  string `json:"messages"`
}

// Topic is one page of the guide.
type Topic struct{ Topic, Title, Summary string }

// settings are what the core needs to know.
type settings struct {
	identity      Identity
	configuration func() Configuration // nil: not known
	aggregate     bool
	instances     bool // what asks upstreams can be served
	guide         func(topic string) (string, bool)
	topics        []Topic
	wordings      *wordings

	maxSessions, maxPending                   int
	maxSubsPerClient, maxSubsPerSlot, maxURIs int
}

func (c settings) withDefaults() settings {
	c.maxPending = cmp.Or(c.maxPending, 1024)
	c.maxSubsPerClient = cmp.Or(c.maxSubsPerClient, 64)
	c.maxSubsPerSlot = cmp.Or(c.maxSubsPerSlot, 1024)
	c.maxURIs = cmp.Or(c.maxURIs, 2048)
	return c
}

// State is the slot between two messages.
//
// A handler that may fail computes first and changes the state last, so that a
// panic changes nothing.
type State struct {
	cfg      settings
	registry msg.Ref
	self     msg.Ref
	since    time.Time

	sessions *roster.Roster[client]
	callers  int // sessions that are not the broker's own

	upstreams bool // the broker keeps some

	pending map[callKey]*question
	waiting []*question // for the next look at all slots; nil when none does
	looking bool        // a look at all slots is under way
	rounds  int         // under way, of both sorts

	subs     map[string]map[uint64]bool // URI to sessions
	subCount int
	dirty    map[string]bool // URIs to notify of with the flush that is under way
	seen     map[string]sight

	effects []Effect
}

// client is what the server keeps of one session.
type client struct {
	lists *lists // nil before initialize
	subs  map[string]bool
}

type member = roster.Member[client]

// Effect is one thing the shell does after a step, in order. Exactly one of the
// groups is set.
type Effect struct {
	To      msg.Ref // send Message to To
	Message any

	Ask *round // ask the slots, and post the roundDone

	Flush bool // post flushDue to self, behind what is queued
}

// newState returns the slot without sessions.
func newState(cfg settings, registry msg.Ref) *State {
	cfg = cfg.withDefaults()
	return &State{
		cfg: cfg, registry: registry, sessions: roster.New[client](Slot, cfg.maxSessions),
		pending: map[callKey]*question{}, subs: map[string]map[uint64]bool{},
		dirty: map[string]bool{}, seen: map[string]sight{},
	}
}

// begun is the shell's word that the actor runs, ending that it is being stopped.
type (
	begun  struct{}
	ending struct{}
)

// Step applies one message. The returned effects are valid until the next step.
func (s *State) Step(now time.Time, message any) []Effect {
	clear(s.effects)
	s.effects = s.effects[:0]
	switch m := message.(type) {
	case *msg.ClientCall:
		s.clientCall(now, m)
		s.sessions.Touch(now, m.Session)
	case *msg.ClientNote:
		s.sessions.Touch(now, m.Session) // there is none it would act on
	case *msg.JoinSlot:
		s.join(now, m)
	case *msg.LeaveSlot:
		s.leave(m.Session)
	case *msg.StreamChanged:
		s.sessions.StreamChanged(now, m)
	case *msg.CallerLeft:
		s.callerLeft(m)
	case *roundDone:
		s.roundDone(m)
	case *msg.SlotObserved:
		s.observed(m)
	case *msg.SlotForgotten:
		s.forgotten(m)
	case flushDue:
		s.flush()
	case *HaveInstances:
		s.haveInstances(m)
	case begun:
		s.since = now
		s.tell(s.registry, &msg.WatchSlots{Watcher: s.self})
	case ending:
		s.end()
	}
	return s.effects
}

func (s *State) tell(to msg.Ref, message any) {
	s.effects = append(s.effects, Effect{To: to, Message: message})
}

func (s *State) fail(m *msg.ClientCall, err *wire.Error) {
	s.tell(m.Client, &msg.CallFailed{Call: m.Call, Err: err})
}

func (s *State) reply(m *msg.ClientCall, result []byte) {
	s.tell(m.Client, &msg.CallReply{Call: m.Call, Frame: response(m.Frame.Raw(m.Frame.ID), result)})
}

func (s *State) join(now time.Time, m *msg.JoinSlot) {
	known := s.sessions.Get(m.Session) != nil
	member, evicted, sends := s.sessions.Join(now, m, s.self)
	for _, send := range sends {
		s.tell(send.To, send.Message)
	}
	before := s.callers
	if evicted != nil {
		s.release(evicted)
	}
	if member != nil && !known && member.Kind != msg.BrokerClient {
		s.callers++
	}
	s.usedChanged(before)
}

func (s *State) leave(session uint64) {
	gone := s.sessions.Leave(session)
	if gone == nil {
		return
	}
	before := s.callers
	s.release(gone)
	s.usedChanged(before)
}

// usedChanged tells the registry when the first caller comes and the last leaves.
func (s *State) usedChanged(before int) {
	if (before == 0) != (s.callers == 0) {
		s.tell(s.registry, &msg.SlotChanged{Info: s.Info()})
	}
}

// release forgets everything a session held or waited for.
func (s *State) release(gone *member) {
	for key := range s.pending {
		if key.session == gone.Session {
			s.drop(key)
		}
	}
	for uri := range gone.Data.subs {
		s.unsubscribe(gone, uri)
	}
	if gone.Kind != msg.BrokerClient {
		s.callers--
	}
}

// end answers those who wait.
func (s *State) end() {
	for _, q := range s.pending {
		s.tell(q.client, &msg.CallFailed{Call: q.call, Err: wire.SlotGone()})
	}
	clear(s.pending)
	s.waiting = nil
}

// Info describes the slot for the inventory.
func (s *State) Info() msg.SlotInfo {
	info := msg.SlotInfo{
		Name: Slot, Transport: msg.Loopback, Connected: true, Aggregate: s.cfg.aggregate, ConnectedSince: s.since, Gen: 1,
		SubscriptionCount: s.subCount, PendingCount: len(s.pending), MaxPending: s.cfg.maxPending,
		OldestPending: s.oldest(), Answered: true,
	}
	info.Attached[0] = s.since
	s.sessions.Count(&info)
	return info
}
