package rt

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"mcpbroker/actors/mcp"
)

// slowReader is an outbox whose writer runs when the test says so.
type slowReader struct {
	box     *Outbox
	pending []func()
	written []string
	fail    error
	during  func() // runs in the middle of a write
	events  []string
	dropped int
}

func newSlowReader(limit int) *slowReader {
	r := &slowReader{}
	r.box = NewOutbox(OutboxConfig{
		Limit: limit,
		Run:   func(fn func()) { r.pending = append(r.pending, fn) },
		Write: func(batch []Item) error {
			if r.during != nil {
				r.during()
			}
			if r.fail != nil {
				return r.fail
			}
			for _, item := range batch {
				r.written = append(r.written, string(item.Frame))
			}
			return nil
		},
		Failed:  func(err error) { r.events = append(r.events, "failed: "+err.Error()) },
		Dropped: func(n int) { r.dropped += n },
		Overrun: func() { r.events = append(r.events, "overrun") },
	})
	return r
}

// read lets the writer, and what else was started, run.
func (r *slowReader) read() {
	for len(r.pending) > 0 {
		fn := r.pending[0]
		r.pending = r.pending[1:]
		fn()
	}
}

func (r *slowReader) finished() {
	r.events = append(r.events, fmt.Sprintf("finished after %d", len(r.written)))
}

func required(frame string) Item  { return Item{Frame: []byte(frame)} }
func droppable(frame string) Item { return Item{Frame: []byte(frame), Class: mcp.Droppable} }
func coalesced(key, frame string) Item {
	return Item{Frame: []byte(frame), Class: mcp.Coalesced, Key: key}
}

// room is the budget that frames of these lengths use up exactly.
func room(lengths ...int) (bytes int) {
	for _, n := range lengths {
		bytes += n + itemOverhead
	}
	return bytes
}

// push queues items and reports which were taken.
func (r *slowReader) push(items ...Item) (taken []bool) {
	for _, item := range items {
		taken = append(taken, r.box.Push(item))
	}
	return taken
}

func TestOutboxBoundIsExact(t *testing.T) {
	r := newSlowReader(room(10, 5))
	expect(t, "taken at the bound", r.push(required("0123456789"), required("01234")), []bool{true, true})
	r.read()
	expect(t, "written", r.written, []string{"0123456789", "01234"})
	expect(t, "events", r.events, nil)

	r = newSlowReader(room(10, 5) - 1)
	expect(t, "taken over the bound", r.push(required("0123456789"), required("01234"), required("")), []bool{true, false, false})
	expect(t, "events", r.events, []string{"overrun"})
	expect(t, "dropped", r.dropped, 0)
	r.read()
	expect(t, "written after the overrun", r.written, []string{"0123456789"})
	expect(t, "taken once closed", r.push(required("x"), droppable("x"), coalesced("k", "x")), []bool{false, false, false})
	expect(t, "events", r.events, []string{"overrun"})
}

// A frame larger than the budget still goes out when nothing waits before it.
func TestOutboxLargeFrame(t *testing.T) {
	r := newSlowReader(10)
	large := strings.Repeat("x", 1000)
	expect(t, "taken", r.push(required(large)), []bool{true})
	r.read()
	expect(t, "taken", r.push(droppable(large), droppable("y")), []bool{true, true})
	expect(t, "dropped", r.dropped, 1)
	r.read()
	expect(t, "a large answer behind what can be dropped", r.push(droppable("z"), required(large)), []bool{true, true})
	r.read()
	expect(t, "written", r.written, []string{large, "y", large})
	expect(t, "events", r.events, nil)
}

// The frames of one write do not count against the budget any more.
func TestOutboxBudgetIsWhatWaits(t *testing.T) {
	r := newSlowReader(room(1))
	r.during = func() {
		r.during = nil
		expect(t, "taken during a write", r.push(required("b"), required("c")), []bool{true, false})
	}
	r.push(required("a"))
	r.read()
	expect(t, "written", r.written, []string{"a", "b"})
	expect(t, "events", r.events, []string{"overrun"})
}

func TestOutboxCoalesced(t *testing.T) {
	r := newSlowReader(room(1, 2, 2, 2))
	expect(t, "taken", r.push(required("a"), coalesced("k", "k1"), coalesced("l", "l1"), required("zz")), []bool{true, true, true, true})
	expect(t, "replaced at the bound", r.push(coalesced("k", "k2"), coalesced("l", "2")), []bool{true, true})
	expect(t, "grown within the bound", r.push(coalesced("k", "k33")), []bool{true})
	r.read()
	expect(t, "written", r.written, []string{"a", "k33", "2", "zz"})
	expect(t, "not replaced once written", r.push(coalesced("k", "k4")), []bool{true})
	r.read()
	expect(t, "written", r.written[4:], []string{"k4"})
	expect(t, "events", r.events, nil)
}

// Coalescing does not reach past the bound either.
func TestOutboxCoalescedGrows(t *testing.T) {
	r := newSlowReader(room(1, 1, 1))
	expect(t, "taken", r.push(droppable("d"), required("a"), coalesced("k", "1")), []bool{true, true, true})
	expect(t, "grown into what a dropped frame leaves", r.push(coalesced("k", strings.Repeat("2", room(1)+1))), []bool{true})
	expect(t, "dropped", r.dropped, 1)
	expect(t, "grown past the bound", r.push(coalesced("k", strings.Repeat("3", room(1)+2))), []bool{false})
	expect(t, "events", r.events, []string{"overrun"})
	r.read()
	expect(t, "written", r.written, []string{"a", strings.Repeat("2", room(1)+1)})
}

