package rt

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
)

// faulty counts what it is told and fails on command.
type faulty struct {
	events  list[string]
	count   int // committed state; survives a restart
	onStop  func()
	onEnd   func()
	onStart func(Context)
}

func (f *faulty) Receive(c Context) {
	switch m := c.Message().(type) {
	case *Started:
		f.events.add("started")
		if f.onStart != nil {
			f.onStart(c)
		}
	case *Restarting:
		f.events.add("restarting")
	case *Stopping:
		f.events.add("stopping")
		if f.onStop != nil {
			f.onStop()
		}
	case *Stopped:
		f.events.add("stopped")
		if f.onEnd != nil {
			f.onEnd()
		}
	case string:
		f.events.add(m)
		switch m {
		case "panic":
			panic("boom")
		case "goexit":
			runtime.Goexit()
		}
		f.count++
	case ask:
		m.reply <- fmt.Sprint(f.count)
	}
}

// spec 08 1.7 #12 and the guard: a failed message restarts the actor and tells
// its one caller; the messages behind it and the state before it stay.
func TestActorSurvivesItsFailures(t *testing.T) {
	for _, failure := range []string{"panic", "goexit"} {
		t.Run(failure, func(t *testing.T) {
			s, log := newSystem(t, nil)
			f := &faulty{}
			var crashed list[any]
			pid := s.Spawn(Kind{Name: "f", Crashed: func(m any) { crashed.add(m) }}, f)
			for _, m := range []string{"a", "b", failure, "c"} {
				s.Send(pid, m)
			}
			expect(t, "state", echo(t, s, pid), "3")
			expect(t, "crashed", crashed.all(), []any{failure})
			stop(t, s, pid)
			expect(t, "events", f.events.all(),
				[]string{"started", "a", "b", failure, "restarting", "started", "c", "stopping", "stopped"})
			if got := log.String(); strings.Count(got, "crashed") != 1 || !strings.Contains(got, "while handling string; restarted") {
				t.Errorf("log: %s", got)
			}
		})
	}
}

func TestActorFailsInARow(t *testing.T) {
	s, _ := newSystem(t, nil)
	f := &faulty{}
	var crashed atomic.Int32
	pid := s.Spawn(Kind{Name: "f", Crashed: func(any) { crashed.Add(1) }}, f)
	for range 3 {
		s.Send(pid, "goexit")
		s.Send(pid, "panic")
		s.Send(pid, "a")
	}
	expect(t, "state", echo(t, s, pid), "3")
	expect(t, "crashes", crashed.Load(), 6)
	stop(t, s, pid)
}

// spec 08 1.7 #5 and #6: a panic while stopping loses neither the stop nor the
// news of it.
func TestActorPanicWhileStopping(t *testing.T) {
	boom := func() { panic("boom") }
	for name, f := range map[string]*faulty{
		"Stopping": {onStop: boom}, "Stopped": {onEnd: boom}, "both": {onStop: boom, onEnd: boom},
	} {
		t.Run(name, func(t *testing.T) {
			s, log := newSystem(t, nil)
			var crashed atomic.Int32
			pid := s.Spawn(Kind{Name: "f", Crashed: func(any) { crashed.Add(1) }}, f)
			stop(t, s, pid)
			expect(t, "events", f.events.all(), []string{"started", "stopping", "stopped"})
			expect(t, "crashes", crashed.Load(), 0)
			if !strings.Contains(log.String(), "boom while handling *actor.Stop") {
				t.Errorf("the log does not tell: %s", log)
			}
		})
	}
}

// spec 08 1.7 #11: the callers of queued messages are told.
func TestActorLeavesNothingQueued(t *testing.T) {
	s, _ := newSystem(t, nil)
	entered, release := make(chan struct{}), make(chan struct{})
	var overflow list[any]
	stopped := make(chan struct{})
	pid := s.Spawn(Kind{Name: "f", Mailbox: 3, Overflow: func(m any) { overflow.add(m) }}, receive(func(c Context) {
		switch c.Message().(type) {
		case string:
			close(entered)
			<-release
		case int:
			t.Error("handled a message behind the stop")
		case *Stopped:
			close(stopped)
		}
	}))
	s.Send(pid, "block")
	await(t, entered)
	for i := range 4 {
		s.Send(pid, i)
	}
	expect(t, "overflow of the full mailbox", overflow.all(), []any{3})
	s.Stop(pid)
	close(release)
	await(t, stopped)
	stop(t, s, pid) // waits for the end of the run
	expect(t, "overflow after the stop", overflow.all(), []any{3, 0, 1, 2})
}

