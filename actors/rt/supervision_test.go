package rt

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestRestartDelay(t *testing.T) {
	r := Restart{First: 100 * time.Millisecond, Cap: 10 * time.Second}
	for n, want := range map[int]time.Duration{
		-1: 0, 0: 0, 1: 0,
		2: 100 * time.Millisecond, 3: 200 * time.Millisecond, 4: 400 * time.Millisecond, 8: 6400 * time.Millisecond,
		9: 10 * time.Second, 10: 10 * time.Second, 1000: 10 * time.Second,
	} {
		if got := r.Delay(n); got != want {
			t.Errorf("Delay(%d) = %v, want %v", n, got, want)
		}
	}
	if got := (Restart{}).Delay(5); got != 0 {
		t.Errorf("zero Restart waits %v", got)
	}
}

// family is a parent with one child under a schedule.
type family struct {
	sys      *System
	log      *testLog
	parent   *PID
	child    *PID
	actor    *faulty
	overflow list[any]
	ended    chan struct{} // the parent learnt that the child has ended
}

func newFamily(t *testing.T, schedule Supervision) *family {
	f := &family{actor: &faulty{}, ended: make(chan struct{})}
	f.sys, f.log = newSystem(t, nil)
	kind := Kind{Name: "child", Overflow: func(m any) { f.overflow.add(m) }}
	born := make(chan *PID, 1)
	f.parent = f.sys.Spawn(Kind{Name: "parent", Children: schedule}, receive(func(c Context) {
		switch c.Message().(type) {
		case *Started:
			born <- f.sys.SpawnChild(c, &kind, f.actor)
		case *Terminated:
			close(f.ended)
		}
	}))
	f.child = <-born
	return f
}

// crash makes the child panic and reports after how long it answers again.
func (f *family) crash() time.Duration {
	start := time.Now()
	f.sys.Send(f.child, "panic")
	a := ask{make(chan string, 1)}
	f.sys.Send(f.child, a)
	<-a.reply
	return time.Since(start)
}

// The default schedule of slots: at once, 100 ms doubling to 10 s, given up at
// the tenth crash of a minute. What was queued waits for the restart.
func TestRestartSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFamily(t, DefaultRestart)
		for n := 1; n < DefaultRestart.Most; n++ {
			if got, want := f.crash(), DefaultRestart.Delay(n); got != want {
				t.Errorf("restart %d after %v, want %v", n, got, want)
			}
		}
		f.sys.Send(f.child, "panic")
		f.sys.Send(f.child, "left over")
		<-f.ended
		synctest.Wait()
		expect(t, "overflow", f.overflow.all(), []any{"left over"})
		if !strings.Contains(f.log.String(), "stopped after 10 crashes within 1m0s") {
			t.Errorf("the log does not tell: %s", f.log)
		}
		stop(t, f.sys, f.parent)
	})
}

func TestRestartWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFamily(t, Restart{First: time.Second, Cap: 4 * time.Second, Most: 3, Window: time.Minute})
		for range 4 {
			for n, want := range []time.Duration{0, time.Second} {
				if got := f.crash(); got != want {
					t.Errorf("restart %d of a window after %v, want %v", n+1, got, want)
				}
			}
			time.Sleep(time.Minute) // of the bubble's clock
		}
		stop(t, f.sys, f.parent)
		expect(t, "state after eight crashes", f.actor.count, 0)
	})
}

func TestRestartKeepsOrderAndState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFamily(t, DefaultRestart)
		f.crash() // the next restart waits
		for _, m := range []string{"a", "panic", "b", "c"} {
			f.sys.Send(f.child, m)
		}
		synctest.Wait()
		expect(t, "handled while suspended", f.actor.events.all()[4:], []string{"a", "panic"})
		time.Sleep(DefaultRestart.Delay(2))
		synctest.Wait()
		expect(t, "events", f.actor.events.all(),
			[]string{"started", "panic", "restarting", "started", "a", "panic", "restarting", "started", "b", "c"})
		expect(t, "state", f.actor.count, 3)
		stop(t, f.sys, f.parent)
	})
}

// An actor stopped while it waits for its restart stops at once, and the timer
// of the restart changes nothing.
func TestStopDuringRestartDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFamily(t, DefaultRestart)
		f.crash()
		f.sys.Send(f.child, "panic")
		f.sys.Send(f.child, "left over")
		synctest.Wait()
		start := time.Now()
		stop(t, f.sys, f.child)
		<-f.ended
		expect(t, "time to stop", time.Since(start), 0)
		time.Sleep(time.Minute)
		synctest.Wait()
		expect(t, "overflow", f.overflow.all(), []any{"left over"})
		expect(t, "last event", f.actor.events.all()[len(f.actor.events.all())-1], "stopped")
		stop(t, f.sys, f.parent)
	})
}

func TestCrashInStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &family{actor: &faulty{}, ended: make(chan struct{})}
		f.sys, f.log = newSystem(t, nil)
		starts := 0
		f.actor.onStart = func(Context) {
			if starts++; starts < 3 {
				panic("boom")
			}
		}
		kind := Kind{Name: "child"}
		born := make(chan *PID, 1)
		f.parent = f.sys.Spawn(Kind{Name: "parent", Children: DefaultRestart}, receive(func(c Context) {
			if _, ok := c.Message().(*Started); ok {
				born <- f.sys.SpawnChild(c, &kind, f.actor)
			}
		}))
		start := time.Now()
		expect(t, "state", echo(t, f.sys, <-born), "0")
		expect(t, "time to the third start", time.Since(start), DefaultRestart.Delay(2))
		stop(t, f.sys, f.parent)
	})
}

// An actor of a kind that resumes goes on behind the message that failed: it is
// not started again, and its children live.
func TestResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log := newSystem(t, nil)
		kid := &faulty{}
		kind := Kind{Name: "child"}
		f := &faulty{onStart: func(c Context) { s.SpawnChild(c, &kind, kid) }}
		var crashed list[any]
		pid := s.Spawn(Kind{Name: "f", Resume: true, Crashed: func(m any) { crashed.add(m) }}, f)
		for range 20 { // more often than an actor may be restarted
			s.Send(pid, "panic")
		}
		s.Send(pid, "goexit")
		expect(t, "state", echo(t, s, pid), "0")
		synctest.Wait()
		expect(t, "crashes", len(crashed.all()), 21)
		expect(t, "events", len(f.events.all()), len([]string{"started"})+21)
		expect(t, "events of the child", kid.events.all(), []string{"started"})
		if n := strings.Count(log.String(), "; resumed"); n != 21 {
			t.Errorf("%d crashes logged: %s", n, log)
		}
		stop(t, s, pid)
		expect(t, "events of the child", kid.events.all(), []string{"started", "stopping", "stopped"})
	})
}