func TestOutboxDroppable(t *testing.T) {
	r := newSlowReader(room(1, 1, 1))
	expect(t, "taken", r.push(droppable("1"), required("a"), droppable("2"), droppable("3")), []bool{true, true, true, true})
	expect(t, "dropped for a newer one", r.dropped, 1)
	expect(t, "taken", r.push(required("b"), required("c")), []bool{true, true})
	expect(t, "dropped for what is required", r.dropped, 3)
	expect(t, "taken into a queue of required frames", r.push(droppable("4")), []bool{false})
	expect(t, "dropped", r.dropped, 4)
	expect(t, "a coalesced frame needs room too", r.push(coalesced("k", "5")), []bool{false})
	expect(t, "events", r.events, []string{"overrun"})
	r.read()
	expect(t, "written", r.written, []string{"a", "b", "c"})
}

// Only as many frames are dropped as the new one needs.
func TestOutboxDropsNoMoreThanNeeded(t *testing.T) {
	r := newSlowReader(room(1, 1, 1, 1))
	r.push(droppable("1"), droppable("2"), droppable("3"), droppable("4"), required("a"))
	r.read()
	expect(t, "written", r.written, []string{"2", "3", "4", "a"})
	expect(t, "dropped", r.dropped, 1)
}

func TestOutboxFinish(t *testing.T) {
	r := newSlowReader(1000)
	r.push(required("a"), required("b"))
	r.box.Finish(r.finished)
	expect(t, "taken after Finish", r.push(required("c")), []bool{false})
	expect(t, "finished before the writes", r.events, nil)
	r.read()
	expect(t, "events", r.events, []string{"finished after 2"})

	idle := newSlowReader(1000)
	idle.push(required("a"))
	idle.read()
	idle.box.Finish(idle.finished)
	idle.read()
	expect(t, "events of an idle outbox", idle.events, []string{"finished after 1"})
}

func TestOutboxFinishDuringWrite(t *testing.T) {
	r := newSlowReader(1000)
	r.during = func() {
		r.during = nil
		r.push(required("b"))
		r.box.Finish(r.finished)
	}
	r.push(required("a"))
	r.read()
	expect(t, "written", r.written, []string{"a", "b"})
	expect(t, "events", r.events, []string{"finished after 2"})
}

func TestOutboxFinishAfterClose(t *testing.T) {
	r := newSlowReader(1000)
	r.push(required("a"), required("b"))
	r.box.Close()
	r.box.Finish(r.finished)
	r.read()
	expect(t, "written after Close", r.written, nil)
	expect(t, "events", r.events, []string{"finished after 0"})

	during := newSlowReader(1000)
	during.during = func() { during.box.Close() }
	during.push(required("a"))
	during.read()
	during.box.Finish(during.finished)
	during.read()
	expect(t, "the batch being written", during.written, []string{"a"})
	expect(t, "events", during.events, []string{"finished after 1"})
}

func TestOutboxFailedWrite(t *testing.T) {
	r := newSlowReader(1000)
	r.fail = errors.New("reset by peer")
	r.during = func() { r.push(required("b")) }
	r.push(required("a"))
	r.read()
	expect(t, "events", r.events, []string{"failed: reset by peer"})
	expect(t, "taken after the failure", r.push(required("c")), []bool{false})
	r.box.Finish(r.finished)
	r.read()
	expect(t, "events", r.events, []string{"failed: reset by peer", "finished after 0"})
}

func TestOutboxFinishThenFailedWrite(t *testing.T) {
	r := newSlowReader(1000)
	r.fail = errors.New("reset by peer")
	r.push(required("a"))
	r.box.Finish(r.finished)
	r.read()
	expect(t, "events", r.events, []string{"failed: reset by peer", "finished after 0"})
}

func TestOutboxWithoutSeams(t *testing.T) {
	var pending []func()
	box := NewOutbox(OutboxConfig{
		Limit: room(1), Run: func(fn func()) { pending = append(pending, fn) },
		Write: func([]Item) error { return errors.New("broken") },
	})
	box.Push(required("a"))
	expect(t, "taken over the bound", box.Push(required("b")), false)
	pending[0]()
	expect(t, "taken after the failure", box.Push(required("c")), false)
}

// Many producers, the real goroutines: one writer at a time, everything once,
// the order of each producer kept, and Finish behind the last frame.
func TestOutboxStress(t *testing.T) {
	const producers, each = 8, 2000
	s, _ := newSystem(t, nil)
	var writing atomic.Bool
	var next [producers]int // touched by the writer only, which the race detector checks
	total := 0
	box := NewOutbox(OutboxConfig{
		Limit: producers * each * room(16), Run: s.Go,
		Overrun: func() { t.Error("overrun") },
		Failed:  func(err error) { t.Error(err) },
		Write: func(batch []Item) error {
			if !writing.CompareAndSwap(false, true) {
				t.Error("two writers at once")
			}
			defer writing.Store(false)
			for _, item := range batch {
				p, n := int(item.ID%producers), int(item.ID/producers)
				if next[p] != n {
					t.Errorf("producer %d: got %d, want %d", p, n, next[p])
				}
				next[p] = n + 1
				total++
			}
			return nil
		},
	})
	var all sync.WaitGroup
	for p := range producers {
		all.Go(func() {
			for n := range each {
				box.Push(Item{Frame: []byte("frame"), ID: uint64(n*producers + p)})
			}
		})
	}
	all.Wait()
	done := make(chan int, 1)
	box.Finish(func() { done <- total })
	expect(t, "frames written before Finish", await(t, done), producers*each)
}
