package introspection

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// What other slots are doing only they know. A question about one slot is put to
// it at once. Questions about all of them share a look at all slots: while one is
// under way the next questions wait, and are then answered together by a look
// that began after the last of them. So no answer is older than its question, and
// any number of callers costs two looks at a time.

// callKey names a call of a client.
type callKey struct{ session, call uint64 }

// question is a call that is answered out of the state of slots.
type question struct {
	callKey
	client msg.Ref
	id     []byte // raw

	kind  questionKind
	slot  string // it is about; askDiagnosis: "" for the broker
	uri   string // of the resource read; "" for a tool
	asked time.Time
}

type questionKind uint8

const (
	askList questionKind = iota
	askStatus
	askDiagnosis
	askInstances
	askInstance
	askRestart
)

// ofUpstreams: it is put to upstreams, and has a round of its own.
func (k questionKind) ofUpstreams() bool { return k >= askInstances }

// round is one look at one slot, at all of them, or at the upstreams.
type round struct {
	all       bool
	slot      string
	questions []*question
}

// roundDone carries the answers of a round: a *msg.CallReply or *msg.CallFailed
// for each of its questions.
type roundDone struct {
	round   *round
	answers []any
}

// ControlMessage implements the marker of actors/rt: the answers must arrive.
func (*roundDone) ControlMessage() {}

// ask takes a question.
func (s *State) ask(now time.Time, m *msg.ClientCall, q question) {
	if len(s.pending) >= s.cfg.maxPending || s.rounds >= s.cfg.maxPending {
		s.fail(m, wire.SlotBusy(Slot, "maxPendingPerSlot", s.cfg.maxPending))
		return
	}
	q.callKey = callKey{m.Session, m.Call}
	q.client, q.asked = m.Client, now
	q.id = bytes.Clone(m.Frame.Raw(m.Frame.ID))
	s.pending[q.callKey] = &q
	switch {
	case q.kind == askStatus, q.kind.ofUpstreams():
		s.begin(&round{slot: q.slot, questions: []*question{&q}})
	case s.looking:
		s.waiting = append(s.waiting, &q)
	default:
		s.begin(&round{all: true, questions: []*question{&q}})
	}
}

func (s *State) begin(r *round) {
	s.effects = append(s.effects, Effect{Ask: r})
	s.rounds++
	s.looking = s.looking || r.all
}

// roundDone hands the answers out to those who still wait for them.
func (s *State) roundDone(m *roundDone) {
	s.rounds--
	if m.round.all {
		s.looking = false
	}
	for i, q := range m.round.questions {
		if s.pending[q.callKey] == q {
			delete(s.pending, q.callKey)
			s.tell(q.client, m.answers[i])
		}
	}
	if m.round.all && len(s.waiting) > 0 {
		next := &round{all: true, questions: s.waiting}
		s.waiting = nil
		s.begin(next)
	}
}

func (s *State) callerLeft(m *msg.CallerLeft) { s.drop(callKey{m.Session, m.Call}) }

// drop forgets a question nobody waits for; its round finds nobody to answer.
func (s *State) drop(key callKey) {
	q := s.pending[key]
	if q == nil {
		return
	}
	delete(s.pending, key)
	s.waiting = slices.DeleteFunc(s.waiting, func(w *question) bool { return w == q })
}

// oldest is when the question that has waited longest was asked.
func (s *State) oldest() time.Time {
	var oldest time.Time
	for _, q := range s.pending {
		if oldest.IsZero() || q.asked.Before(oldest) {
			oldest = q.asked
		}
	}
	return oldest
}

func (q *question) reply(result []byte) any {
	return &msg.CallReply{Call: q.call, Frame: response(q.id, result)}
}

func (q *question) fail(err *wire.Error) any { return &msg.CallFailed{Call: q.call, Err: err} }

// object answers with a JSON object, in the form the question wants.
func (q *question) object(b []byte) any {
	if q.uri != "" {
		return q.reply(contents(q.uri, mimeJSON, string(b)))
	}
	return q.reply(jsonResult(b))
}

// status answers a question about one slot; nil is one that does not exist.
func (q *question) status(now time.Time, info *msg.SlotInfo, behind upstreams) any {
	switch {
	case info != nil:
		return q.object(encode(behind.describe(now, info)))
	case q.uri != "":
		return q.fail(wire.ResourceNotFound(q.uri))
	}
	return q.reply(textResult(fmt.Sprintf("Unknown provider: %s.", quote(q.slot)), true))
}

// list answers with all slots.
func (q *question) list(now time.Time, infos []msg.SlotInfo, behind upstreams) any {
	return q.object(encode(inventory(now, infos, behind)))
}

func (q *question) unknownSlot() any {
	return q.reply(textResult(fmt.Sprintf("Unknown slot: %s. No provider and no client has ever used that name. "+
		"Call providers_list to see the names there are; they are case-sensitive. Leave the argument out to diagnose the whole broker.", quote(q.slot)), true))
}
