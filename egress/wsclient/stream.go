package wsclient

import (
	"fmt"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/rt"
)

// stream carries what the client did not ask for, on the same socket.
type stream struct{ c *client }

// Event implements msg.Stream.
func (s stream) Event(_ uint64, frame []byte, class mcp.Class, key string) bool {
	return s.c.outbox.Push(rt.Item{Frame: frame, Class: class, Key: key})
}

// End implements msg.Stream: the session ends with its socket.
func (s stream) End() {}

func (c *client) startPings() {
	if every := c.server.cfg.KeepAlive; every > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.gone {
			c.timer = time.AfterFunc(every, c.ping)
		}
	}
}

func (c *client) stopPings() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
	if c.timer != nil {
		c.timer.Stop()
	}
}

// ping keeps proxies from closing a silent socket (F-43) and cuts a client that
// left the previous ping unanswered.
func (c *client) ping() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return
	}
	every := c.server.cfg.KeepAlive
	if c.unanswered.Swap(true) {
		c.sys.Log().Info(fmt.Sprintf(`[broker] a WebSocket client of slot "%s" did not answer a ping within %dms (keepAliveIntervalMs) and was disconnected`,
			c.slot, every.Milliseconds()))
		c.sys.Go(c.conn.Terminate)
		return
	}
	c.sys.Go(func() {
		if c.conn.Ping() == nil {
			c.unanswered.Store(false)
		}
	})
	c.timer.Reset(every)
}
