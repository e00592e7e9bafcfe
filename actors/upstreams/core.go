package upstreams

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// State is an upstream between two messages.
type State struct {
	cfg      Config
	identity string // JSON clientInfo of our own initialize
	session  uint64 // our session on the slot
	self     msg.Ref
	registry msg.Ref

	phase    phase
	gen      uint64 // of the present driver
	driver   msg.Driver
	pid      int
	slot     msg.Ref // of our session; nil until joined
	holding  msg.Ref // the slot's ref as its holder
	slotGen  uint64
	why      error       // of a stop under way: the attempt it ends failed, nil when it did not
	byHand   bool        // of a stop under way: an operator asked for a restart
	handMade bool        // the present attempt, or the last, is a restart by hand
	absent   *wire.Error // what the slot answers between two attempts
	denied   bool
	lacking  bool // the last attempt failed for want of a setting
	haltDone []chan<- struct{}
	handover bool // of a halt: another owner takes the slot

	starts    int
	failures  int  // failed attempts in a row
	deaths    int  // in a row, each before it had proved itself
	spared    bool // a death was forgiven since it last proved itself
	lastTry   time.Time
	nextTry   time.Time
	upSince   time.Time
	watched   holderID // of a watched slot
	lastError string
	tail      []string

	lastCall uint64
	check    check
	events   history
	verdict  msg.Verdict

	timerGen uint64
	armed    time.Time
	effects  []Effect
}

// Effect is one thing the shell does after a step, in order.
type Effect struct {
	To      msg.Ref // send Message to To
	Message any

	Start  uint64        // start a driver of this generation
	Cancel bool          // give up the driver that is being started
	Driver msg.Driver    // attach it, or stop it when Slot is nil
	Slot   msg.Ref       // with SlotGen
	Gen    uint64        // of the slot
	Grace  time.Duration // of a stop

	Log   string // at Level
	Level slog.Level

	Wake    time.Duration // post a timer message of generation WakeGen after this long
	WakeGen uint64

	Done chan<- struct{} // close
	Stop bool            // the actor has nothing left to do
}

// timerDue is the actor's own timer.
type timerDue struct{ gen uint64 }

// haltNow is the set's word that the upstream is not wanted any more. done is
// closed once its driver has ended. With handover the slot goes to another owner,
// and calls wait for it.
type haltNow struct {
	done     chan<- struct{}
	handover bool
}

// ControlMessage implements rt.Control.
func (timerDue) ControlMessage() {}

// ControlMessage implements rt.Control.
func (haltNow) ControlMessage() {}

// ControlMessage implements rt.Control.
func (started) ControlMessage() {}

// Undelivered implements rt.Undeliverable: an actor that has ended is halted.
func (m haltNow) Undelivered() { close(m.done) }

// started is the shell's word that the actor runs.
type started struct{}

// New returns an upstream that has not been started. identity is the clientInfo
// of the broker, session the number of its session on the slot.
func New(cfg Config, identity string, session uint64) *State {
	return &State{cfg: cfg.withDefaults(), identity: identity, session: session, phase: idle, verdict: msg.Starting}
}

// Step applies one message. Effects are valid until the next step.
func (s *State) Step(now time.Time, message any) []Effect {
	saved, committed := *s, false
	defer func() {
		if !committed {
			*s = saved
		}
	}()
	s.effects = nil
	s.handle(now, message)
	s.judge(now)
	s.wake(now)
	committed = true
	return s.effects
}

