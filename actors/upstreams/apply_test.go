package upstreams_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/upstreams"
)

// When the context of an Apply ends the changes are in effect: it tells what they are,
// and what has not stopped yet. A later Apply is not kept from its own changes by that.
func TestApplyUnfinished(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		h.server("a").linger, h.server("b").linger = time.Minute, time.Minute
		h.apply(h.config("a", "1"), h.config("b", "1"), h.config("c", "1"))
		got, err := h.set.Apply(timeout(t, time.Second), []upstreams.Config{h.config("b", "2"), h.config("d", "1")})
		equal(t, "changes", got, upstreams.Changes{Added: []string{"d"}, Removed: []string{"a", "c"}, Changed: []string{"b"}})
		unfinished(t, err, "a", "b")
		equal(t, "the new one", h.verdict("d"), msg.Live)

		got, err = h.set.Apply(timeout(t, time.Second), []upstreams.Config{h.config("b", "2"), h.config("e", "1")})
		equal(t, "changes meanwhile", got, upstreams.Changes{Added: []string{"e"}, Removed: []string{"d"}})
		unfinished(t, err, "a", "b")
		equal(t, "the new one meanwhile", h.verdict("e"), msg.Live)

		got, err = h.set.Apply(timeout(t, time.Second), []upstreams.Config{h.config("e", "1")})
		equal(t, "the changed one is removed meanwhile", got, upstreams.Changes{Removed: []string{"b"}})
		unfinished(t, err, "a", "b")
		got, err = h.set.Apply(timeout(t, time.Second), []upstreams.Config{h.config("b", "2"), h.config("e", "1")})
		equal(t, "and added again", got, upstreams.Changes{Added: []string{"b"}})
		unfinished(t, err, "a", "b")

		begun := time.Now()
		equal(t, "the same again", h.apply(h.config("b", "3"), h.config("e", "1")), upstreams.Changes{Changed: []string{"b"}})
		equal(t, "waited", time.Since(begun), 56*time.Second)
		equal(t, "starts of the changed one", h.server("b").started(), 2)
		equal(t, "the changed one", h.verdict("b"), msg.Live)
	})
}

func unfinished(t *testing.T, err error, stopping ...string) {
	t.Helper()
	var unfinished *upstreams.UnfinishedError
	if !errors.As(err, &unfinished) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the error is %v", err)
	}
	if diff := cmp.Diff(stopping, unfinished.Stopping); diff != "" {
		t.Errorf("not stopped (-want +got):\n%s", diff)
	}
}

// A set that does not come to an Apply before its context ends makes none of its
// changes, then or later.
func TestApplyWithdrawn(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		h.apply(h.config("a", "1"))
		h.strike(1, func(message any) bool { // not to fail, but to be slow
			if fmt.Sprintf("%T", message) == "*upstreams.list" {
				time.Sleep(2 * time.Second)
			}
			return false
		})
		listed := make(chan error, 1)
		go func() {
			_, err := h.set.Instances(t.Context())
			listed <- err
		}()
		synctest.Wait()
		got, err := h.set.Apply(timeout(t, time.Second), nil)
		equal(t, "changes", got, upstreams.Changes{})
		if !errors.Is(err, context.DeadlineExceeded) || errors.As(err, new(*upstreams.UnfinishedError)) {
			t.Errorf("the error is %v", err)
		}
		equal(t, "the list", <-listed, error(nil))
		synctest.Wait()
		equal(t, "the upstream", h.verdict("a"), msg.Live)
	})
}

// Calls on upstreams that start are held back once Apply has returned, however long
// their actors take to begin, or fail at it.
func TestApplyWaitsForTheBeginning(t *testing.T) {
	for _, test := range []struct {
		name     string
		failures int64
	}{{"slow", 0}, {"slow, and failing at first", 1}} {
		t.Run(test.name, func(t *testing.T) {
			inHouse(t, func(t *testing.T, h *house) {
				var begins atomic.Int64
				h.strike(test.failures, func(message any) bool {
					if fmt.Sprintf("%T", message) != "upstreams.started" {
						return false
					}
					time.Sleep(2 * time.Second) // other messages come meanwhile
					return begins.Add(1) <= test.failures
				})
				if _, err := h.set.Apply(t.Context(), []upstreams.Config{h.config("a", "1")}); err != nil {
					t.Fatal(err)
				}
				c := h.client("a")
				c.call()
				equal(t, "answer", c.answer(), `{"by":1,"capabilities":{"tools":{}}}`)
			})
		})
	}
}

// Whoever waits for a beginning is told when there will be none.
func TestApplyOfWhatDoesNotBegin(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		h.strike(1, func(message any) bool {
			if fmt.Sprintf("%T", message) == "upstreams.started" {
				time.Sleep(time.Minute)
			}
			return false
		})
		got, err := h.set.Apply(timeout(t, time.Second), []upstreams.Config{h.config("a", "1")})
		equal(t, "changes", got, upstreams.Changes{Added: []string{"a"}})
		unfinished(t, err)
		stopped := make(chan error, 1)
		go func() {
			_, err := h.set.Apply(t.Context(), []upstreams.Config{h.config("a", "2")})
			stopped <- err
		}()
		synctest.Wait()
		if err := h.set.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-stopped; err != nil && !errors.Is(err, rt.ErrStopped) {
			t.Errorf("an Apply when the set was stopped: %v", err)
		}
	})
}
