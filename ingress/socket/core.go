package socket

import (
	"fmt"
	"log/slog"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// Config is what a provider socket needs to know.
type Config struct {
	Heartbeat time.Duration // ping interval; 0 is off
	Provider  string        // effective path prefix of dedicated sockets
	Providers string        // effective path of multiplexed sockets
}

// Effect is one thing the shell does after a step, in order.
type Effect struct {
	To      msg.Ref // send Message to To
	Message any

	Frame []byte // write to the peer

	Credit msg.Credit

	Log   string
	Level slog.Level

	Close     bool // say goodbye with Code and Reason once what waits is written
	Code      int
	Reason    string
	Terminate bool // cut the connection

	Ping  bool          // send a ping for Sweep
	Wake  time.Duration // post HeartbeatDue{Sweep} after this long
	Sweep uint64
}

// core is the state of a socket between two messages; its two implementations
// are the two framings.
type core interface {
	Step(now time.Time, message any) []Effect
}

// released is the shell's word that the actor stops: whatever the socket holds is
// given up.
type released struct{}

// link is what both framings share: effects, heartbeat, and closing.
type link struct {
	cfg      Config
	registry msg.Ref
	self     msg.Ref
	closing  bool

	sweep     uint64
	waitSince time.Time // a ping is unanswered since then; zero is none
	silent    bool      // it was cut for that

	since  time.Time // of the first slot it held; zero is none yet
	tooBig int       // the limit that a message of the peer passed

	effects []Effect
}

func (l *link) begin() {
	clear(l.effects)
	l.effects = l.effects[:0]
}

func (l *link) tell(to msg.Ref, message any) {
	l.effects = append(l.effects, Effect{To: to, Message: message})
}

func (l *link) write(frame []byte) { l.effects = append(l.effects, Effect{Frame: frame}) }

func (l *link) giveBack(credit msg.Credit) {
	if credit != nil {
		l.effects = append(l.effects, Effect{Credit: credit})
	}
}

func (l *link) log(level slog.Level, format string, args ...any) {
	l.effects = append(l.effects, Effect{Log: fmt.Sprintf(format, args...), Level: level})
}

func (l *link) close(code int, reason string) {
	if !l.closing {
		l.closing = true
		l.effects = append(l.effects, Effect{Close: true, Code: code, Reason: reason})
	}
}

// terminate cuts the connection. A socket that says goodbye already is let be: its
// peer is to read why.
func (l *link) terminate() {
	if !l.closing {
		l.closing = true
		l.effects = append(l.effects, Effect{Terminate: true})
	}
}

// start arms the first heartbeat: a new socket counts as answered.
func (l *link) start() {
	if l.cfg.Heartbeat > 0 {
		l.effects = append(l.effects, Effect{Wake: l.cfg.Heartbeat, Sweep: l.sweep})
	}
}

// heartbeat pings, or cuts a peer that left the previous ping unanswered: a dead
// peer is noticed between one and two intervals after it died (spec 01 2.6).
func (l *link) heartbeat(now time.Time, m *msg.HeartbeatDue, slots string) {
	if l.closing || m.Sweep != l.sweep {
		return
	}
	if !l.waitSince.IsZero() {
		l.log(slog.LevelWarn, `[broker] provider socket for %s did not answer a WebSocket ping within %dms (providerHeartbeatIntervalMs); it was terminated`,
			slots, l.cfg.Heartbeat.Milliseconds())
		l.silent = true
		l.terminate()
		return
	}
	l.sweep++
	l.waitSince = now
	l.effects = append(l.effects,
		Effect{Ping: true, Sweep: l.sweep},
		Effect{Wake: l.cfg.Heartbeat, Sweep: l.sweep})
}

func (l *link) ponged(m *msg.Ponged) {
	if m.Sweep == l.sweep {
		l.waitSince = time.Time{}
	}
}

// holds remembers when the socket got its first slot.
func (l *link) holds(now time.Time) {
	if l.since.IsZero() {
		l.since = now
	}
}

func (l *link) lasted(now time.Time) time.Duration {
	lasted := now.Sub(l.since)
	if lasted > time.Minute {
		return lasted.Round(time.Second)
	}
	return lasted.Round(time.Millisecond)
}

// gone tells a slot that this socket has ended.
func (l *link) gone(slot string, gen uint64) *msg.ProviderGone {
	m := &msg.ProviderGone{Gen: gen, Silent: l.silent}
	if l.tooBig > 0 {
		m.Why = wire.DisconnectedTooBig(slot, l.tooBig)
	}
	return m
}

// tooSlow ends a socket whose peer does not read. One that takes nothing at all
// cannot be told why.
func (l *link) tooSlow(m *msg.PeerTooSlow, slots string) {
	switch {
	case l.closing:
	case m.Stuck > 0:
		l.log(slog.LevelWarn, "[broker] provider socket for %s took nothing that was sent to it for %s; it was terminated", slots, m.Stuck)
		l.terminate()
	default:
		l.log(slog.LevelWarn, "[broker] provider socket for %s was closed: it reads too slowly", slots)
		l.close(wire.CloseTryLater, "The provider reads too slowly")
	}
}

// report answers a slot that has to decide about a newcomer.
func (l *link) report(now time.Time, slot msg.Ref, m *msg.LivenessAsked) {
	r := &msg.LivenessReport{Gen: m.Gen, Open: !l.closing}
	if !l.waitSince.IsZero() {
		r.Outstanding = now.Sub(l.waitSince)
	}
	l.tell(slot, r)
}

// invalidText closes a socket whose peer sent a message that is not UTF-8.
func (l *link) invalidText() { l.close(wire.CloseInvalidText, "Invalid UTF-8 in a message") }

// refusalEnvelope is how a shared socket learns of a slot it may not have.
func refusalEnvelope(slot string, err *wire.Error) []byte {
	return wire.Wrap(slot, err.Response(nil))
}