func (s *State) handle(now time.Time, message any) {
	switch m := message.(type) {
	case started:
		if s.cfg.Watch {
			s.tell(s.registry, &msg.WatchSlots{Watcher: s.self, Slot: s.cfg.Slot})
		}
		s.happen(now, news{event: start})
	case *msg.SlotObserved:
		s.observed(now, &m.Info)
	case *msg.SlotForgotten:
		s.slot = nil // to be entered again with the next provider
		s.observed(now, &msg.SlotInfo{Name: m.Name})
	case *msg.UpstreamOpened:
		if m.Gen == s.gen {
			s.driver = m.Driver
			s.happen(now, news{event: opened, pid: m.PID})
		}
	case *msg.UpstreamEnded:
		if m.Gen == s.gen {
			s.happen(now, news{event: ended, err: m.Err, tail: m.Tail, denied: m.Denied})
		}
	case *msg.UpstreamSaid:
		if m.Gen == s.gen {
			s.hear(m.Line)
		}
	case *msg.ClaimGranted:
		s.granted(now, m)
	case *msg.ClaimRefused:
		s.happen(now, news{event: refused, err: errors.New(m.Err.Message)})
	case *msg.LivenessAsked:
		if m.Asker != nil {
			s.tell(m.Asker, &msg.LivenessReport{Gen: m.Gen, Open: s.driver != nil})
		}
	case *msg.EvictHolder:
		if m.Gen == s.slotGen && s.holding != nil {
			s.holding = nil
			s.happen(now, news{event: evicted, err: errors.New("its slot failed")})
		}
	case *msg.SlotJoined:
		s.joined(now, m)
	case *msg.SlotLost:
		s.slot = nil // the registry tells an owner when there is another
		if s.cfg.Watch {
			s.joinSlot()
		}
	case *msg.SlotReplaced:
		s.replaced()
	case *msg.JoinRefused:
		s.slot = nil
		s.happen(now, news{event: rejected, err: errors.New(m.Err.Message)})
	case *msg.CallReply:
		s.answered(now, m)
	case *msg.CallFailed:
		s.unanswered(now, m)
	case *msg.ClientAsk:
		s.tell(s.slot, &msg.AskUndeliverable{Session: s.session, ID: m.ID})
	case *msg.RestartInstance:
		s.restartByHand(now)
	case haltNow:
		s.haltDone, s.handover = append(s.haltDone, m.done), m.handover
		s.happen(now, news{event: halt})
	case timerDue:
		s.timer(now, m)
	}
}

// attempt starts a driver; calls wait for it.
func (s *State) attempt(now time.Time, n news) {
	s.gen++
	s.starts++
	s.handMade = s.byHand || n.event == restart
	s.lastTry, s.nextTry, s.why, s.byHand, s.absent = now, time.Time{}, nil, false, nil
	s.tail = nil
	if s.slot == nil {
		s.enterSlot()
	}
	s.tell(s.registry, &msg.HolderExpected{Slot: s.cfg.Slot, Owner: s.self})
	s.note(now, fmt.Sprintf("start %d", s.starts))
	s.effects = append(s.effects, Effect{Start: s.gen})
}

func (s *State) claim(_ time.Time, n news) {
	s.pid = n.pid
	s.tell(s.registry, &msg.ClaimSlot{
		Slot: s.cfg.Slot, Claimant: s.self, Conduit: s.driver, Kind: msg.Upstream, Aggregate: s.cfg.Aggregate,
	})
}

// attach lets the driver's frames through to the slot.
func (s *State) attach(now time.Time, _ news) {
	s.effects = append(s.effects, Effect{Driver: s.driver, Slot: s.holding, Gen: s.slotGen})
	if s.slot != nil {
		s.greet(now)
	}
}

// serve begins a time of service.
func (s *State) serve(now time.Time, _ news) {
	s.upSince, s.lastError, s.denied, s.lacking = now, "", false, false
	s.note(now, "up")
	s.check = check{next: now}
}

// attemptFailed is a driver that ended before it served.
func (s *State) attemptFailed(now time.Time, n news) {
	s.lose(n)
	s.fail(now, n)
}

// died is a driver that ended while it served.
func (s *State) died(now time.Time, n news) {
	s.endService(now)
	s.lose(n)
	s.tryAgain(now, n)
}

