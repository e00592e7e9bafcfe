package egress_test

import "context"

// A stop: who waits for nothing is let go at once, who waits for an answer gets it
// first. Until then the provider is there, and new requests are refused.
func stopFinishes(w *world) {
	c, idle := w.client(), w.client()
	call := w.ask(c, `1`)
	stopped := w.stop(w.Context())
	w.is("a client that waits for nothing", idle.Ended(), w.via.goodbye)

	const note = `{"method":"meanwhile"}`
	w.p.Send(note)
	w.is("a notification to the client", c.Receive(), note)
	if w.via.talks {
		c.Send(`{"jsonrpc":"2.0","id":2,"method":"m"}`)
		w.is("a new request", c.Receive(), failed(`2`, -32000, "Session closed"))
		c.Send(note)
		w.is("a notification to the provider", w.p.Receive(), note)
	}
	w.answer(call, `"late"`)
	w.is("the answer owed", c.Receive(), `{"jsonrpc":"2.0","id":1,"result":"late"}`)
	w.is("the end", c.Ended(), w.via.goodbye)
	w.stopped(stopped)
}

// A provider that does not answer: the caller of Stop bounds the waiting.
func stopGivesUp(w *world) {
	c, idle := w.client(), w.client()
	w.ask(c, `1`)
	ctx, giveUp := context.WithCancel(w.Context())
	defer giveUp()
	stopped := w.stop(ctx)
	w.is("a client that waits for nothing", idle.Ended(), w.via.goodbye)
	giveUp()
	if w.via.cut != "" {
		w.is("the call", c.Receive(), w.via.cut)
	}
	w.is("the end", c.Ended(), w.via.goodbye)
	w.stopped(stopped)
}

// stopped waits for the end of a stop, and for that of the provider.
func (w *world) stopped(stop <-chan error) {
	w.Helper()
	if code, reason := w.p.Closed(); code != 1001 {
		w.Errorf("the provider was closed with %d %q", code, reason)
	}
	if err := within(w, "end of the stop", stop); err != nil {
		w.Errorf("stop: %v", err)
	}
}
