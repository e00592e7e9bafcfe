package aggregate

import (
	"fmt"
	"log/slog"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
	"mcpbroker/reserved/roster"
)

// Config is what the server needs to know. Only NextSession must be set.
type Config struct {
	ID          string        // tells this _all from those of other brokers; random where empty
	Version     string        // reported in serverInfo; "0" where empty
	MaxSessions int           // client sessions; 0 is 10000
	MaxPending  int           // calls in flight to all members together; 0 is 16384
	Resources   bool          // unite resources too, under URIs that name their owner
	NextSession func() uint64 // process-wide counter behind session numbers
	Trace       func() string // a fresh traceparent for requests of its own; nil makes random ones

	// RequestTimeout is how long a call may take that waits for a member that is being
	// started again, the deadline slots have for an answer; 0 is none.
	RequestTimeout time.Duration
}

// State is the server between two messages.
type State struct {
	cfg      Config
	self     msg.Ref
	registry msg.Ref
	address  func(session uint64) msg.Ref // where the member of that session answers to
	since    time.Time
	now      time.Time // of the present step

	clients *roster.Roster[client]
	callers int // clients that are not the broker's own

	members   map[string]*member    // by slot: those of _all, and those it misses
	joining   map[uint64]*member    // by session, from joining the slot to leaving it
	joined    []*member             // in join order; replaced, never changed in place
	gone      map[string]claim      // "tool name" of members that left: see remember.go
	startled  map[string]int        // by slot: providers in a row that a question ended, see startle
	retries   map[string]*member    // members with something to try again
	refreshes map[*member]time.Time // when members with stale lists are next asked for them
	held      int                   // bytes of all lists

	calls    map[uint64]*call // of clients, by our number
	asks     map[uint64]*call // what a member asked a client, by the broker's id
	lastCall uint64

	catalogs [kinds]*catalog // nil: to be made again
	versions [kinds]uint64
	named    [resources]naming // what the catalog made last calls its items
	notes    [kinds][]byte     // the _meta of each list, nil: to be made again

	expiry   time.Time // no call that waits for a member, or has, is due earlier; zero is none
	armed    time.Time
	timerGen uint64

	effects []Effect
	journal []func()
}

// client is what is kept of a session.
type client struct {
	can   mcp.Capability   // what it can be asked
	calls map[uint64]*call // in flight, by the session's number
}

// Effect is one thing the shell does after a step, in order. Exactly one of the
// groups is set.
type Effect struct {
	To      msg.Ref // send Message to To
	Message any

	Log   string // log at Level
	Level slog.Level

	Wake    time.Duration // post a retryDue{WakeGen} to self after this long
	WakeGen uint64

	Changed bool // tell the registry the slot's Info
}

// NewState returns a server without members. address gives each membership an
// address of its own.
func NewState(cfg Config, registry msg.Ref, address func(session uint64) msg.Ref) *State {
	if cfg.Version == "" {
		cfg.Version = "0"
	}
	if cfg.MaxPending <= 0 {
		cfg.MaxPending = 16384
	}
	return &State{
		cfg: cfg, registry: registry, address: address,
		clients: roster.New[client](wire.SlotAggregate, cfg.MaxSessions),
		members: map[string]*member{}, joining: map[uint64]*member{}, gone: map[string]claim{},
		startled: map[string]int{}, retries: map[string]*member{}, refreshes: map[*member]time.Time{}, calls: map[uint64]*call{}, asks: map[uint64]*call{},
	}
}

// Step applies one message. The returned effects are valid until the next step.
func (s *State) Step(now time.Time, message any) []Effect {
	s.begin()
	s.now = now
	committed := false
	defer func() {
		if !committed {
			s.rollback()
		}
	}()
	s.handle(message)
	s.wake()
	committed = true
	return s.effects
}

// handle applies a message. What the roster changes cannot be undone: handlers
// call it last.
func (s *State) handle(message any) {
	switch m := message.(type) {
	case *msg.ClientCall:
		s.clientCall(m)
	case *fromMember:
		s.fromMember(m)
	case progressed:
		s.progressed(m.progress)
	case *listChanged:
		s.listChanged(m)
	case *msg.ClientNote:
		s.clientNote(m)
	case *msg.ClientAnswer:
		s.clientAnswer(m)
	case *msg.AskUndeliverable:
		s.askUndeliverable(m)
	case *msg.CallerLeft:
		s.callerLeft(m)
	case *msg.JoinSlot:
		s.clientJoins(m)
	case *msg.LeaveSlot:
		s.clientLeaves(m)
	case *clientEvicted:
		s.endCalls(m.member)
	case *msg.StreamChanged:
		s.clients.StreamChanged(s.now, m)
	case *msg.SlotObserved:
		s.observed(&m.Info)
	case *msg.SlotForgotten:
		s.forgotten(m.Name)
	case *callCrashed:
		s.callCrashed(m)
	case *retryDue:
		s.retryDue(m)
	case started:
		set(s, &s.since, s.now)
		s.tell(s.registry, &msg.WatchSlots{Watcher: s.self})
	case giveUp:
		s.giveUp()
	}
}

// started is the shell's word that the actor runs, giveUp that it ends.
type (
	started struct{}
	giveUp  struct{}
)

// control marks messages of this package that may use a mailbox's headroom.
type control struct{}

// ControlMessage implements the marker of actors/rt.
func (control) ControlMessage() {}

// giveUp answers everybody who waits: the broker stops.
func (s *State) giveUp() {
	for _, c := range s.clients.All() {
		for _, call := range byNumber(c.Data.calls) {
			s.finish(call)
			s.tell(c.Ref, &msg.CallFailed{Call: call.theirs, Err: wire.SessionClosed()})
		}
	}
	for _, m := range s.bySlot() {
		if m.session != 0 {
			s.leaveSlot(m)
		}
	}
}

func (s *State) tell(to msg.Ref, message any) {
	if to != nil {
		s.effects = append(s.effects, Effect{To: to, Message: message})
	}
}

func (s *State) log(level slog.Level, format string, args ...any) {
	s.effects = append(s.effects, Effect{Log: fmt.Sprintf("[broker] aggregate: "+format, args...), Level: level})
}
