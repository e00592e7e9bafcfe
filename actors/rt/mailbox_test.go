package rt

import (
	"fmt"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/go-cmp/cmp"
)

// control is a message that may use the headroom.
type control string

func (control) ControlMessage() {}

// bench is a mailbox on its own: runs are started by hand.
type bench struct {
	box      *mailbox
	most     int // throughput
	runs     []func()
	handled  []string
	failures []string
	overflow []any
	crashed  []any
	onUser   func(msg any)
}

func newBench(mailbox, headroom int) *bench {
	b := &bench{most: 1000}
	b.box = newMailbox(&Kind{
		Mailbox: mailbox, Headroom: headroom,
		Overflow: func(m any) { b.overflow = append(b.overflow, m) },
		Crashed:  func(m any) { b.crashed = append(b.crashed, m) },
	})
	b.box.RegisterHandlers(b, b)
	return b
}

func (b *bench) Throughput() int     { return b.most }
func (b *bench) Schedule(run func()) { b.runs = append(b.runs, run) }

func (b *bench) InvokeSystemMessage(msg any) {
	b.handled = append(b.handled, fmt.Sprintf("system %T", msg))
}

func (b *bench) InvokeUserMessage(msg any) {
	b.handled = append(b.handled, fmt.Sprint(msg))
	if b.onUser != nil {
		b.onUser(msg)
	}
}

func (b *bench) EscalateFailure(reason, msg any) {
	b.failures = append(b.failures, fmt.Sprintf("%v: %v", reason, msg))
	b.box.PostSystemMessage(&actor.SuspendMailbox{})
}

// run performs the scheduled runs, those they schedule included.
func (b *bench) run() {
	for len(b.runs) > 0 {
		run := b.runs[0]
		b.runs = b.runs[1:]
		run()
	}
}

