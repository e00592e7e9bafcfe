package stdio

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// readMessages reads stdout to its end. It stays shallow: read, scan, post. When
// nothing may be posted any more it reads on all the same: a child that waits for
// a reader does not end.
func (c *child) readMessages(stdout io.Reader) {
	lines := newLineReader(stdout, c.cfg.Limit)
	for {
		line, err := lines.next()
		var long *longLine
		switch {
		case errors.As(err, &long):
			c.oversized(long)
		case errors.Is(err, io.EOF):
			c.fail(ended("closed its stdout"))
			return
		case err != nil:
			c.fail(ended(fmt.Sprintf("could not be read from: %v", err)))
			return
		default:
			c.message(line)
		}
	}
}

func (c *child) message(line []byte) {
	f, err := wire.Scan(line)
	if err != nil {
		c.junk(line)
		return
	}
	c.spoke, c.banner = true, ""
	c.post(f)
}

// junk is a line, or its beginning, that is no message: a banner, or what somebody
// printed.
func (c *child) junk(line []byte) {
	head := c.mask.Beginning(line)
	if text := c.speech.clean(head, false); text != "" {
		if !c.spoke && c.banner == "" {
			c.banner = text
		}
		c.speech.stray(text)
	}
	if c.mayPost() {
		c.slot.Send(&msg.ProviderJunk{Gen: c.slotGen, Head: head, Credit: c.credits})
	}
}

// oversized fails the one call whose answer is too large.
func (c *child) oversized(long *longLine) {
	id := wire.CutResponseID(long.head, long.tail)
	about := "it is left out"
	if id != nil {
		about = fmt.Sprintf("the request it answers, %s, fails", id)
	}
	c.all.sys.Log().Warn(fmt.Sprintf(`[broker] StdioUpstream "%s": a message is larger than %d bytes (maxMessageBytes); %s`, c.cfg.Name, long.limit, about),
		slog.String("begins", wire.Excerpt(c.mask.Beginning(long.head))))
	if id == nil {
		c.junk(long.head)
		return
	}
	f, err := wire.Scan(wire.TooLarge(long.limit).Response(id))
	if err != nil {
		return // an id that was parsed makes a message that scans
	}
	c.spoke, c.banner = true, ""
	c.post(f)
}

func (c *child) post(f wire.Frame) {
	if c.mayPost() {
		c.slot.Send(&msg.ProviderFrame{Gen: c.slotGen, Frame: f, Credit: c.credits})
	}
}

// mayPost waits until the slot is known and has room; false once nothing of this
// child may reach it any more.
func (c *child) mayPost() bool {
	select {
	case <-c.attached:
	case <-c.mute:
		return false
	}
	select {
	case <-c.mute:
		return false
	default:
	}
	return c.credits.Take(c.mute)
}
