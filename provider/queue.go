package provider

import "bytes"

// queueBound is the number of frames kept while a socket is not open
// (spec 01 section 6).
const queueBound = 64

// queued is one frame waiting for a socket. owner tells the slots of a shared
// socket apart and is nil elsewhere.
type queued struct {
	owner *Multiplex
	frame []byte
}

// frameQueue holds outgoing frames, oldest first. The zero value is empty. It is
// not safe for concurrent use.
type frameQueue struct {
	items []queued
}

// push appends a copy of q and reports whether the oldest frame was dropped.
func (f *frameQueue) push(q queued) (dropped bool) {
	if len(f.items) == queueBound {
		f.items[0] = queued{}
		f.items = f.items[1:]
		dropped = true
	}
	q.frame = bytes.Clone(q.frame)
	f.items = append(f.items, q)
	return dropped
}

// take removes and returns the frames whose owner is wanted, in order.
func (f *frameQueue) take(wanted func(*Multiplex) bool) []queued {
	var taken, kept []queued
	for _, q := range f.items {
		if wanted(q.owner) {
			taken = append(taken, q)
		} else {
			kept = append(kept, q)
		}
	}
	f.items = kept
	return taken
}

func (f *frameQueue) clear() { f.items = nil }

func anyOwner(*Multiplex) bool { return true }
