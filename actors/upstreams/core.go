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

	phase     phase
	gen       uint64 // of the present driver
	driver    msg.Driver
	pid       int
	mask      func(string) string // takes the driver's secrets out of a text; nil knows of none
	detected  string              // transport the present driver, or the last, has found out
	slot      msg.Ref             // of our session; nil until joined
	holding   msg.Ref             // the slot's ref as its holder
	slotGen   uint64
	drainBy   time.Time   // when calls in flight have had their time
	stopBy    time.Time   // of a stop under way: when its end is not waited for any longer
	whyCause  msg.Cause   // of a stop under way, with why
	why       error       // of a stop under way: the attempt it ends failed, nil when it did not
	byHand    bool        // of a stop under way: an operator asked for a restart
	handMade  bool        // the present attempt, or the last, is a restart by hand
	absent    *wire.Error // what the slot answers between two attempts
	absentWhy string      // the cause in it
	denied    bool
	lacking   bool // the last attempt failed for want of a setting
	haltDone  []chan<- struct{}
	handover  bool // of a halt: another owner takes the slot

	starts    int
	failures  int       // failed attempts in a row
	deaths    int       // in a row, each before it had proved itself
	cause     msg.Cause // why it is not up, or was not last
	soon      soon      // tries ahead of the schedule
	slotFree  bool      // the slot it was refused has fallen free meanwhile
	spared    bool      // a death was forgiven since it last proved itself
	lastTry   time.Time
	nextTry   time.Time
	waitFrom  time.Time // of a wait: when it began
	upSince   time.Time
	watched   holderID // of a watched slot
	lastError string
	tail      tail

	lastCall uint64
	check    check
	remedy   remedy
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
	Stray  bool          // of a stop, and a Cancel: what it is about is none of ours any more

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
// and calls wait for it. Calls in flight get time to finish, unless atOnce.
type haltNow struct {
	done     chan<- struct{}
	handover bool
	atOnce   bool
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
		if m.Gen != s.gen {
			s.stopStray(m.Driver)
			break
		}
		s.driver, s.mask = m.Driver, m.Mask
		s.happen(now, news{event: opened, pid: m.PID})
	case *msg.UpstreamEnded:
		if m.Gen == s.gen {
			s.happen(now, news{event: ended, err: m.Err, exit: m.Exit, tail: m.Tail, denied: m.Denied, unsent: m.Unsent})
		}
	case *msg.UpstreamSaid:
		if m.Gen == s.gen {
			s.tail.say(m.Line, m.Stray)
		}
	case *msg.UpstreamDetected:
		if m.Gen == s.gen {
			s.detected = m.Transport
			s.note(now, "it speaks transport "+m.Transport)
		}
	case *msg.ClaimGranted:
		s.granted(now, m)
	case *msg.ClaimRefused:
		n := news{event: refused, err: errors.New(m.Err.Message), cause: msg.CauseStart}
		if m.Held {
			n.cause = msg.CauseSlot
		}
		if m.Conduit == nil || m.Conduit == s.driver {
			s.happen(now, n)
		}
	case *msg.SlotFree:
		s.freed(now)
	case *msg.LivenessAsked:
		if m.Asker != nil {
			s.tell(m.Asker, &msg.LivenessReport{Gen: m.Gen, Open: s.driver != nil})
		}
	case *msg.EvictHolder:
		if m.Gen == s.slotGen && s.holding != nil {
			s.holding = nil
			s.happen(now, news{event: evicted, err: errors.New("its slot failed")})
		}
	case *msg.ProviderDrained:
		if m.Gen == s.slotGen && s.holding != nil {
			s.happen(now, news{event: drained})
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
		s.happen(now, news{event: halt, atOnce: m.atOnce})
	case *retune:
		s.retune(now, m.cfg)
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
	s.tail.begin()
	s.detected, s.mask = "", nil
	s.slotFree = false
	if s.handMade {
		s.soon = soon{}
	}
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
	s.upSince, s.lastError, s.denied, s.lacking, s.cause = now, "", false, false, ""
	s.soon.lost = false
	s.note(now, "up")
	if s.cfg.Isolated {
		s.tell(s.registry, &privateServes{at: now})
	}
	s.check = check{first: true}
	if !s.cfg.Health.Off {
		s.check.next = now
	}
}

// attemptFailed is a driver that ended before it served.
func (s *State) attemptFailed(now time.Time, n news) {
	s.lose(n)
	n.cause = msg.CauseStart
	s.fail(now, n)
}

// died is a driver that ended while it served.
func (s *State) died(now time.Time, n news) {
	if !s.prove(now) {
		s.deaths++
	}
	s.lose(n)
	n.cause, s.soon.lost = msg.CauseEnded, s.cfg.remote()
	s.tryAgain(now, n)
}

// lose forgets the driver, and leaves the slot if it still holds it.
func (s *State) lose(n news) {
	s.leave(n)
	s.tail.end(n.tail, s.pid, n.exit)
	s.driver, s.pid, s.upSince, s.check = nil, 0, time.Time{}, check{}
}

// leave gives the slot back; its callers are told what happened, but for those whose
// calls never left the broker.
func (s *State) leave(n news) {
	if s.holding == nil {
		return
	}
	gone := &msg.ProviderGone{Gen: s.slotGen, Unsent: n.unsent, Final: s.ending() && !s.handover}
	if n.err != nil {
		gone.Why = wire.UpstreamLost(s.cfg.Slot, publicText(n.err))
	}
	s.tell(s.holding, gone)
	s.holding = nil
}

func (s *State) tell(to msg.Ref, message any) {
	if to != nil {
		s.effects = append(s.effects, Effect{To: to, Message: message})
	}
}

func (s *State) log(level slog.Level, format string, args ...any) {
	s.effects = append(s.effects, Effect{Log: fmt.Sprintf(format, args...), Level: level})
}

// text is an error as part of a sentence, for operators.
func text(err error) string {
	if err == nil {
		return "it ended"
	}
	return strings.TrimSuffix(err.Error(), ".")
}

// publicText is the same for clients, who are told nothing of the broker's machine.
func publicText(err error) string {
	if err == nil {
		return text(nil)
	}
	return strings.TrimSuffix(wire.Public(err), ".")
}
