package provider

import (
	"fmt"
	"sync"
)

const (
	inboxFrames = 256
	inboxBytes  = 16 << 20
)

// OverflowError tells that a Loopback was closed because its Message callback
// did not keep up: 256 frames or 16 MiB were waiting for it.
type OverflowError struct {
	Slot   string
	Frames int
	Bytes  int
}

func (e *OverflowError) Error() string {
	return fmt.Sprintf("loopback provider %q closed: its Message callback does not keep up (%d frames, %d bytes waiting)",
		e.Slot, e.Frames, e.Bytes)
}

type eventKind int

const (
	eventMessage eventKind = iota
	eventOpen
	eventError
	eventClose
)

type event struct {
	kind  eventKind
	frame []byte
	err   error
}

// inbox is the bounded queue between a connection and the goroutine that runs
// its callbacks. Invariant: an accepted open is followed by exactly one close,
// which is the last event once the inbox is sealed.
type inbox struct {
	mu      sync.Mutex
	changed sync.Cond
	events  []event
	bytes   int
	open    bool
	sealed  bool
}

func newInbox() *inbox {
	in := &inbox{}
	in.changed.L = &in.mu
	return in
}

// put appends e, waiting for room. It reports false once the inbox is sealed.
func (in *inbox) put(e event) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	for !in.sealed && !in.fits(e) {
		in.changed.Wait()
	}
	if in.sealed {
		return false
	}
	in.add(e)
	return true
}

// offer appends e without waiting. On overflow it seals the inbox with the
// returned error for slot; nil means accepted or already sealed.
func (in *inbox) offer(slot string, e event) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.sealed {
		return nil
	}
	if in.fits(e) {
		in.add(e)
		return nil
	}
	err := &OverflowError{Slot: slot, Frames: len(in.events), Bytes: in.bytes}
	in.seal(err)
	return err
}

// finish seals the inbox for an end the peer caused; what waits is still
// delivered. A nil err means a normal close.
func (in *inbox) finish(err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.sealed {
		in.seal(err)
	}
}

// abort seals the inbox for a local close: messages that wait are discarded.
func (in *inbox) abort() {
	in.mu.Lock()
	defer in.mu.Unlock()
	kept := in.events[:0]
	for _, e := range in.events {
		if e.kind != eventMessage {
			kept = append(kept, e)
		}
	}
	in.events, in.bytes = kept, 0
	if !in.sealed {
		in.seal(nil)
	}
}

// get removes the first event, waiting for one. It reports false when the inbox
// is sealed and empty.
func (in *inbox) get() (event, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for len(in.events) == 0 {
		if in.sealed {
			return event{}, false
		}
		in.changed.Wait()
	}
	e := in.events[0]
	in.events[0] = event{}
	in.events = in.events[1:]
	in.bytes -= len(e.frame)
	in.changed.Broadcast()
	return e, true
}

// fits lets a frame of any size into an empty inbox: its own bound is the read
// limit.
func (in *inbox) fits(e event) bool {
	return len(in.events) == 0 || len(in.events) < inboxFrames && in.bytes+len(e.frame) <= inboxBytes
}

func (in *inbox) add(e event) {
	switch e.kind {
	case eventOpen:
		if in.open {
			return
		}
		in.open = true
	case eventClose:
		if !in.open {
			return
		}
		in.open = false
	}
	in.events = append(in.events, e)
	in.bytes += len(e.frame)
	in.changed.Broadcast()
}

func (in *inbox) seal(err error) {
	if err != nil {
		in.add(event{kind: eventError, err: err})
	}
	in.add(event{kind: eventClose})
	in.sealed = true
	in.changed.Broadcast()
}

// dispatcher runs the callbacks for one inbox, one after the other, on its own
// goroutine until the inbox is sealed and empty.
type dispatcher struct {
	in   *inbox
	ev   Events
	opt  *options
	done chan struct{}
}

// startDispatcher runs the callbacks of in after the callbacks of prev, the
// transport's previous connection (nil for none), have ended.
func startDispatcher(in *inbox, ev Events, opt *options, prev *dispatcher) *dispatcher {
	d := &dispatcher{in: in, ev: ev, opt: opt, done: make(chan struct{})}
	go func() {
		defer close(d.done)
		prev.wait()
		for {
			e, ok := in.get()
			if !ok {
				return
			}
			d.call(e)
		}
	}()
	return d
}

func (d *dispatcher) call(e event) {
	switch e.kind {
	case eventMessage:
		if d.ev.Message != nil {
			d.ev.Message(e.frame)
		}
	case eventOpen:
		if d.ev.Open != nil {
			d.ev.Open()
		}
	case eventError:
		if d.ev.Error != nil {
			d.ev.Error(e.err)
		} else {
			d.opt.log().Error("provider: " + e.err.Error())
		}
	case eventClose:
		if d.ev.Close != nil {
			d.ev.Close()
		}
	}
}

// wait returns when the last callback has returned. It must not be called from
// a callback.
func (d *dispatcher) wait() {
	if d != nil {
		<-d.done
	}
}
