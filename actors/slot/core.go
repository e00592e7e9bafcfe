package slot

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// Config is what a slot needs to know. The zero value has no deadlines, no
// heartbeat and the default bounds.
type Config struct {
	RequestTimeout    time.Duration // deadline of one answer; 0 is none
	HeartbeatInterval time.Duration // of provider sockets; 0 is off, and no liveness evidence
	Takeover          Takeover
	RelayInitialize   bool // relay every initialize instead of answering from the first
	RelayRequests     bool // put requests of the provider to its client

	MaxPending  int // calls in flight on the slot
	MaxSessions int

	MaxSubscriptionsPerClient int
	MaxSubscriptionsPerSlot   int
	MaxURILength              int // in UTF-16 units

	// MayRead decides, for each update of a resource, whether a subscriber may
	// still see it; nil lets everybody.
	MayRead func(session uint64, uri string) bool

	Identity string // JSON clientInfo of an initialize of the broker's own

	NextID func() uint64 // process-wide counter behind "brk-<n>"
}

// Takeover is the rule for a claim on a held slot (spec 01 2.5).
type Takeover string

const (
	Reject   Takeover = "reject"
	Liveness Takeover = "liveness"
	Always   Takeover = "always"
)

// Bounds without a configuration key.
const (
	maxClaims        = 64 // claims being decided, and claims remembered, each
	rememberedIDs    = 1024
	progressCap      = 10 // a call lives at most this many deadlines, whatever its progress
	replayPatience   = time.Second
	maxLivenessGrace = 5 * time.Second
)

// State is a slot between two messages.
type State struct {
	name string
	cfg  Config
	self msg.Ref

	vars
	members   map[uint64]*member
	pending   map[uint64]*call
	subs      map[string]*subscription
	asks      map[uint64]*call // requests of the provider that wait for a client
	deadlines deadlines
	abandoned abandoned

	effects []Effect
	journal []func()
}

// vars are the parts of a State small enough to be copied before each step.
// Their slices are never written below their length, so that a copied header
// restores them.
type vars struct {
	holder   *holder // replaced, never changed in place
	drain    drain   // of the holder
	lastGen  uint64
	attached [msg.FlapCount]time.Time // newest first

	owner    msg.Ref     // of the slot of an upstream
	expected bool        // the owner is connecting: hold calls back
	rejoins  bool        // what it connects again was in _all
	absent   *wire.Error // why the owner is not connected
	silent   bool        // the last holder did not answer a ping

	deciding []decision       // claims that wait for the holder's liveness
	waiting  []*msg.ClaimSlot // refused multiplexed claims, oldest first

	lastInit    []byte // params of the last client initialize
	initAnswer  *wire.Frame
	initLeader  uint64 // broker id of the initialize in flight; 0 is none
	initQueue   []*msg.ClientCall
	initialized bool // the holder has had notifications/initialized

	reserved int // sessions of reserved slots among the members

	queued int // subscription requests that wait, over all URIs
	own    int // pending calls that are no load: about subscriptions, or of the broker's own

	holdUntil time.Time // calls are held behind a replayed initialize; zero is not
	held      []any     // *msg.ClientCall, *msg.ClientNote
	waits     []wait    // of held calls, by time

	warned   map[warning]bool // replaced as a whole, see warnOnce
	armed    time.Time
	timerGen uint64
	retired  bool

	heardAt time.Time // when the holder last answered a request, or told of a call's progress
	unheard int       // calls that expired since, and had been sent since: it seems to hang
}

type member struct {
	ref       msg.Ref
	session   uint64
	lastUsed  time.Time
	streaming bool
	kind      msg.ClientKind
	can       mcp.Capability
}

