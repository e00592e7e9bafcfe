package scenarios

// The actions below are about one end of a connection: a provider, or a session
// that has a connection of its own.

type closeAction struct {
	ID     string `step:"close,required"`
	Code   int    `step:"code"`
	Reason string `step:"reason"`
}

func (a *closeAction) check(c *checker) {
	if session := c.useEnd("close", a.ID); session {
		if a.Code != 0 || a.Reason != "" {
			c.fail("close", `"code" and "reason" are for providers to choose`)
		}
		c.closeSession(a.ID)
		return
	}
	if a.Code == 0 {
		a.Code = 1000
	}
	if a.Code < 1000 || a.Code > 4999 {
		c.fail("code", `"code" must be a WebSocket close code from 1000 to 4999`)
	}
}

func (a *closeAction) run(r *runner) error {
	if cl := r.clients[a.ID]; cl != nil {
		return r.closeSession(cl)
	}
	p := r.peers[a.ID]
	p.link.close(a.Code, a.Reason)
	return r.nextEvent(p.id, &p.events, 0, string(eventClosed), func(e event) bool { return e.kind == eventClosed })
}

// closeSession ends a session in order. With the standard input of a broker the
// broker ends.
func (r *runner) closeSession(cl *client) error {
	ctx, cancel := r.within(0)
	defer cancel()
	if l, ok := cl.link.(*stdioLink); ok && instance(l.process) == r.broker {
		r.broker = nil
	}
	return cl.link.close(ctx)
}

type silenceAction struct {
	ID string `step:"silence,required"`
}

func (a *silenceAction) check(c *checker) {
	c.useSocket("silence", a.ID)
	if c.loopbacks[a.ID] {
		c.fail("silence", "a loopback provider has no socket that could fall silent")
	}
}

func (a *silenceAction) run(r *runner) error {
	r.valve(a.ID).silence()
	return nil
}

type resumeAction struct {
	ID string `step:"resume,required"`
}

func (a *resumeAction) check(c *checker) { c.useSocket("resume", a.ID) }

func (a *resumeAction) run(r *runner) error {
	r.valve(a.ID).resume()
	return nil
}

func (r *runner) valve(id string) *valve {
	if cl := r.clients[id]; cl != nil {
		return cl.valve
	}
	return r.peers[id].valve
}

type expectClose struct {
	ID     string `step:"expect_close,required"`
	Code   int    `step:"code,required"`
	Reason string `step:"reason"`
	Within span   `step:"within"`
}

func (a *expectClose) check(c *checker) { c.useSocket("expect_close", a.ID) }

func (a *expectClose) run(r *runner) error {
	want := event{eventClosed, a.Code, a.Reason}
	return r.nextEvent(a.ID, r.events(a.ID), a.Within, want.String(), func(e event) bool {
		return e.kind == eventClosed && e.code == a.Code && (a.Reason == "" || e.text == a.Reason)
	})
}

func (r *runner) events(id string) *feed[event] {
	if cl := r.clients[id]; cl != nil {
		return &cl.events
	}
	return &r.peers[id].events
}
