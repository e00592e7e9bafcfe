package socket

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// multiplexed is a socket on <providers>: any number of slots, named by the
// envelopes.
type multiplexed struct {
	link
	conduit func(slot string) msg.Conduit
	table   map[string]*seat

	enveloped  bool // an envelope has been seen: no mismatch any more
	warnedJunk bool
}

// seat is what the socket knows of one slot it has named.
type seat struct {
	ref      msg.Ref // nil while not held
	gen      uint64
	claiming bool
	early    []*msg.SocketFrame
	refusals int
}

// maxSeats is how many slots one socket may name, held or refused.
const maxSeats = 10000

// logRefusals samples the log of a slot that is refused again and again: the
// first time, then one in this many (F-16).
const logRefusals = 100

func newMultiplexed(cfg Config, registry msg.Ref, conduit func(slot string) msg.Conduit) *multiplexed {
	return &multiplexed{link: link{cfg: cfg, registry: registry}, conduit: conduit, table: map[string]*seat{}}
}

// Step implements core.
func (x *multiplexed) Step(now time.Time, message any) []Effect {
	x.begin()
	switch m := message.(type) {
	case *msg.SocketFrame:
		x.frame(m)
	case *msg.ClaimGranted:
		x.granted(now, m)
	case *msg.ClaimRefused:
		x.refused(m)
	case *msg.LivenessAsked:
		if s := x.table[m.Slot]; s != nil && s.ref != nil {
			x.report(now, s.ref, m)
		}
	case *msg.EvictHolder:
		x.evicted(m)
	case *msg.HeartbeatDue:
		x.heartbeat(now, m, x.describe())
	case *msg.Ponged:
		x.ponged(m)
	case *msg.PeerTooSlow:
		x.tooSlow(m, x.describe())
		x.release()
	case *msg.CloseSocket:
		// Who waits for this provider is told now, not when it has said goodbye.
		x.close(m.Code, m.Reason)
		x.release()
	case *msg.SocketClosed:
		x.ended(now, m)
	case released:
		x.release()
	}
	return x.effects
}

// ended writes the one line that each socket with providers leaves behind, unless
// one says already why the broker closes it.
func (x *multiplexed) ended(now time.Time, m *msg.SocketClosed) {
	x.tooBig = m.TooBig
	held := x.held()
	switch {
	case m.Fault != nil:
		x.fault(m.Fault)
	case len(held) > 0 && !x.closing:
		x.log(slog.LevelInfo, "[broker] multiplex provider socket disconnected after %s: %s. Slots carried by this socket: %s", x.lasted(now), m.How, strings.Join(held, ", "))
	}
}

func (x *multiplexed) fault(cause error) {
	carried := "(none announced yet)"
	if held := x.held(); len(held) > 0 {
		carried = strings.Join(held, ", ")
	}
	x.log(slog.LevelError, "[broker] multiplex provider socket error: %v. Slots carried by this socket: %s", cause, carried)
}

func (x *multiplexed) frame(m *msg.SocketFrame) {
	switch {
	case x.closing:
		x.giveBack(m.Credit)
	case errors.Is(m.Err, wire.ErrUTF8):
		x.giveBack(m.Credit)
		x.fault(fmt.Errorf("a message is %w", m.Err))
		x.invalidText()
	case m.Envelope != nil:
		x.enveloped = true
		x.envelope(m)
	case m.Err == nil && !x.enveloped && m.Frame.Shape == wire.Object && m.Frame.JSONRPC:
		x.giveBack(m.Credit)
		x.mismatch(&m.Frame)
	default:
		x.giveBack(m.Credit)
		if !x.warnedJunk {
			x.warnedJunk = true
			x.log(slog.LevelWarn, "[broker] multiplexed provider socket sent a frame that is not a tunnel envelope; it was dropped. Later ones are dropped silently. Frame: %s", wire.Excerpt(m.Head))
		}
	}
}

// mismatch answers a bare message in its own framing and closes (spec 01 3.2).
func (x *multiplexed) mismatch(f *wire.Frame) {
	err := wire.PlainOnSharedPath(x.cfg.Providers, x.cfg.Provider, f.Method)
	x.log(slog.LevelWarn, "[broker] %s", err.Message)
	x.write(err.Response(nil))
	x.close(wire.ClosePolicy, wire.PlainReason(x.cfg.Providers, x.cfg.Provider))
}

