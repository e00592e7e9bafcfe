package socket

import (
	"errors"
	"log/slog"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// dedicated is a socket on <provider>/<slot>: one slot, fixed by the URL before
// any frame.
type dedicated struct {
	link
	slot string
	path string // as in close reasons: prefix and encoded name

	ref   msg.Ref // nil until the slot is granted
	gen   uint64
	early []*msg.SocketFrame // frames that came before the grant; bounded by credits
	plain bool               // a JSON-RPC message has been seen: no mismatch any more
}

func newDedicated(cfg Config, registry msg.Ref, slot string) *dedicated {
	return &dedicated{link: link{cfg: cfg, registry: registry}, slot: slot, path: cfg.Provider + "/" + wire.EncodeSlot(slot)}
}

// Step implements core.
func (d *dedicated) Step(now time.Time, message any) []Effect {
	d.begin()
	switch m := message.(type) {
	case *msg.SocketFrame:
		d.frame(m)
	case *msg.ClaimGranted:
		d.granted(now, m)
	case *msg.ClaimRefused:
		d.refused(m)
	case *msg.LivenessAsked:
		if d.ref != nil {
			d.report(now, d.ref, m)
		}
	case *msg.EvictHolder:
		d.evicted(m)
	case *msg.HeartbeatDue:
		d.heartbeat(now, m, d.describe())
	case *msg.Ponged:
		d.ponged(m)
	case *msg.PeerTooSlow:
		d.tooSlow(m, d.describe())
		d.release()
	case *msg.CloseSocket:
		// Who waits for this provider is told now, not when it has said goodbye.
		d.close(m.Code, m.Reason)
		d.release()
	case *msg.SocketClosed:
		d.ended(now, m)
	case released:
		d.release()
	}
	return d.effects
}

func (d *dedicated) describe() string { return `slot "` + d.slot + `"` }

func (d *dedicated) frame(m *msg.SocketFrame) {
	switch {
	case d.closing:
		d.giveBack(m.Credit)
	case d.ref == nil:
		d.early = append(d.early, m)
	default:
		d.route(m)
	}
}

func (d *dedicated) route(m *msg.SocketFrame) {
	f := &m.Frame
	switch {
	case errors.Is(m.Err, wire.ErrUTF8):
		d.log(slog.LevelError, `[broker] provider "%s" socket error: a message is %v`, d.slot, m.Err)
		d.giveBack(m.Credit)
		d.invalidText()
	case m.Err != nil:
		d.tell(d.ref, &msg.ProviderJunk{Gen: d.gen, Head: m.Head, Credit: m.Credit})
	case !d.plain && isEnvelope(f):
		d.giveBack(m.Credit)
		d.mismatch(f)
	default:
		d.plain = d.plain || f.JSONRPC
		d.tell(d.ref, &msg.ProviderFrame{Gen: d.gen, Frame: *f, Credit: m.Credit})
	}
}

// isEnvelope reports a frame of the other framing (spec 01 2.3 FF1, 3.1).
func isEnvelope(f *wire.Frame) bool {
	return !f.JSONRPC && f.Payload.Present() && f.ProviderName.Present() && string(f.Raw(f.ProviderName)) != `""`
}

// mismatch answers an envelope in its own framing, addressed to the slot it
// names, and closes (spec 01 2.4).
func (d *dedicated) mismatch(f *wire.Frame) {
	announced, _ := wire.Unquote(f.Raw(f.ProviderName))
	err := wire.EnvelopeOnSlotPath(d.path, d.slot, announced, d.cfg.Providers)
	d.log(slog.LevelWarn, "[broker] %s", err.Message)
	d.write(refusalEnvelope(announced, err))
	d.close(wire.ClosePolicy, wire.EnvelopeReason(d.path, d.cfg.Providers))
}

// ended writes the one line that each provider leaves behind, unless one says
// already why the broker closes the socket.
func (d *dedicated) ended(now time.Time, m *msg.SocketClosed) {
	d.tooBig = m.TooBig
	switch {
	case m.Fault != nil:
		d.log(slog.LevelError, `[broker] provider "%s" socket error: %v`, d.slot, m.Fault)
	case d.ref != nil && !d.closing:
		d.log(slog.LevelInfo, `[broker] provider "%s" disconnected after %s: %s`, d.slot, d.lasted(now), m.How)
	}
}

func (d *dedicated) granted(now time.Time, m *msg.ClaimGranted) {
	if d.closing {
		d.tell(m.Ref, &msg.ProviderGone{Gen: m.Gen})
		return
	}
	d.ref, d.gen = m.Ref, m.Gen
	d.holds(now)
	early := d.early
	d.early = nil
	for _, e := range early {
		d.frame(e)
	}
}

func (d *dedicated) refused(m *msg.ClaimRefused) {
	d.log(slog.LevelWarn, `[broker] WARNING: WebSocket provider "%s" rejected: %s`, d.slot, m.LogLead)
	d.close(wire.ClosePolicy, m.CloseReason)
	for _, e := range d.early {
		d.giveBack(e.Credit)
	}
	d.early = nil
}

func (d *dedicated) evicted(m *msg.EvictHolder) {
	if m.Gen != d.gen || d.ref == nil {
		return
	}
	d.ref = nil
	if m.Failed {
		d.close(wire.CloseInternalError, wire.SlotFailed(d.slot).Message)
		return
	}
	d.terminate()
}

func (d *dedicated) release() {
	if d.ref != nil {
		d.tell(d.ref, d.gone(d.slot, d.gen))
		d.ref = nil
	}
	for _, e := range d.early {
		d.giveBack(e.Credit)
	}
	d.early = nil
}
