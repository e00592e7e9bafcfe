package rt

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newSystem(t, nil)
		start := time.Now()
		type due struct {
			Message string
			After   time.Duration
		}
		var got list[due]
		pid := s.Spawn(Kind{Name: "timed"}, receive(func(c Context) {
			if m, ok := c.Message().(string); ok {
				got.add(due{m, time.Since(start)})
			}
		}))
		var timer Timer
		timer.Stop()
		timer.Arm(s, pid, time.Second, "replaced")
		timer.Arm(s, pid, 3*time.Second, "three")
		time.Sleep(4 * time.Second)
		timer.Arm(s, pid, time.Second, "stopped")
		timer.Stop()
		timer.Stop()
		time.Sleep(4 * time.Second)
		timer.Arm(s, pid, 0, "at once")
		synctest.Wait()
		expect(t, "messages", got.all(), []due{{"three", 3 * time.Second}, {"at once", 8 * time.Second}})
		timer.Arm(s, pid, time.Second, "too late")
		stop(t, s, pid)
		time.Sleep(2 * time.Second)
		expect(t, "messages of a stopped actor", len(got.all()), 2)
	})
}

func TestBackoff(t *testing.T) {
	b := Backoff{Base: time.Second, Cap: 30 * time.Second}
	for _, c := range []struct {
		n      int
		jitter float64
		want   time.Duration
	}{
		{0, 1, time.Second}, {1, 1, 2 * time.Second}, {4, 1, 16 * time.Second}, {5, 1, 30 * time.Second},
		{0, 0, 500 * time.Millisecond}, {0, 0.5, 750 * time.Millisecond}, {5, 0, 15 * time.Second},
		{63, 1, 30 * time.Second}, {1 << 20, 1, 30 * time.Second},
	} {
		if got := b.Wait(c.n, c.jitter); got != c.want {
			t.Errorf("Wait(%d, %v) = %v, want %v", c.n, c.jitter, got, c.want)
		}
	}
	for n := range 70 {
		if got := (Backoff{}).Wait(n, 1); got != 0 {
			t.Errorf("zero Backoff waits %v", got)
		}
		long := Backoff{Base: time.Hour, Cap: 1000 * time.Hour}
		if got := long.Wait(n, 1); got < time.Hour || got > long.Cap {
			t.Errorf("Wait(%d) of hours = %v", n, got)
		}
	}
}

func TestCredits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCredits(2)
		done := make(chan struct{})
		if !c.Take(done) || !c.Take(nil) {
			t.Fatal("two credits could not be taken")
		}
		took := make(chan bool, 1)
		go func() { took <- c.Take(done) }()
		synctest.Wait()
		expect(t, "takers beyond the credits", len(took), 0)
		c.Give()
		expect(t, "taken after Give", <-took, true)
		go func() { took <- c.Take(done) }()
		synctest.Wait()
		close(done)
		expect(t, "taken after the end", <-took, false)
		for range 5 { // more than were taken: no effect, no wait
			c.Give()
		}
		expect(t, "credits to take", cap(c)-len(c), 2)
		expect(t, "a free credit is taken even after the end", c.Take(done), true)
	})
}

// A dead letter leaves nothing behind: see goleak in TestMain.
func TestDeadLetters(t *testing.T) {
	s, log := newSystem(t, nil)
	pid := s.Spawn(Kind{Name: "f"}, &faulty{})
	stop(t, s, pid)
	for range 100 {
		s.Send(pid, "late")
	}
	expect(t, "log", log.String(), "")
}

func TestGoMayBlock(t *testing.T) {
	s, _ := newSystem(t, nil)
	release := make(chan struct{})
	var ran atomic.Int32
	for range 50 {
		s.Go(func() { <-release; ran.Add(1) })
	}
	pid := s.Spawn(Kind{Name: "f"}, &faulty{})
	expect(t, "an actor beside blocked jobs", echo(t, s, pid), "0")
	stop(t, s, pid)
	close(release)
	s.jobs.close()
	expect(t, "jobs done when the system has closed", ran.Load(), 50)
}

// A job that comes while the system closes, or behind that, is run: nothing tells the
// two apart but the race detector.
func TestStragglers(t *testing.T) {
	for range 200 {
		j := newJobs(2)
		release, first, late, closed := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
		j.run(func() { <-release; close(first) })
		go func() { j.close(); close(closed) }()
		runtime.Gosched()
		close(release)
		await(t, first)
		runtime.Gosched()
		j.run(func() { close(late) })
		await(t, late)
		await(t, closed)
	}
}

func TestJobsAreReused(t *testing.T) {
	j := newJobs(2)
	turn := make(chan struct{})
	for range 100 {
		j.run(func() { turn <- struct{}{} })
		await(t, turn)
	}
	j.mu.Lock()
	idle := len(j.idle)
	j.mu.Unlock()
	if idle > 2 {
		t.Errorf("%d idle goroutines kept, want at most 2", idle)
	}
	goexit := make(chan struct{})
	j.run(func() { defer close(goexit); runtime.Goexit() })
	await(t, goexit)
	j.close()
	late := make(chan struct{})
	j.run(func() { close(late) })
	await(t, late)
}

func TestScratch(t *testing.T) {
	var s Scratch[*int]
	slice := s.Get()
	if len(slice) != 0 || cap(slice) == 0 {
		t.Errorf("Get: len %d cap %d", len(slice), cap(slice))
	}
	full := append(slice, new(int), new(int))
	s.Put(full)
	if full[0] != nil || full[1] != nil {
		t.Error("Put keeps what the elements refer to")
	}
	s.Put(make([]*int, 0, 1000))
	if got := s.Get(); len(got) != 0 || cap(got) > 256 {
		t.Errorf("Get: len %d cap %d, want an empty small slice", len(got), cap(got))
	}
}

// undeliverable hears that nobody took it.
type undeliverable struct{ told chan struct{} }

func (u undeliverable) Undelivered() { close(u.told) }

func TestUndeliverable(t *testing.T) {
	s, _ := newSystem(t, nil)
	pid := s.Spawn(Kind{Name: "f"}, &faulty{})
	taken := undeliverable{make(chan struct{})}
	s.Send(pid, taken)
	stop(t, s, pid)
	select {
	case <-taken.told:
		t.Error("a message that arrived was reported as undelivered")
	default:
	}
	late := undeliverable{make(chan struct{})}
	s.Send(pid, late)
	select {
	case <-late.told:
	default:
		t.Error("Undelivered did not run on the sender's goroutine")
	}
}