// envelope routes a frame of a held slot. The first frame that names a slot
// claims it, and so does each later one while it is refused.
func (x *multiplexed) envelope(m *msg.SocketFrame) {
	name := m.Envelope.Slot
	s := x.table[name]
	if s == nil {
		if len(x.table) >= maxSeats {
			x.giveBack(m.Credit)
			x.write(refusalEnvelope(name, wire.TooManyNames(name, maxSeats)))
			return
		}
		s = &seat{}
		x.table[name] = s
	}
	switch {
	case s.ref != nil:
		x.route(s, m)
	case s.claiming:
		s.early = append(s.early, m)
	default:
		s.claiming = true
		s.early = append(s.early, m)
		x.tell(x.registry, &msg.ClaimSlot{
			Slot: name, Claimant: x.self, Conduit: x.conduit(name),
			Kind: msg.Multiplexed, Aggregate: asksAggregate(&m.Envelope.Payload),
		})
	}
}

// asksAggregate reads the opt-in of a registration, in either shape.
func asksAggregate(f *wire.Frame) bool {
	if f.JSONRPC {
		return string(f.Method) == mcp.Register && f.Aggregate
	}
	return f.LegacyType.Present() && string(f.Raw(f.LegacyType)) == `"register"` && f.LegacyJoin
}

func (x *multiplexed) route(s *seat, m *msg.SocketFrame) {
	x.tell(s.ref, &msg.ProviderFrame{Gen: s.gen, Frame: m.Envelope.Payload, Credit: m.Credit})
}

func (x *multiplexed) granted(now time.Time, m *msg.ClaimGranted) {
	s := x.table[m.Slot]
	if s == nil || x.closing {
		x.tell(m.Ref, &msg.ProviderGone{Gen: m.Gen})
		return
	}
	s.ref, s.gen, s.claiming, s.refusals = m.Ref, m.Gen, false, 0
	x.holds(now)
	early := s.early
	s.early = nil
	for _, e := range early {
		x.route(s, e)
	}
}

// refused tells the provider, which keeps the socket and its other slots. The
// frame that asked is dropped.
func (x *multiplexed) refused(m *msg.ClaimRefused) {
	s := x.table[m.Slot]
	if s == nil {
		return
	}
	s.claiming = false
	for _, e := range s.early {
		x.giveBack(e.Credit)
	}
	s.early = nil
	if s.refusals%logRefusals == 0 {
		x.log(slog.LevelWarn, `[broker] WARNING: multiplexed WebSocket provider "%s" rejected: %s (refusal %d on this socket)`, m.Slot, m.LogLead, s.refusals+1)
	}
	s.refusals++
	if !x.closing {
		x.write(refusalEnvelope(m.Slot, m.Err))
	}
}

// evicted ends the whole socket on a takeover: its peer is dead. A slot that
// failed costs the socket that slot only.
func (x *multiplexed) evicted(m *msg.EvictHolder) {
	s := x.table[m.Slot]
	if s == nil || s.ref == nil || s.gen != m.Gen {
		return
	}
	s.ref = nil
	switch {
	case !m.Failed:
		x.terminate()
	case !x.closing:
		x.write(refusalEnvelope(m.Slot, wire.SlotFailed(m.Slot)))
	}
}

func (x *multiplexed) release() {
	for _, name := range slices.Sorted(maps.Keys(x.table)) {
		s := x.table[name]
		switch {
		case s.ref != nil:
			x.tell(s.ref, x.gone(name, s.gen))
		default:
			x.tell(x.registry, &msg.WithdrawClaim{Slot: name, Claimant: x.self})
		}
		for _, e := range s.early {
			x.giveBack(e.Credit)
		}
	}
	clear(x.table)
}

func (x *multiplexed) held() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(x.table)) {
		if x.table[name].ref != nil {
			names = append(names, name)
		}
	}
	return names
}

func (x *multiplexed) describe() string {
	if held := x.held(); len(held) > 0 {
		return "multiplexed slots [" + strings.Join(held, ", ") + "]"
	}
	if len(x.table) == 0 {
		return "a multiplexed socket that announced no slot"
	}
	return "a multiplexed socket that holds none of its slots"
}
