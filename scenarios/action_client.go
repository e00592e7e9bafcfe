package scenarios

import (
	"context"
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
	ID        string `step:"session,required"`
	Slot      string `step:"slot,required"`
	Transport string `step:"transport"`
	As        string `step:"as"`
	Patient   bool   `step:"patient"`
	expectation
}

func (a *sessionAction) check(c *checker) {
	c.needBroker("session")
	a.expectation.check(c)
	if a.Patient && (a.As != "" || a.given()) {
		c.fail("patient", `a patient session waits for a result: it takes no expectation and no "as"`)
	}
	if a.Transport == "" {
		a.Transport = "http"
	}
	c.oneOf("transport", a.Transport, "http", "sse", "ws", "stdio")
	if a.As != "" {
		if a.given() {
			c.fail("as", `a session with "as" is not waited for: put what it must come to into its "await"`)
		}
		c.declare(nameCall, a.As)
	}
	c.declareSession(a)
}

func (a *sessionAction) run(r *runner) error {
	ctx, cancel := r.within(0)
	defer cancel()
	if old := r.clients[a.ID]; old != nil {
		old.link.cut()
	}
	cl, err := r.newClient(a)
	if err != nil {
		return err
	}
	r.clients[a.ID] = cl
	if err := cl.link.open(ctx, r.life, cl); err != nil {
		return a.judge(outcome{err: err})
	}
	if a.Patient {
		return a.judge(cl.patient(ctx))
	}
	if a.As == "" {
		return a.judge(cl.initialize(ctx))
	}
	r.inBackground(a.As, cl.initialize)
	return nil
}

// newClient returns a client that has not connected yet.
func (r *runner) newClient(a *sessionAction) (*client, error) {
	slot := url.PathEscape(a.Slot)
	switch a.Transport {
	case "sse":
		return newClient(a.ID, newSSELink(r.url()+"/"+slot+"/sse")), nil
	case "ws":
		v := &valve{}
		cl := newClient(a.ID, &wsLink{socket{url: r.socketURL("/" + slot), client: v.client()}})
		cl.valve = v
		return cl, nil
	case "stdio":
		if b, ok := r.broker.(*child); ok && b.pipes != nil {
			return newClient(a.ID, &stdioLink{process: b}), nil
		}
		link, err := startBridge(r.binary, a.Slot, r.url(), func(line string) { r.out.event(a.ID + ": " + line) })
		if err != nil {
			return nil, fmt.Errorf("start the bridge %s: %w", r.binary, err)
		}
		return newClient(a.ID, link), nil
	}
	return newClient(a.ID, newHTTPLink(r.url()+"/"+slot+"/mcp")), nil
}

// inBackground lets a call go on while the script does; its answer is awaited
// under name.
func (r *runner) inBackground(name string, call func(context.Context) outcome) {
	answered := make(chan outcome, 1)
	r.calls[name] = answered
	r.background.Go(func() { answered <- call(r.life) })
}

type callAction struct {
	ID       string         `step:"call,required"`
	Tool     string         `step:"tool"`
	Args     map[string]any `step:"args"`
	Method   string         `step:"method"`
	Params   map[string]any `step:"params"`
	Progress bool           `step:"progress"`
	As       string         `step:"as"`
	Repeat   int            `step:"repeat"`
	Within   span           `step:"within"`
	expectation
}

// mostRepeats bounds a step that calls again and again.
const mostRepeats = 100_000

func (a *callAction) check(c *checker) {
	c.use(nameClient, "call", a.ID)
	a.expectation.check(c)
	if a.Repeat < 0 || a.Repeat > mostRepeats {
		c.fail("repeat", `"repeat" must be an integer from 1 to %d`, mostRepeats)
	}
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
	if a.given() || a.Within != 0 || a.Repeat != 0 {
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
	if a.As != "" {
		r.inBackground(a.As, func(ctx context.Context) outcome { return cl.call(ctx, method, params, a.Progress) })
		return nil
	}
	for n := range max(a.Repeat, 1) {
		err := a.once(r, func(ctx context.Context) outcome { return cl.call(ctx, method, params, a.Progress) })
		if err != nil && a.Repeat > 1 {
			return fmt.Errorf("call %d of %d: %w", n+1, a.Repeat, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// once makes one call and judges what came of it.
func (a *callAction) once(r *runner, call func(context.Context) outcome) error {
	ctx, cancel := r.within(a.Within)
	defer cancel()
	o := call(ctx)
	if o.err != nil && ctx.Err() != nil {
		return missed(ctx, a.String())
	}
	return a.judge(o)
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

type expectMessage struct {
	ID       string `step:"expect_message,required"`
	Method   string `step:"method"`
	Frame    string `step:"frame"`
	Contains words  `step:"contains"`
	Within   span   `step:"within"`
}

func (a *expectMessage) check(c *checker) { c.use(nameClient, "expect_message", a.ID) }

func (a *expectMessage) run(r *runner) error {
	ctx, cancel := r.within(a.Within)
	defer cancel()
	f, err := r.hear(ctx, a.ID)
	if err != nil {
		return err
	}
	return judgeFrame(f, a.Method, a.Frame, a.Contains)
}

// hear takes the next message for a session that answers none of its requests.
func (r *runner) hear(ctx context.Context, id string) (frame, error) {
	cl := r.clients[id]
	if err := cl.link.listen(ctx, r.life, cl); err != nil && ctx.Err() == nil {
		return frame{}, err
	}
	f, err := cl.messages.take(ctx)
	if err != nil {
		return frame{}, missed(ctx, "a message for "+id)
	}
	return f, nil
}

// judgeFrame compares a message with what a step says of it.
func judgeFrame(f frame, method, text string, contains words) error {
	switch {
	case text != "" && f.text != text:
		return unmet(text, f.text)
	case method != "" && f.method != method:
		return unmet("method "+method, f.text)
	case !containsAll(f.text, contains):
		return unmet(fmt.Sprintf("a message with %q", contains), f.text)
	}
	return nil
}
