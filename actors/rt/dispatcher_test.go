package rt

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

type funcActor func(c Context)

func (f funcActor) Receive(c Context) { f(c) }

// However many actors block, the next one is run: the watch adds workers.
func TestDispatcherRunsBesideBlockedActors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newSystem(t, nil)
		release := make(chan struct{})
		defer close(release)
		for range 8 {
			blocked := s.Spawn(Kind{Name: "blocked"}, funcActor(func(c Context) {
				if c.Message() == "block" {
					<-release
				}
			}))
			s.Send(blocked, "block")
		}
		handled := make(chan struct{}, 1)
		free := s.Spawn(Kind{Name: "free"}, funcActor(func(c Context) {
			if c.Message() == "go" {
				handled <- struct{}{}
			}
		}))
		before := time.Now()
		s.Send(free, "go")
		<-handled
		if waited := time.Since(before); waited > 2*9*stallAfter { // one worker a look, at every other look
			t.Errorf("the free actor waited %s", waited)
		}
	})
}

// An actor that never runs out of messages does not keep others from running.
func TestDispatcherIsFair(t *testing.T) {
	s, _ := newSystem(t, nil)
	stop := make(chan struct{})
	for range 4 {
		var flood *PID
		started := make(chan struct{})
		flood = s.Spawn(Kind{Name: "flood"}, funcActor(func(c Context) {
			if c.Message() != "again" {
				return
			}
			<-started
			select {
			case <-stop:
			default:
				s.Send(flood, "again")
			}
		}))
		close(started)
		s.Send(flood, "again")
	}
	handled := make(chan struct{}, 1)
	free := s.Spawn(Kind{Name: "free"}, funcActor(func(c Context) {
		if c.Message() == "go" {
			handled <- struct{}{}
		}
	}))
	s.Send(free, "go")
	select {
	case <-handled:
	case <-time.After(patience):
		t.Error("the free actor never ran")
	}
	close(stop)
}

// A burst of starts beyond the bound is refused by name, not as a stop.
func TestNurseryBirthsAreBounded(t *testing.T) {
	s, _ := newSystem(t, nil)
	n := NewNursery(s, Kind{Name: "child"})
	stuck := make(chan birthReply) // the nursery waits for us to take the reply
	s.Send(n.PID(), &birth{funcActor(func(Context) {}), stuck})
	replies := make(chan birthReply, maxBirths+2)
	for range maxBirths + 2 {
		s.Send(n.PID(), &birth{funcActor(func(Context) {}), replies})
	}
	<-stuck
	refused := 0
	for range maxBirths + 2 {
		if r := <-replies; r.err != nil {
			if !errors.Is(r.err, ErrTooMany) {
				t.Fatal(r.err)
			}
			refused++
		}
	}
	// The nursery may or may not have taken the stuck one from its queue by then.
	if refused < 2 || refused > 3 {
		t.Errorf("%d starts of %d were refused, want two or three", refused, maxBirths+2)
	}
}

// A look that was already due when the dispatcher closed is the last one.
func TestNoLookAfterClose(t *testing.T) {
	j := newJobs(2)
	d := newDispatcher(j)
	ran := make(chan struct{})
	d.Schedule(func() { close(ran) })
	await(t, ran)
	d.close()
	d.look()
	d.Schedule(func() {})
	if d.watch.Stop() {
		t.Error("the watch was armed again")
	}
	j.close()
}

// A burst of jobs leaves goroutines behind for the next one; a quiet system lets
// them go.
func TestIdleJobsGoWhenQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newSystem(t, nil)
		var burst sync.WaitGroup
		release := make(chan struct{})
		for range 100 {
			burst.Add(1)
			s.Go(func() { defer burst.Done(); <-release })
		}
		close(release)
		burst.Wait()
		synctest.Wait()
		idle := func() int {
			s.jobs.mu.Lock()
			defer s.jobs.mu.Unlock()
			return len(s.jobs.idle)
		}
		if got := idle(); got < 100 {
			t.Errorf("%d goroutines are kept after the burst, want at least 100", got)
		}
		s.Send(s.Spawn(Kind{Name: "one"}, funcActor(func(Context) {})), "wake")
		<-time.After(2 * quietLooks * stallAfter)
		synctest.Wait()
		if got := idle(); got != restingJobs {
			t.Errorf("%d goroutines are kept by a quiet system, want %d", got, restingJobs)
		}
	})
}
