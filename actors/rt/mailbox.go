package rt

import (
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

// Control marks messages that may use a mailbox's headroom: the facts and timers
// that keep an actor's state true. Their number is bounded elsewhere (by
// credits, by one timer per actor), so the headroom is never used up.
type Control interface{ ControlMessage() }

// mailbox is a bounded protoactor mailbox. It never spins, and it may be posted
// to before the actor behind it is wired.
//
// Invariant: at most one run exists at a time. A run is claimed and given back
// under the same lock that guards the queues.
type mailbox struct {
	mu        sync.Mutex
	sys       []any
	ring      []any
	head, n   int
	suspended bool
	running   bool
	wired     bool
	stopped   bool // the actor handles nothing any more

	kind *Kind
	inv  actor.MessageInvoker
	disp actor.Dispatcher
	run  func()
}

// Mailbox bounds where a Kind gives none: ordinary messages, and the headroom
// for Control messages on top of it.
const (
	DefaultMailbox  = 1024
	DefaultHeadroom = 1024
)

func newMailbox(kind *Kind) *mailbox {
	m := &mailbox{kind: kind}
	m.run = m.process
	return m
}

func (m *mailbox) PostUserMessage(msg any) {
	m.mu.Lock()
	if m.stopped || m.n >= m.bound(msg) {
		m.mu.Unlock()
		m.kind.overflow(msg)
		return
	}
	if m.n == len(m.ring) {
		m.grow()
	}
	m.ring[(m.head+m.n)%len(m.ring)] = msg
	m.n++
	start := m.claim()
	m.mu.Unlock()
	if start {
		m.disp.Schedule(m.run)
	}
}

// bound is how many queued messages still let msg in. mu is held.
func (m *mailbox) bound(msg any) int {
	limit := m.kind.mailbox()
	switch msg.(type) {
	case Control, actor.AutoReceiveMessage, actor.SystemMessage:
		return limit + m.kind.headroom()
	}
	return limit
}

func (m *mailbox) PostSystemMessage(msg any) {
	m.mu.Lock()
	m.sys = append(m.sys, msg)
	start := m.claim()
	m.mu.Unlock()
	if start {
		m.disp.Schedule(m.run)
	}
}

// claim reports whether the caller must start a run. mu is held.
func (m *mailbox) claim() bool {
	if m.running || !m.wired || (len(m.sys) == 0 && (m.suspended || m.n == 0)) {
		return false
	}
	m.running = true
	return true
}

func (m *mailbox) grow() {
	ring := make([]any, max(4, 2*len(m.ring)))
	for i := range m.n {
		ring[i] = m.ring[(m.head+i)%len(m.ring)]
	}
	m.ring, m.head = ring, 0
}

func (m *mailbox) RegisterHandlers(inv actor.MessageInvoker, d actor.Dispatcher) {
	m.mu.Lock()
	m.inv, m.disp = inv, d
	m.mu.Unlock()
}

func (m *mailbox) Start() {
	m.mu.Lock()
	m.wired = true
	start := m.claim()
	m.mu.Unlock()
	if start {
		m.disp.Schedule(m.run)
	}
}

func (m *mailbox) UserMessageCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.n
}

// next takes the message to handle; system messages go first. When there is none
// it gives the run back.
func (m *mailbox) next() (msg any, system, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.sys) > 0 {
		msg = m.sys[0]
		m.sys[0] = nil
		m.sys = m.sys[1:]
		switch msg.(type) {
		case *actor.SuspendMailbox:
			m.suspended = true
		case *actor.ResumeMailbox:
			m.suspended = false
		default:
			return msg, true, true
		}
	}
	m.sys = nil
	if m.n > 0 && !m.suspended {
		return m.pop(), false, true
	}
	m.running = false
	m.shrink()
	return nil, false, false
}

func (m *mailbox) pop() any {
	msg := m.ring[m.head]
	m.ring[m.head] = nil
	m.head = (m.head + 1) % len(m.ring)
	m.n--
	return msg
}

// shrink lets a ring go that a burst has grown, so that an idle actor holds none
// of it. mu is held.
func (m *mailbox) shrink() {
	const keep = 64
	if m.n == 0 && len(m.ring) > keep {
		m.ring, m.head = nil, 0
	}
}

// process is one run: it handles messages until there are none, it has had its
// turn, or one failed. In the last two cases the rest needs another run.
func (m *mailbox) process() {
	var current any
	finished := false
	defer func() {
		if !finished {
			m.failed(recover(), current)
			m.disp.Schedule(m.run)
		}
	}()
	for range m.disp.Throughput() {
		msg, system, ok := m.next()
		if !ok {
			finished = true
			return
		}
		current = msg
		if system {
			m.inv.InvokeSystemMessage(msg)
		} else {
			m.inv.InvokeUserMessage(msg)
		}
	}
	finished = true
	m.disp.Schedule(m.run)
}

// failed answers the one caller of the message that panicked, then hands the
// failure to the supervisor.
func (m *mailbox) failed(cause any, current any) {
	if cause == nil {
		cause = "runtime.Goexit in Receive"
	}
	crash := newCrash(cause, current)
	m.kind.crashed(current)
	m.inv.EscalateFailure(crash, current)
}

// discard hands what is still queued, and what still comes, to overflow once the
// actor has stopped, so that no caller waits for a message nobody will handle.
func (m *mailbox) discard() {
	for {
		m.mu.Lock()
		m.stopped = true
		if m.n == 0 {
			m.mu.Unlock()
			return
		}
		msg := m.pop()
		m.mu.Unlock()
		m.kind.overflow(msg)
	}
}