// closed is the end of a driver that was told to stop.
func (s *State) closed(now time.Time, n news) {
	why, byHand, served := s.why, s.byHand, !s.upSince.IsZero()
	s.lose(n)
	switch {
	case byHand:
		s.attempt(now, news{})
		return
	case served && !n.denied:
		s.tryAgain(now, news{err: why, tail: n.tail})
		return
	}
	denied := s.denied || n.denied
	if n.denied && n.err != nil {
		why = n.err
	}
	s.fail(now, news{err: why, tail: n.tail, denied: denied})
}

// lose forgets the driver, and leaves the slot if it still holds it.
func (s *State) lose(n news) {
	s.leave(n)
	s.driver, s.pid, s.upSince, s.check = nil, 0, time.Time{}, check{}
	if len(n.tail) > 0 {
		s.tail = n.tail
	}
}

// leave gives the slot back; its callers are told what happened.
func (s *State) leave(n news) {
	if s.holding == nil {
		return
	}
	gone := &msg.ProviderGone{Gen: s.slotGen}
	if n.err != nil {
		gone.Why = wire.UpstreamLost(s.cfg.Slot, text(n.err))
	}
	s.tell(s.holding, gone)
	s.holding = nil
}

// stopDriver ends a connection; why it is not wanted any more is the outcome of
// the attempt.
func (s *State) stopDriver(now time.Time, n news) {
	s.why, s.denied, s.byHand = n.err, n.denied, n.event == restart
	if !s.byHand && n.event != halt {
		s.endService(now)
	}
	if n.event != halt && s.startsAtOnce() {
		s.tell(s.registry, &msg.HolderExpected{Slot: s.cfg.Slot, Owner: s.self})
	}
	if s.driver == nil {
		s.effects = append(s.effects, Effect{Cancel: true})
		return
	}
	s.effects = append(s.effects, Effect{Driver: s.driver, Grace: s.cfg.Grace})
}

// stopOpened stops a driver that opened after it had been given up.
func (s *State) stopOpened(time.Time, news) {
	s.effects = append(s.effects, Effect{Driver: s.driver, Grace: s.cfg.Grace})
}

// startsAtOnce tells whether the end of the driver is followed by a start, and not
// by a wait: calls that come meanwhile are held back.
func (s *State) startsAtOnce() bool { return s.byHand || !s.upSince.IsZero() && !s.spared }

// startAgain makes the attempt that follows a stop under way the operator's.
func (s *State) startAgain(time.Time, news) {
	s.byHand = true
	s.tell(s.registry, &msg.HolderExpected{Slot: s.cfg.Slot, Owner: s.self})
}

func (s *State) leaveAndStop(now time.Time, n news) {
	s.leave(n)
	s.stopDriver(now, n)
}

// halt is the end.
func (s *State) halt(_ time.Time, n news) {
	s.lose(n)
	s.nextTry, s.absent = time.Time{}, nil
	switch {
	case s.cfg.Watch:
	case s.handover:
		s.tell(s.registry, &msg.HolderExpected{Slot: s.cfg.Slot, Owner: s.self})
	default:
		s.tell(s.registry, &msg.DisownSlot{Slot: s.cfg.Slot, Owner: s.self})
	}
	if s.slot != nil {
		s.tell(s.slot, &msg.LeaveSlot{Session: s.session})
		s.slot = nil
	}
	for _, done := range s.haltDone {
		s.effects = append(s.effects, Effect{Done: done})
	}
	s.haltDone = nil
	s.effects = append(s.effects, Effect{Stop: true})
}

func (s *State) tell(to msg.Ref, message any) {
	if to != nil {
		s.effects = append(s.effects, Effect{To: to, Message: message})
	}
}

func (s *State) log(level slog.Level, format string, args ...any) {
	s.effects = append(s.effects, Effect{Log: fmt.Sprintf(format, args...), Level: level})
}

// text is an error as part of a sentence.
func text(err error) string {
	if err == nil {
		return "it ended"
	}
	return strings.TrimSuffix(err.Error(), ".")
}
