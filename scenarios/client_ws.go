package scenarios

import (
	"context"
	"errors"
)

// wsLink is a raw WebSocket client.
type wsLink struct{ socket }

func (l *wsLink) open(ctx, life context.Context, c *client) error {
	l.socket.open(life, func(e event) {
		c.events.add(e)
		if e.kind != eventOpen {
			c.ended()
		}
	}, c.take)
	first, err := c.events.take(ctx)
	switch {
	case err != nil:
		return err
	case first.kind != eventOpen:
		return errors.New(first.text)
	}
	return nil
}

func (l *wsLink) send(ctx context.Context, _ *client, _ string, message []byte) error {
	return l.write(ctx, message)
}

func (l *wsLink) listen(context.Context, context.Context, *client) error { return nil }

func (l *wsLink) close(context.Context) error {
	l.socket.close(1000, "")
	return nil
}