func TestStopAndWaitTwice(t *testing.T) {
	s, _ := newSystem(t, nil)
	pid := s.Spawn(Kind{Name: "f"}, &faulty{})
	stop(t, s, pid)
	stop(t, s, pid)
	s.Send(pid, "late")
	s.Send(nil, "nobody")
}

func TestTap(t *testing.T) {
	var seen list[string]
	s, _ := newSystem(t, func(self *PID, m any) {
		seen.add(fmt.Sprintf("%s %T", strings.SplitN(self.Id, "-", 2)[0], m))
		if m == "tapped" {
			panic("tap")
		}
	})
	f := &faulty{}
	var crashed list[any]
	pid := s.Spawn(Kind{Name: "f", Crashed: func(m any) { crashed.add(m) }}, f)
	s.Send(pid, "a")
	s.Send(pid, "tapped")
	s.Send(pid, "b")
	expect(t, "state", echo(t, s, pid), "2")
	stop(t, s, pid)
	expect(t, "tapped", seen.all(), []string{"f string", "f string", "f string", "f rt.ask"})
	expect(t, "crashed", crashed.all(), []any{"tapped"})
	expect(t, "events", f.events.all(), []string{"started", "a", "restarting", "started", "b", "stopping", "stopped"})
}

func TestRefs(t *testing.T) {
	s, _ := newSystem(t, nil)
	pid := s.Spawn(Kind{Name: "f"}, &faulty{})
	ref := s.Ref(pid)
	if ref.PID() != pid {
		t.Errorf("PID() = %v, want %v", ref.PID(), pid)
	}
	ref.Send("a")
	expect(t, "state", echo(t, s, pid), "1")
	stop(t, s, pid)
}

// ball is served between two players until its hops are used up.
type ball struct {
	hops int
	from *PID
}

// spec 08 1.8: the stress that shows overlapping runs, under the race detector.
func TestPingPong(t *testing.T) {
	const pairs, hops = 1000, 20
	s, _ := newSystem(t, nil)
	done := make(chan int, pairs)
	players := Kind{Name: "player"}
	type player struct{ hits int }
	newPlayer := func() Actor {
		p := &player{}
		return receive(func(c Context) {
			m, ok := c.Message().(ball)
			if !ok {
				return
			}
			p.hits++
			if m.hops == 0 {
				done <- p.hits
				return
			}
			s.Send(m.from, ball{m.hops - 1, c.Self()})
		})
	}
	parent := s.Spawn(Kind{Name: "court"}, receive(func(c Context) {
		if _, ok := c.Message().(*Started); !ok {
			return
		}
		for range pairs {
			a := s.SpawnChild(c, &players, newPlayer())
			b := s.SpawnChild(c, &players, newPlayer())
			s.Send(a, ball{hops, b})
		}
	}))
	for range pairs {
		expect(t, "hits of the last player", await(t, done), hops/2+1)
	}
	stop(t, s, parent)
}

// Messages of one sender arrive in the order sent, whatever others send.
func TestOrderPerSender(t *testing.T) {
	const senders, each = 8, 500
	s, _ := newSystem(t, nil)
	var next [senders]int
	total := 0
	done := make(chan struct{})
	to := s.Spawn(Kind{Name: "to", Mailbox: senders * each}, receive(func(c Context) {
		m, ok := c.Message().([2]int)
		if !ok {
			return
		}
		if next[m[0]] != m[1] {
			t.Errorf("sender %d: got %d, want %d", m[0], m[1], next[m[0]])
		}
		next[m[0]] = m[1] + 1
		if total++; total == senders*each {
			close(done)
		}
	}))
	for i := range senders {
		s.Go(func() {
			for n := range each {
				s.Send(to, [2]int{i, n})
			}
		})
	}
	await(t, done)
	stop(t, s, to)
}
