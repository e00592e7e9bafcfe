package stdio

import (
	"errors"
	"fmt"
	"os"
	"time"

	"mcpbroker/actors/rt"
	"mcpbroker/actors/wire"
)

// Frames up to batchBytes leave in one write. A write of more than writeBytes is
// made in pieces, each of which has to make headway.
const (
	batchBytes = 64 << 10
	writeBytes = 256 << 10
)

func (c *child) newOutbox() *rt.Outbox {
	return rt.NewOutbox(rt.OutboxConfig{
		Limit: c.all.bounds.outbox, Run: c.all.sys.Go, Write: c.write,
		Failed: func(err error) { c.fail(c.writeFault(err)) },
		Overrun: func() {
			c.fail(ended(fmt.Sprintf("was ended because it does not read its stdin: %d bytes wait for it", c.all.bounds.outbox)))
		},
	})
}

// write writes a batch. Only bytes the pipe has taken count as written.
func (c *child) write(batch []rt.Item) error {
	c.taken = 0
	err := c.writeLines(batch)
	if err == nil {
		return nil
	}
	return &rt.WriteError{Begun: begun(batch, c.taken), Err: err}
}

// begun counts the messages that have a byte among the first taken ones of a batch.
// A line is as long as its frame (wire.OneLine), and its end.
func begun(batch []rt.Item, taken int) (n int) {
	for n < len(batch) && taken > 0 {
		taken -= len(batch[n].Frame) + 1
		n++
	}
	return n
}

// writeLines writes one message a line. A line break inside a message can only stand
// between tokens, and becomes a space.
func (c *child) writeLines(batch []rt.Item) error {
	b := c.batch[:0]
	for _, item := range batch {
		line := wire.OneLine(item.Frame)
		if len(b) > 0 && len(b)+len(line) > batchBytes {
			if err := c.writeAll(b); err != nil {
				return err
			}
			b = b[:0]
		}
		if len(line) > batchBytes {
			if err := c.writeAll(line); err != nil {
				return err
			}
			line = nil
		}
		b = append(append(b, line...), '\n')
	}
	err := c.writeAll(b)
	const keep = 4 << 10
	if c.batch = b; cap(b) > keep {
		c.batch = nil
	}
	return err
}

func (c *child) writeAll(b []byte) error {
	for len(b) > 0 {
		piece := b[:min(len(b), writeBytes)]
		// Where pipes have no deadlines the bound of the outbox ends the child.
		_ = c.in.SetWriteDeadline(time.Now().Add(c.all.bounds.stalled))
		n, err := c.in.Write(piece)
		c.taken += n
		if err != nil {
			return err
		}
		b = b[len(piece):]
	}
	return nil
}

// unsent returns what the child was certainly never written. It is asked behind the
// closing of its stdin, which ends the writer.
func (c *child) unsent() [][]byte {
	written := make(chan struct{})
	c.outbox.Finish(func() { close(written) })
	within(c.all.bounds.drain, written)
	return c.outbox.Unsent()
}

func (c *child) writeFault(err error) ended {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return ended(fmt.Sprintf("was ended because it has not read its stdin for %s", c.all.bounds.stalled))
	}
	return ended(fmt.Sprintf("closed its stdin (%v)", cause(err)))
}