func expect[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// spec 08 1.7 #4: a message posted before the actor is wired waits for it. The
// bound refuses exactly the message behind the last that fits.
func TestMailboxBound(t *testing.T) {
	b := newBench(3, 2)
	for _, m := range []any{"1", "2", "3", "4", control("c1"), control("c2"), control("c3"), "5"} {
		b.box.PostUserMessage(m)
	}
	expect(t, "overflow", b.overflow, []any{"4", control("c3"), "5"})
	expect(t, "queued", b.box.UserMessageCount(), 5)
	if len(b.runs) != 0 {
		t.Fatal("a run was scheduled before the mailbox was wired")
	}
	b.box.PostSystemMessage(&Started{})
	b.box.Start()
	if len(b.runs) != 1 {
		t.Fatalf("%d runs scheduled at the start, want 1", len(b.runs))
	}
	b.run()
	expect(t, "handled", b.handled, []string{"system *actor.Started", "1", "2", "3", "c1", "c2"})
	b.box.PostUserMessage("6")
	b.run()
	expect(t, "handled after the overflow", b.handled[6:], []string{"6"})
	expect(t, "runs left", len(b.runs), 0)
}

func TestMailboxDefaultBounds(t *testing.T) {
	b := newBench(0, 0)
	for range DefaultMailbox + 1 {
		b.box.PostUserMessage("m")
	}
	for range DefaultHeadroom + 1 {
		b.box.PostUserMessage(control("c"))
	}
	expect(t, "overflow", b.overflow, []any{"m", control("c")})
}

func TestMailboxWithoutOverflow(t *testing.T) {
	box := newMailbox(&Kind{Mailbox: 1})
	box.PostUserMessage("1")
	box.PostUserMessage("2")
	expect(t, "queued", box.UserMessageCount(), 1)
}

func TestMailboxSuspended(t *testing.T) {
	b := newBench(8, 8)
	b.box.Start()
	b.box.PostSystemMessage(&actor.SuspendMailbox{})
	b.box.PostUserMessage("1")
	b.run()
	b.box.PostUserMessage("2")
	expect(t, "runs of a suspended mailbox", len(b.runs), 0)
	b.box.PostSystemMessage(&actor.Stop{})
	b.run()
	expect(t, "handled while suspended", b.handled, []string{"system *actor.Stop"})
	b.box.PostSystemMessage(&actor.ResumeMailbox{})
	b.run()
	expect(t, "handled", b.handled, []string{"system *actor.Stop", "1", "2"})
}

// A run ends after its share of messages and queues up again.
func TestMailboxThroughput(t *testing.T) {
	b := newBench(100, 0)
	b.most = 2
	b.box.Start()
	for i := range 5 {
		b.box.PostUserMessage(i)
	}
	for _, want := range []int{2, 4, 5} {
		if len(b.runs) != 1 {
			t.Fatalf("%d runs scheduled with %d messages handled, want 1", len(b.runs), len(b.handled))
		}
		run := b.runs[0]
		b.runs = nil
		run()
		expect(t, "handled", len(b.handled), want)
	}
	expect(t, "runs left", len(b.runs), 0)
}

func TestMailboxFailure(t *testing.T) {
	b := newBench(8, 8)
	b.onUser = func(msg any) {
		if msg == "bad" {
			panic("boom")
		}
	}
	b.box.Start()
	for _, m := range []string{"1", "bad", "2"} {
		b.box.PostUserMessage(m)
	}
	b.run()
	expect(t, "handled before the restart", b.handled, []string{"1", "bad"})
	expect(t, "crashed", b.crashed, []any{"bad"})
	expect(t, "failures", b.failures, []string{"boom while handling string: bad"})
	b.box.PostSystemMessage(&actor.Restart{})
	b.box.PostSystemMessage(&actor.ResumeMailbox{})
	b.run()
	expect(t, "handled", b.handled[2:], []string{"system *actor.Restart", "2"})
}

func TestMailboxRing(t *testing.T) {
	b := newBench(1000, 0)
	b.box.Start()
	var want []string
	next := 0
	post := func(n int) {
		for range n {
			b.box.PostUserMessage(next)
			want = append(want, fmt.Sprint(next))
			next++
		}
	}
	post(3)
	b.onUser = func(msg any) { // the ring grows while its contents are wrapped
		if msg.(int) == 2 {
			post(40)
		}
	}
	b.run()
	expect(t, "order", b.handled, want)
	if n := len(b.box.ring); n > 64 {
		t.Errorf("ring of %d after a small burst", n)
	}
	post(1000)
	b.run()
	expect(t, "order after the burst", b.handled, want)
	if n := len(b.box.ring); n > 64 {
		t.Errorf("an idle mailbox keeps a ring of %d, want at most 64", n)
	}
	post(1)
	b.run()
	expect(t, "order on a new ring", b.handled, want)
}

// spec 08 1.7 #11: nothing that was queued at the stop, or comes after it,
// vanishes.
func TestMailboxDiscard(t *testing.T) {
	b := newBench(8, 8)
	b.box.PostUserMessage("1")
	b.box.PostUserMessage(control("c"))
	b.box.discard()
	expect(t, "overflow", b.overflow, []any{"1", control("c")})
	b.box.PostUserMessage("2")
	expect(t, "overflow after the stop", b.overflow, []any{"1", control("c"), "2"})
}

// Two producers, one consumer, on the real dispatcher: each message once, in the
// order of its producer, and never two at a time (spec 08 1.8). The counters are
// plain variables, so the race detector watches the invariant too.
func TestMailboxStress(t *testing.T) {
	const each = 20000
	j := newJobs(4)
	defer j.close()
	done := make(chan struct{})
	s := &stressed{done: done, most: 2 * each}
	box := newMailbox(&Kind{Mailbox: 2 * each, Overflow: func(any) { t.Error("overflow") }})
	box.RegisterHandlers(s, newDispatcher(j))
	var producers sync.WaitGroup
	for p := range 2 {
		producers.Go(func() {
			for i := range each {
				if i == each/2 && p == 0 {
					box.Start()
				}
				box.PostUserMessage([2]int{p, i})
			}
		})
	}
	producers.Wait()
	await(t, done)
	expect(t, "faults", s.faults, nil)
}

type stressed struct {
	next   [2]int
	total  int
	most   int
	inside bool
	faults []string
	done   chan struct{}
}

func (s *stressed) InvokeSystemMessage(any) {}

func (s *stressed) EscalateFailure(reason, _ any) { panic(reason) }

func (s *stressed) InvokeUserMessage(msg any) {
	if s.inside {
		s.faults = append(s.faults, "two runs at once")
	}
	s.inside = true
	m := msg.([2]int)
	if s.next[m[0]] != m[1] {
		s.faults = append(s.faults, fmt.Sprintf("producer %d: got %d, want %d", m[0], m[1], s.next[m[0]]))
	}
	s.next[m[0]] = m[1] + 1
	s.inside = false
	if s.total++; s.total == s.most {
		close(s.done)
	}
}
