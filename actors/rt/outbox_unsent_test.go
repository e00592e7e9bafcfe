package rt

import (
	"errors"
	"fmt"
	"testing"
)

// unsent is what the outbox says was never written.
func (r *slowReader) unsent() []string {
	var frames []string
	for _, frame := range r.box.Unsent() {
		frames = append(frames, string(frame))
	}
	return frames
}

// Spec 06: only a request that was never written may be sent another way. A frame of
// which one byte may have been written is none of those.
func TestOutboxUnsent(t *testing.T) {
	broken := errors.New("broken pipe")
	for _, test := range []struct {
		name string
		fail error
		want []string
	}{
		{"nothing was written", &WriteError{0, broken}, []string{"a", "b", "c", "d", "e"}},
		{"half of the first frame was", &WriteError{1, broken}, []string{"b", "c", "d", "e"}},
		{"it failed in the second frame", &WriteError{2, broken}, []string{"c", "d", "e"}},
		{"the whole batch was begun", &WriteError{3, broken}, []string{"d", "e"}},
		{"it came further than there is", &WriteError{9, broken}, []string{"d", "e"}},
		{"inside of another error", fmt.Errorf("write: %w", &WriteError{2, broken}), []string{"c", "d", "e"}},
		{"nobody knows how far it came", broken, []string{"d", "e"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newSlowReader(1000)
			r.fail = test.fail
			r.during = func() { r.push(required("d"), required("e")) }
			r.push(required("a"), required("b"), required("c"))
			r.read()
			expect(t, "events", r.events, []string{"failed: " + test.fail.Error()})
			expect(t, "taken after the failure", r.push(required("f")), []bool{false})
			expect(t, "unsent", r.unsent(), test.want)
			expect(t, "asked again", r.unsent(), nil)
		})
	}
	expect(t, "cause", errors.Is(&WriteError{1, broken}, broken), true)
}

// Without a failure it is what the writer has not been handed; what it is writing at
// that moment is not certain.
func TestOutboxUnsentWhileItWaits(t *testing.T) {
	r := newSlowReader(1000)
	r.push(required("a"), droppable("b"), coalesced("k", "c"), coalesced("k", "d"))
	expect(t, "unsent", r.unsent(), []string{"a", "b", "d"})
	expect(t, "taken afterwards", r.push(required("e")), []bool{false})
	r.read()
	expect(t, "written", r.written, nil)

	during := newSlowReader(1000)
	var unsent []string
	during.during = func() {
		during.push(required("c"))
		unsent = during.unsent()
	}
	during.push(required("a"), required("b"))
	during.read()
	expect(t, "unsent during a write", unsent, []string{"c"})
	expect(t, "written", during.written, []string{"a", "b"})
}

// The writer's end is worth waiting for: Finish comes behind its failure.
func TestOutboxUnsentAfterFinish(t *testing.T) {
	r := newSlowReader(1000)
	r.fail = &WriteError{1, errors.New("closed")}
	var unsent []string
	r.during = func() {
		r.push(required("c"))
		r.box.Finish(func() { unsent = r.unsent() })
	}
	r.push(required("a"), required("b"))
	r.read()
	expect(t, "unsent", unsent, []string{"b", "c"})
}

// A reader that is too slow leaves what it has been given to the writer. What did
// not fit was never taken; its sender knows.
func TestOutboxUnsentAfterOverrun(t *testing.T) {
	r := newSlowReader(room(1, 1))
	expect(t, "taken", r.push(required("a"), required("b"), required("c")), []bool{true, true, false})
	expect(t, "unsent", r.unsent(), []string{"a", "b"})
	expect(t, "events", r.events, []string{"overrun"})
}

// Close drops it: nobody is going to ask.
func TestOutboxCloseDropsUnsent(t *testing.T) {
	r := newSlowReader(1000)
	r.fail = &WriteError{0, errors.New("closed")}
	r.push(required("a"))
	r.read()
	r.box.Close()
	expect(t, "unsent after a failure", r.unsent(), nil)

	waits := newSlowReader(1000)
	waits.push(required("a"))
	waits.box.Close()
	expect(t, "unsent of what waited", waits.unsent(), nil)
}
