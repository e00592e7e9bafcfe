package scenarios

import (
	"fmt"
	"net/url"
)

// expectation is what a call must come to. The zero value is any result.
type expectation struct {
	Text       string `step:"text"`
	Code       int    `step:"code"`
	Message    string `step:"message"`
	Contains   words  `step:"contains"`
	Progressed int    `step:"progressed"`
}

func (e *expectation) check(c *checker) {
	if e.Code != 0 && e.Text != "" {
		c.fail("text", `"text" is of a result and "code" of an error: give one of them`)
	}
	if e.Message != "" && e.Code == 0 {
		c.fail("message", `"message" is of an error: give its "code" too`)
	}
}

func (e *expectation) given() bool {
	return e.Text != "" || e.Code != 0 || e.Message != "" || len(e.Contains) > 0 || e.Progressed != 0
}

func (e *expectation) judge(o outcome) error {
	met := o.err == nil && o.isError == (e.Code != 0) && o.code == e.Code &&
		(e.Text == "" || o.text == e.Text) && (e.Message == "" || o.text == e.Message) && containsAll(o.text, e.Contains)
	if !met {
		return unmet(e.String(), o.String())
	}
	if e.Progressed != 0 && o.progress != e.Progressed {
		return unmet(fmt.Sprintf("%d progress notifications", e.Progressed), fmt.Sprint(o.progress))
	}
	return nil
}

func (e *expectation) String() string {
	text := "a result"
	switch {
	case e.Code != 0 && e.Message != "":
		text = fmt.Sprintf("error %d %q", e.Code, e.Message)
	case e.Code != 0:
		text = fmt.Sprintf("error %d", e.Code)
	case e.Text != "":
		text = fmt.Sprintf("the result %q", e.Text)
	}
	if len(e.Contains) > 0 {
		text += fmt.Sprintf(" containing %q", e.Contains)
	}
	return text
}

type sessionAction struct {
	ID   string `step:"session,required"`
	Slot string `step:"slot,required"`
	expectation
}

func (a *sessionAction) check(c *checker) {
	c.needBroker("session")
	a.expectation.check(c)
	c.declare(nameClient, a.ID)
}

func (a *sessionAction) run(r *runner) error {
	ctx, cancel := r.within(0)
	defer cancel()
	if old := r.clients[a.ID]; old != nil {
		old.close()
	}
	cl := newClient(r.url() + "/" + url.PathEscape(a.Slot) + "/mcp")
	r.clients[a.ID] = cl
	return a.judge(cl.initialize(ctx))
}

type callAction struct {
	ID       string         `step:"call,required"`
	Tool     string         `step:"tool"`
	Args     map[string]any `step:"args"`
	Method   string         `step:"method"`
	Params   map[string]any `step:"params"`
	Progress bool           `step:"progress"`
	As       string         `step:"as"`
	Within   span           `step:"within"`
	expectation
}

func (a *callAction) check(c *checker) {
	c.use(nameClient, "call", a.ID)
	a.expectation.check(c)
	switch {
	case (a.Tool == "") == (a.Method == ""):
		c.fail("call", `"call" needs "tool" or "method", and only one of them`)
	case a.Args != nil && a.Tool == "":
		c.fail("args", `"args" belongs to "tool"; a method has "params"`)
	case a.Params != nil && a.Method == "":
		c.fail("params", `"params" belongs to "method"; a tool has "args"`)
	}
	if a.As == "" {
		return
	}
	if a.given() || a.Within != 0 {
		c.fail("as", `a call with "as" is not waited for: put what it must come to into its "await"`)
	}
	c.declare(nameCall, a.As)
}

func (a *callAction) run(r *runner) error {
	cl := r.clients[a.ID]
	method, params := a.Method, a.Params
	if a.Tool != "" {
		method, params = "tools/call", map[string]any{"name": a.Tool}
		if a.Args != nil {
			params["arguments"] = a.Args
		}
	}
	if a.As == "" {
		ctx, cancel := r.within(a.Within)
		defer cancel()
		o := cl.call(ctx, method, params, a.Progress)
		if o.err != nil && ctx.Err() != nil {
			return missed(ctx, a.String())
		}
		return a.judge(o)
	}
	answered := make(chan outcome, 1)
	r.calls[a.As] = answered
	r.background.Go(func() { answered <- cl.call(r.life, method, params, a.Progress) })
	return nil
}

type awaitAction struct {
	Name   string `step:"await,required"`
	Within span   `step:"within"`
	expectation
}

func (a *awaitAction) check(c *checker) {
	c.use(nameCall, "await", a.Name)
	a.expectation.check(c)
	delete(c.names[nameCall], a.Name) // there is one answer
}

func (a *awaitAction) run(r *runner) error {
	ctx, cancel := r.within(a.Within)
	defer cancel()
	select {
	case o := <-r.calls[a.Name]:
		return a.judge(o)
	case <-ctx.Done():
		return missed(ctx, a.String())
	}
}
