package rt

import (
	"errors"
	"sync"

	"mcpbroker/actors/mcp"
)

// Item is one frame on its way out.
type Item struct {
	Frame []byte
	Class mcp.Class
	Key   string // for Coalesced
	ID    uint64 // event id, where the transport has one
}

// Outbox is the byte-budgeted queue between the actors and the one writer of a
// socket. Push never blocks; the writer is a pool worker that lives only while
// there is something to write.
//
// Only our own bytes count against the budget, not what the kernel buffers.
type Outbox struct {
	limit   int
	run     func(func())
	write   func([]Item) error
	failed  func(error)
	dropped func(int)
	overrun func()

	mu      sync.Mutex
	queue   []Item
	spare   []Item
	unsent  []Item // after a failed write
	bytes   int
	writing bool
	closed  bool
	finish  func()
}

// itemOverhead is charged for each queued frame on top of its bytes, so that a
// flood of tiny frames is bounded too.
const itemOverhead = 64

// OutboxConfig are the seams of an Outbox.
type OutboxConfig struct {
	Limit   int                // bytes that may wait
	Run     func(func())       // starts the writer, see System.Go
	Write   func([]Item) error // writes a batch, see WriteError; called by one goroutine at a time
	Failed  func(error)        // the writer met an error and ended; may be nil
	Dropped func(n int)        // so many Droppable frames were given up for lack of room; may be nil
	Overrun func()             // another frame did not fit: the reader is too slow; may be nil
}

// WriteError is what a Write returns that knows how far it came. With any other
// error all frames of its batch count as begun.
type WriteError struct {
	Begun int // frames of the batch of which a byte may have been written, the first ones
	Err   error
}

func (e *WriteError) Error() string { return e.Err.Error() }

// Unwrap returns what stopped the write.
func (e *WriteError) Unwrap() error { return e.Err }

// NewOutbox returns an empty outbox.
func NewOutbox(c OutboxConfig) *Outbox {
	return &Outbox{limit: c.Limit, run: c.Run, write: c.Write, failed: c.Failed, dropped: c.Dropped, overrun: c.Overrun}
}

// Push queues a frame. It reports false when the outbox is closed or the frame
// was dropped. A frame larger than the budget is taken when nothing else waits.
func (o *Outbox) Push(item Item) bool {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return false
	}
	cost := len(item.Frame) + itemOverhead
	if old := o.older(item); old != nil {
		cost -= len(old.Frame) + itemOverhead
	}
	dropped := 0
	if cost > 0 && o.bytes+cost > o.limit && len(o.queue) > 0 {
		dropped = o.dropOldest(cost)
		if o.bytes+cost > o.limit && len(o.queue) > 0 {
			return o.refuse(item, dropped)
		}
	}
	if old := o.older(item); old != nil {
		*old = item
	} else {
		o.queue = append(o.queue, item)
	}
	o.bytes += cost
	start := !o.writing
	o.writing = true
	o.mu.Unlock()
	o.tellDropped(dropped)
	if start {
		o.run(o.drain)
	}
	return true
}

// refuse ends a Push that found no room, although it dropped some. mu is held and
// released.
func (o *Outbox) refuse(item Item, dropped int) bool {
	if item.Class == mcp.Droppable {
		o.mu.Unlock()
		o.tellDropped(dropped + 1)
		return false
	}
	o.closed = true
	o.mu.Unlock()
	o.tellDropped(dropped)
	if o.overrun != nil {
		o.overrun()
	}
	return false
}

func (o *Outbox) tellDropped(n int) {
	if n > 0 && o.dropped != nil {
		o.dropped(n)
	}
}

// older is the queued frame that item takes the place of, nil for none.
func (o *Outbox) older(item Item) *Item {
	if item.Class != mcp.Coalesced {
		return nil
	}
	for i := range o.queue {
		if q := &o.queue[i]; q.Class == mcp.Coalesced && q.Key == item.Key {
			return q
		}
	}
	return nil
}

// dropOldest removes droppable frames, oldest first, until cost fits, and returns how
// many.
func (o *Outbox) dropOldest(cost int) (dropped int) {
	kept := o.queue[:0]
	for _, item := range o.queue {
		if item.Class == mcp.Droppable && o.bytes+cost > o.limit {
			o.bytes -= len(item.Frame) + itemOverhead
			dropped++
			continue
		}
		kept = append(kept, item)
	}
	clear(o.queue[len(kept):])
	o.queue = kept
	return dropped
}

func (o *Outbox) drain() {
	for {
		batch := o.take()
		if batch == nil {
			return
		}
		if err := o.write(batch); err != nil {
			o.giveUp(batch, err)
			if o.failed != nil {
				o.failed(err)
			}
			o.take()
			return
		}
		o.recycle(batch)
	}
}

// giveUp closes the outbox after a failed write. What was certainly not written is
// kept until Close or Unsent.
func (o *Outbox) giveUp(batch []Item, err error) {
	begun := len(batch)
	var partial *WriteError
	if errors.As(err, &partial) {
		begun = min(partial.Begun, begun)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.unsent = append(batch[begun:], o.queue...)
	o.queue, o.spare, o.bytes = nil, nil, 0
}

// take hands the writer everything that waits, or ends it.
func (o *Outbox) take() []Item {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 {
		o.writing = false
		if finish := o.finish; finish != nil {
			o.finish = nil
			o.run(finish)
		}
		return nil
	}
	batch := o.queue
	o.queue, o.spare = o.spare[:0], nil
	o.bytes = 0
	return batch
}

// recycle keeps a small batch slice for the next round.
func (o *Outbox) recycle(batch []Item) {
	clear(batch)
	if cap(batch) > 64 {
		return
	}
	o.mu.Lock()
	o.spare = batch[:0]
	o.mu.Unlock()
}

// Waiting tells whether frames wait for the writer.
func (o *Outbox) Waiting() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.queue) > 0
}

// Finish refuses further frames and runs fn once what waits has been written: the
// close frame goes after the last message. After Close, or a failed write, fn
// runs at once.
func (o *Outbox) Finish(fn func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	if o.writing {
		o.finish = fn
		return
	}
	o.run(fn)
}

// Close drops what waits; later pushes are refused. The batch being written is
// not interrupted.
func (o *Outbox) Close() {
	o.mu.Lock()
	o.closed = true
	o.queue, o.unsent, o.spare, o.bytes = nil, nil, nil, 0
	o.mu.Unlock()
}

// Unsent closes the outbox and returns, in order, the frames it took and of which
// certainly no byte was written. A batch that is being written is not among them:
// to hear what becomes of it, let the writer end before, with Finish.
func (o *Outbox) Unsent() [][]byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	var frames [][]byte
	for _, items := range [][]Item{o.unsent, o.queue} {
		for _, item := range items {
			frames = append(frames, item.Frame)
		}
	}
	o.closed = true
	o.queue, o.unsent, o.spare, o.bytes = nil, nil, nil, 0
	return frames
}
