package rt

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func newChildren(t *testing.T) (*Nursery, *System, *testLog) {
	s, log := newSystem(t, nil)
	return NewNursery(s, Kind{Name: "child"}), s, log
}

func born(t *testing.T, n *Nursery, a Actor) *PID {
	t.Helper()
	pid, err := n.Spawn(context.Background(), a)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// A child that panics is stopped; its siblings never notice.
func TestNurseryCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, s, log := newChildren(t)
		var kids [3]*faulty
		var pids [3]*PID
		for i := range kids {
			kids[i] = &faulty{}
			pids[i] = born(t, n, kids[i])
		}
		n.Tell("a")
		synctest.Wait() // what a nursery tells comes by another way than what is sent directly
		s.Send(pids[1], "panic")
		n.Tell("b")
		synctest.Wait()
		for i, want := range [][]string{
			{"started", "a", "b"}, {"started", "a", "panic", "stopping", "stopped"}, {"started", "a", "b"},
		} {
			expect(t, fmt.Sprint("events of child ", i), kids[i].events.all(), want)
		}
		if got := log.String(); strings.Count(got, "crashed") != 1 || !strings.Contains(got, "boom while handling string; stopped") {
			t.Errorf("log: %s", got)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := n.Stop(ctx); err == nil {
			t.Error("Stop did not report that it had to stop children")
		}
		expect(t, "last event of a sibling", kids[0].events.all()[3:], []string{"stopping", "stopped"})
	})
}

func TestNurseryStopWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, s, _ := newChildren(t)
		leave := receive(func(c Context) {
			if c.Message() == "leave" {
				c.Stop(c.Self())
			}
		})
		first, second := born(t, n, leave), born(t, n, leave)
		stopped := make(chan error, 1)
		go func() { stopped <- n.Stop(context.Background()) }()
		synctest.Wait()
		if pid, err := n.Spawn(context.Background(), leave); err != ErrStopped {
			t.Errorf("Spawn while stopping = %v, %v, want ErrStopped", pid, err)
		}
		s.Send(first, "leave")
		synctest.Wait()
		select {
		case err := <-stopped:
			t.Fatalf("Stop returned %v with a child alive", err)
		default:
		}
		s.Send(second, "leave")
		if err := <-stopped; err != nil {
			t.Errorf("Stop = %v", err)
		}
		if pid, err := n.Spawn(context.Background(), leave); err != ErrStopped {
			t.Errorf("Spawn after Stop = %v, %v, want ErrStopped", pid, err)
		}
		if err := n.Stop(context.Background()); err != nil {
			t.Errorf("second Stop = %v", err)
		}
	})
}

func TestNurseryStopCuts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, _, _ := newChildren(t)
		kid := &faulty{}
		born(t, n, kid)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		start := time.Now()
		err := n.Stop(ctx)
		expect(t, "error", fmt.Sprint(err), "stop every child: context deadline exceeded")
		expect(t, "time", time.Since(start), 5*time.Second)
		expect(t, "events", kid.events.all(), []string{"started", "stopping", "stopped"})
	})
}

// Stopping a nursery by its address stops its children as well.
func TestNurseryStoppedByAddress(t *testing.T) {
	n, s, _ := newChildren(t)
	kid := &faulty{}
	born(t, n, kid)
	stop(t, s, n.PID())
	expect(t, "events", kid.events.all(), []string{"started", "stopping", "stopped"})
	if pid, err := n.Spawn(context.Background(), kid); err != ErrStopped {
		t.Errorf("Spawn = %v, %v, want ErrStopped", pid, err)
	}
	if err := n.Stop(context.Background()); err != nil {
		t.Errorf("Stop = %v", err)
	}
}

func TestNurseryWithoutChildren(t *testing.T) {
	n, _, _ := newChildren(t)
	if err := n.Stop(context.Background()); err != nil {
		t.Errorf("Stop = %v", err)
	}
}