// New returns an empty slot.
func New(name string, cfg Config) *State {
	cfg.MaxPending = cmp.Or(cfg.MaxPending, 1024)
	cfg.MaxSessions = cmp.Or(cfg.MaxSessions, 10000)
	cfg.MaxSubscriptionsPerClient = cmp.Or(cfg.MaxSubscriptionsPerClient, 64)
	cfg.MaxSubscriptionsPerSlot = cmp.Or(cfg.MaxSubscriptionsPerSlot, 1024)
	cfg.MaxURILength = cmp.Or(cfg.MaxURILength, 2048)
	cfg.Identity = cmp.Or(cfg.Identity, `{"name":"mcp-broker","version":"dev"}`)
	return &State{name: name, cfg: cfg}
}

// Effect is one thing the shell does after a step, in order. Exactly one of the
// groups is set.
type Effect struct {
	To      msg.Ref // send Message to To
	Message any

	Conduit msg.Conduit // hand Frame to the provider
	Frame   []byte
	Class   mcp.Class

	Credit msg.Credit // give back

	Log   string // log at Level
	Level slog.Level

	Wake    time.Duration // post a TimerDue{WakeGen} to self after this long
	WakeGen uint64

	Changed bool // tell the registry the slot's Info
	Asked   bool // and that it stays, since it is in use
	Failing bool // tell the registry that the slot gives up
	Retired bool // the slot is unused: stop
}

// Step applies one message. The returned effects are valid until the next step.
func (s *State) Step(now time.Time, message any) []Effect {
	saved := s.vars
	s.begin()
	committed := false
	defer func() {
		if !committed {
			s.rollback(saved)
		}
	}()
	s.handle(now, message)
	s.tellDrained()
	s.wake(now)
	committed = true
	return s.effects
}

// begin clears the scratch of the last step, and lets go of it after a large one.
func (s *State) begin() {
	const keep = 64
	clear(s.effects)
	clear(s.journal)
	s.effects, s.journal = s.effects[:0], s.journal[:0]
	if cap(s.journal) > keep {
		s.journal = nil
	}
}

// rollback undoes a half-done step, newest change first.
func (s *State) rollback(saved vars) {
	for i := len(s.journal) - 1; i >= 0; i-- {
		s.journal[i]()
	}
	s.vars = saved
	s.effects, s.journal = s.effects[:0], s.journal[:0]
}

func (s *State) undo(fn func()) { s.journal = append(s.journal, fn) }

func (s *State) handle(now time.Time, message any) {
	switch m := message.(type) {
	case *msg.ClientCall:
		s.clientCall(now, m)
	case *msg.ProviderFrame:
		s.giveBack(m.Credit)
		s.providerFrame(now, m)
	case *msg.ClientNote:
		s.clientNote(now, m)
	case *msg.ClientAnswer:
		s.clientAnswer(now, m)
	case *msg.AskUndeliverable:
		s.askUndeliverable(now, m)
	case *msg.CallerLeft:
		s.callerLeft(m)
	case *msg.CallerLate:
		s.callerLate(now, m)
	case *msg.JoinSlot:
		s.join(now, m)
	case *msg.LeaveSlot:
		s.leave(now, m)
	case *msg.StreamChanged:
		s.streamChanged(now, m)
	case *msg.ClaimSlot:
		s.claim(now, m)
	case *msg.LivenessReport:
		s.livenessReport(now, m)
	case *msg.ProviderGone:
		s.providerGone(now, m)
	case *msg.WithdrawClaim:
		s.withdraw(m)
	case *msg.ProviderJunk:
		s.giveBack(m.Credit)
		s.providerJunk(m)
	case *msg.ProviderRefusal:
		s.giveBack(m.Credit)
		s.providerRefusal(now, m)
	case *msg.DrainProvider:
		s.drainProvider(m)
	case *msg.ProviderRenewed:
		s.providerRenewed(m)
	case *msg.TimerDue:
		s.timerDue(now, m)
	case *msg.CallCrashed:
		s.callCrashed(now, m)
	case *msg.OwnSlot:
		s.ownedBy(m)
	case *msg.DisownSlot:
		s.disowned(m)
	case *msg.HolderExpected:
		s.holderExpected(m)
	case *msg.HolderFailed:
		s.holderFailed(m)
	case *msg.RetireSlot:
		s.retire(now, m)
	case *msg.EndIdle:
		s.endIdle(now, m)
	case refused:
		s.noteUnsent(m.frames)
	case giveUp:
		s.giveUp()
	}
}

