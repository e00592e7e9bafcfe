package session

import (
	"bytes"
	"slices"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// Config is what a session needs to know.
type Config struct {
	Slot        string
	Number      uint64 // process-wide number of the session
	Kind        msg.ClientKind
	MaxPending  int // requests in flight; 0 means 64
	IdleTimeout time.Duration
	Trace       func() string // a fresh traceparent
	Advice      string        // of the transport, see wire.Error.Advise
	Resumable   bool          // keep a history for the client's next stream
	Answers     bool          // the client may be asked something: pass its responses on
}

// State is a session between two messages.
type State struct {
	cfg      Config
	registry msg.Ref
	self     msg.Ref

	slot    msg.Ref // nil until joined
	joining bool
	rejoins int   // tries left to join again a slot that was lost
	waiting []any // *msg.ClientCall, *msg.ClientNote, until joined

	calls    []*inflight // in flight; few, so a slice serves best
	lastCall uint64

	revision string
	stream   msg.Stream
	history  history
	lastUsed time.Time
	draining bool // ends as soon as nothing is owed
	ended    bool

	effects []Effect
}

// inflight is one request the client waits for.
type inflight struct {
	number  uint64
	id      []byte // raw
	sink    msg.Sink
	streams bool
	init    bool
	batch   *batch

	disowned bool // the client has cancelled it: an answer may never come
}

// Effect is one thing the shell does after a step, in order.
type Effect struct {
	To      msg.Ref // send Message to To
	Message any

	Sink  msg.Sink // tell the sink
	Tell  SinkWord
	Frame []byte
	Class mcp.Class // of an Event
	Err   *wire.Error

	Credit msg.Credit // give back

	Stream msg.Stream // queue Event, or end the stream when it is nil
	Event  *event

	Idle      time.Duration // post IdleDue{IdleSince} after this long
	IdleSince time.Time

	Gone bool            // the transport forgets the session
	Done chan<- struct{} // close
	Stop bool
}

// SinkWord is which method of a sink an effect calls.
type SinkWord uint8

const (
	Reply SinkWord = iota + 1
	Event
	Accepted
	Refuse
	Closed
)

// New returns a session that has not joined its slot yet.
func New(cfg Config, registry msg.Ref) *State {
	if cfg.MaxPending == 0 {
		cfg.MaxPending = 64
	}
	return &State{cfg: cfg, registry: registry}
}

// Step applies one message. Effects are valid until the next step.
func (s *State) Step(now time.Time, message any) []Effect {
	clear(s.effects)
	s.effects = s.effects[:0]
	switch m := message.(type) {
	case *msg.ClientFrame:
		s.giveBack(m.Credit)
		s.used(now)
		s.clientFrame(m)
	case *msg.CallReply:
		s.replied(m)
	case *msg.ClientBatch:
		s.giveBack(m.Credit)
		s.used(now)
		s.clientBatch(m)
	case *msg.Notify:
		s.deliver(m.Frame, m.Class, m.Key)
	case *msg.CallFailed:
		s.failed(m)
	case *msg.CallProgress:
		s.progress(m)
	case *msg.ClientAsk:
		s.asked(m)
	case *msg.AskCancelled:
		s.beside(s.call(m.Call), m.Frame)
	case *msg.SinkGone:
		s.sinkGone(m)
	case *msg.StreamOpened:
		s.used(now)
		s.streamOpened(m)
	case *msg.StreamGone:
		s.used(now)
		s.streamGone(m)
	case *msg.SlotJoined:
		s.joined(m)
	case *msg.JoinRefused:
		s.joinRefused(m)
	case *msg.SlotLost:
		s.slot, s.rejoins = nil, maxRejoins
		s.join()
	case *msg.EndSession:
		s.end(nil)
	case *msg.CloseSession:
		s.end(m.Done)
	case *msg.IdleDue:
		s.idleDue(now, m)
	case *Drain:
		s.draining = true
	case started:
		s.used(now)
		s.join()
		s.armIdle(s.cfg.IdleTimeout)
	}
	s.checkDrained()
	return s.effects
}

// started is the shell's word that the actor runs.
type started struct{}

func (s *State) tell(to msg.Ref, message any) {
	s.effects = append(s.effects, Effect{To: to, Message: message})
}

func (s *State) answer(sink msg.Sink, frame []byte) {
	s.effects = append(s.effects, Effect{Sink: sink, Tell: Reply, Frame: frame})
}

func (s *State) refuse(sink msg.Sink, err *wire.Error) {
	s.effects = append(s.effects, Effect{Sink: sink, Tell: Refuse, Err: err})
}

func (s *State) accept(sink msg.Sink) {
	s.effects = append(s.effects, Effect{Sink: sink, Tell: Accepted})
}

func (s *State) giveBack(credit msg.Credit) {
	if credit != nil {
		s.effects = append(s.effects, Effect{Credit: credit})
	}
}

func (s *State) join() {
	if !s.joining && !s.ended {
		s.joining = true
		s.tell(s.registry, &msg.JoinSlot{Slot: s.cfg.Slot, Session: s.cfg.Number, Client: s.self, Kind: s.cfg.Kind})
	}
}

func (s *State) joined(m *msg.SlotJoined) {
	s.joining, s.rejoins = false, 0
	s.slot = m.Ref
	if s.stream != nil {
		s.tell(s.slot, &msg.StreamChanged{Session: s.cfg.Number, Open: true})
	}
	for _, m := range s.waiting {
		s.tell(s.slot, m)
	}
	s.waiting = nil
}

// maxRejoins is for a slot that died before it could tell the registry, and for the
// private one of an isolated upstream, which the registry does not know: when the
// session asks again, the dead slot may still have the name, and it refuses.
const maxRejoins = 5

// joinRefused fails what waited for the slot; the next message asks again.
func (s *State) joinRefused(m *msg.JoinRefused) {
	s.joining = false
	if s.rejoins > 0 {
		s.rejoins--
		s.join()
		return
	}
	waiting := s.waiting
	s.waiting = nil
	for _, w := range waiting {
		if call, ok := w.(*msg.ClientCall); ok {
			s.failed(&msg.CallFailed{Call: call.Call, Err: m.Err})
		}
	}
}

// toSlot sends a call or a note on, or holds it until the slot is joined.
func (s *State) toSlot(message any) {
	if s.slot == nil {
		s.waiting = append(s.waiting, message)
		s.join()
		return
	}
	s.tell(s.slot, message)
}

func (s *State) clientFrame(m *msg.ClientFrame) {
	f := &m.Frame
	switch {
	case f.IsRequest():
		s.request(f, m.Sink, m.Streams, nil)
	case f.IsNotification():
		s.note(f)
		s.accept(m.Sink)
	case f.IsResponse():
		s.response(f)
		s.accept(m.Sink)
	default:
		s.refuse(m.Sink, malformed(f))
	}
}

// malformed names what is wrong with a message that is no JSON-RPC message.
func malformed(f *wire.Frame) *wire.Error {
	if f.Shape == wire.Object && f.Method != nil {
		return wire.NullID()
	}
	return wire.NotAMessage()
}

func (s *State) note(f *wire.Frame) {
	if string(f.Method) == mcp.Cancelled {
		s.disown(f.Raw(f.RequestID))
	}
	s.toSlot(&msg.ClientNote{Session: s.cfg.Number, Frame: *f})
}

func (s *State) request(f *wire.Frame, sink msg.Sink, streams bool, b *batch) {
	id := f.Raw(f.ID)
	if err := s.admit(f.Method, id); err != nil {
		s.finish(&inflight{id: id, sink: sink, batch: b}, err.Response(id))
		return
	}
	s.lastCall++
	c := &inflight{
		number: s.lastCall, id: id, sink: sink, streams: streams, batch: b,
		init: string(f.Method) == mcp.Initialize,
	}
	s.calls = append(s.calls, c)
	call := &msg.ClientCall{Session: s.cfg.Number, Client: s.self, Call: c.number, Frame: *f}
	if f.NeedsTrace() {
		call.Trace = s.cfg.Trace()
	}
	s.toSlot(call)
}

func (s *State) admit(method, id []byte) *wire.Error {
	if s.draining {
		return wire.SessionClosed()
	}
	if string(method) == mcp.Discover {
		// A provider that answered would be pinned to an era its other clients
		// do not speak.
		return wire.NoDiscovery(mcp.Revision20251125)
	}
	for _, c := range s.calls {
		if bytes.Equal(c.id, id) {
			return wire.DuplicateID(id)
		}
	}
	if len(s.calls) >= s.cfg.MaxPending {
		return wire.SessionBusy(s.cfg.MaxPending)
	}
	return nil
}

func (s *State) call(number uint64) *inflight {
	for _, c := range s.calls {
		if c.number == number {
			return c
		}
	}
	return nil
}

// take removes a call; an idle session keeps no memory for calls.
func (s *State) take(number uint64) *inflight {
	for i, c := range s.calls {
		if c.number != number {
			continue
		}
		s.calls = slices.Delete(s.calls, i, i+1)
		if len(s.calls) == 0 {
			s.calls = nil
		}
		return c
	}
	return nil
}

func (s *State) replied(m *msg.CallReply) {
	c := s.take(m.Call)
	if c == nil {
		return
	}
	if c.init {
		s.negotiated(m.Frame)
	}
	s.finish(c, m.Frame)
}

// negotiated remembers the revision of an initialize answer.
func (s *State) negotiated(frame []byte) {
	result := wire.Member(frame, "result")
	if version, ok := wire.Unquote(wire.Member(result, "protocolVersion")); ok {
		s.revision = version
	}
}

func (s *State) failed(m *msg.CallFailed) {
	if c := s.take(m.Call); c != nil {
		s.finish(c, m.Err.Advise(s.cfg.Advice).Response(c.id))
	}
}

func (s *State) finish(c *inflight, frame []byte) {
	if c.batch == nil {
		s.answer(c.sink, frame)
		return
	}
	if c.batch.add(frame) {
		s.answer(c.sink, c.batch.join())
	}
}

// progress goes with the call itself where its transport can carry it, so that it
// cannot come behind the answer; else on the session's stream.
func (s *State) progress(m *msg.CallProgress) {
	c := s.call(m.Call)
	switch {
	case c == nil:
	case c.streams:
		s.effects = append(s.effects, Effect{Sink: c.sink, Tell: Event, Frame: m.Frame, Class: mcp.Droppable})
	default:
		s.deliver(m.Frame, mcp.Droppable, "")
	}
}

// asked puts a request of the provider to the client: on the stream of the call
// it belongs to, else on the session's own. A call that has ended meanwhile is
// none to ask about.
func (s *State) asked(m *msg.ClientAsk) {
	c := s.call(m.Call)
	if (c == nil || !s.beside(c, m.Frame)) && s.slot != nil {
		s.tell(s.slot, &msg.AskUndeliverable{Session: s.cfg.Number, ID: m.ID})
	}
}

// beside sends a message that belongs to a call, if there is a stream for it. A
// nil call has ended.
func (s *State) beside(c *inflight, frame []byte) bool {
	switch {
	case c != nil && c.streams:
		s.effects = append(s.effects, Effect{Sink: c.sink, Tell: Event, Frame: frame, Class: mcp.Required})
	case s.stream != nil:
		s.deliver(frame, mcp.Required, "")
	default:
		return false
	}
	return true
}

// response passes an answer to a request of the provider on. The broker opens no
// other request to a client, so anything else answers nothing (F-20).
func (s *State) response(f *wire.Frame) {
	if _, ok := wire.ParseBrokerID(f.Raw(f.ID)); ok && s.cfg.Answers && s.slot != nil {
		s.tell(s.slot, &msg.ClientAnswer{Session: s.cfg.Number, Frame: *f})
	}
}

// sinkGone: the client broke off its request, or its batch of them.
func (s *State) sinkGone(m *msg.SinkGone) {
	for _, c := range slices.Clone(s.calls) {
		if c.sink == m.Sink {
			s.take(c.number)
			s.toSlot(&msg.CallerLeft{Session: s.cfg.Number, Call: c.number})
		}
	}
}