// giveUp is the shell's word that the actor is being stopped.
type giveUp struct{}

// giveUp fails everything that depends on the slot: it crashed too often, or the
// broker stops with the slot still in use.
func (s *State) giveUp() {
	s.effects = append(s.effects, Effect{Failing: true})
	s.failAll(wire.SlotFailed(s.name))
	if h := s.holder; h != nil {
		s.tell(h.claim.Claimant, &msg.EvictHolder{Slot: s.name, Gen: h.gen, Failed: true})
		s.holder, s.drain = nil, drain{}
	}
	s.refuseAll(wire.SlotFailed(s.name))
	for _, m := range s.members {
		s.tell(m.ref, &msg.SlotLost{})
	}
}

func (s *State) retire(now time.Time, m *msg.RetireSlot) {
	info := s.Info()
	free := s.owner == nil && !info.Connected && len(s.deciding) == 0 && len(s.waiting) == 0
	switch {
	case free && info.Unused():
	case free && m.Unserved && info.Gen == 0 && !s.idleSince().IsZero():
		s.endSessions(now, "maxSlots")
	default:
		s.effects = append(s.effects, Effect{Changed: true, Asked: true})
		return
	}
	s.retired = true
	s.effects = append(s.effects, Effect{Retired: true})
}

// Info describes the slot for the inventory.
func (s *State) Info() msg.SlotInfo {
	info := msg.SlotInfo{
		Name: s.name, Transport: msg.NoProvider, Gen: s.lastGen, Attached: s.attached,
		SubscriptionCount: s.subscriptionCount(),
		PendingCount:      s.load(), MaxPending: s.cfg.MaxPending, OldestPending: s.oldestPending(),
		IdleSince: s.idleSince(),
	}
	for _, m := range s.members {
		m.kind.Count(&info)
	}
	if h := s.holder; h != nil {
		info.Transport, info.Connected = h.claim.Kind, true
		info.Aggregate, info.ConnectedSince, info.Answered = h.aggregate, h.since, h.answered
	} else {
		info.Expected, info.Aggregate = s.expected, s.expected && s.rejoins
		info.LeftSilent = s.silent
	}
	return info
}

func (s *State) tell(to msg.Ref, message any) {
	if to != nil {
		s.effects = append(s.effects, Effect{To: to, Message: message})
	}
}

// toProvider sends a frame to the present holder.
func (s *State) toProvider(frame []byte, class mcp.Class) {
	s.effects = append(s.effects, Effect{Conduit: s.holder.claim.Conduit, Frame: frame, Class: class})
}

func (s *State) giveBack(credit msg.Credit) {
	if credit != nil {
		s.effects = append(s.effects, Effect{Credit: credit})
	}
}

func (s *State) changed() { s.effects = append(s.effects, Effect{Changed: true}) }

func (s *State) log(level slog.Level, format string, args ...any) {
	s.effects = append(s.effects, Effect{Log: fmt.Sprintf(format, args...), Level: level})
}

// warning names a fault that is logged once per slot.
type warning string

const (
	warnJunk       warning = "junk"
	warnUnmatched  warning = "unmatched"
	warnOpened     warning = "opened"
	warnBrokerNote warning = "broker note"
	warnNoURI      warning = "no uri"
	warnNoOwner    warning = "progress"
	warnHeld       warning = "held"
)

func (s *State) warnOnce(w warning, format string, args ...any) {
	if s.warned[w] {
		return
	}
	warned := map[warning]bool{w: true}
	for k := range s.warned {
		warned[k] = true
	}
	s.warned = warned
	s.log(slog.LevelWarn, format, args...)
}
