package scenarios

import (
	"fmt"
	"net/url"
	"strings"

	"mcpbroker/provider"
)

type connectAction struct {
	ID        string `step:"connect,required"`
	Transport string `step:"transport"`
	Slot      string `step:"slot"`
	Path      string `step:"path"`
	Tunnel    string `step:"tunnel"`
	Aggregate bool   `step:"aggregate"`
}

func (a *connectAction) check(c *checker) {
	c.needBroker("connect")
	if a.Transport == "" {
		a.Transport = "direct"
	}
	c.oneOf("transport", a.Transport, "direct", "multiplex", "loopback", "raw")
	raw := a.Transport == "raw"
	if a.Transport == "loopback" {
		c.needEmbedded("connect")
		c.loopbacks[a.ID] = true
	}
	switch {
	case raw && a.Aggregate:
		c.fail("aggregate", `a raw connection joins _all with a frame that it sends`)
	case a.Transport == "loopback" && a.Path != "":
		c.fail("path", `a loopback connection has no "path"`)
	case raw && a.Path == "":
		c.fail("connect", `a raw connection needs "path"`)
	case raw && a.Slot != "":
		c.fail("slot", `a raw connection has a "path" and no "slot"`)
	case !raw && a.Slot == "":
		c.fail("connect", `a %s connection needs "slot"`, a.Transport)
	}
	if a.Path != "" && !strings.HasPrefix(a.Path, "/") {
		c.fail("path", `"path" must begin with a slash`)
	}
	if a.Tunnel != "" && a.Transport != "multiplex" {
		c.fail("tunnel", `"tunnel" belongs to transport = "multiplex"`)
	}
	if c.names[nameClient][a.ID] {
		c.fail("connect", "%q is a session already: use another name", a.ID)
	}
	if c.names[namePeer][a.ID] {
		c.fail("connect", `peer %q exists already: use reconnect = %[1]q, or another name`, a.ID)
	}
	c.declare(namePeer, a.ID)
}

func (a *connectAction) run(r *runner) error {
	p := &peer{id: a.ID, show: r.out.event}
	options := []provider.Option{provider.WithLogger(quiet())}
	if a.Aggregate {
		options = append(options, provider.WithAggregate(true))
	}
	switch a.Transport {
	case "loopback":
		p.valve = &valve{} // which nothing passes
		p.link = &sdkLink{server: tools(a.ID), transport: func(ev provider.Events) provider.Transport {
			return provider.NewLoopback(a.Slot, attacher{r}, ev, options...)
		}}
	case "raw":
		p.valve = &valve{}
		p.link = &rawLink{socket{url: r.socketURL(a.Path), client: p.valve.client()}}
	case "multiplex":
		t := r.tunnel(a)
		p.valve = t.valve
		p.link = &sdkLink{server: tools(a.ID), tunnel: t.tunnel, transport: func(ev provider.Events) provider.Transport {
			return t.tunnel.Provider(a.Slot, ev, options...)
		}}
	default:
		path := a.Path
		if path == "" {
			path = "/provider/" + url.PathEscape(a.Slot)
		}
		p.valve = &valve{}
		p.link = &sdkLink{server: tools(a.ID), transport: func(ev provider.Events) provider.Transport {
			return provider.NewDirect(r.socketURL(path), ev, append(options, provider.WithHTTPClient(p.valve.client()))...)
		}}
	}
	r.peers[a.ID] = p
	return r.opens(p)
}

type reconnectAction struct {
	ID string `step:"reconnect,required"`
}

func (a *reconnectAction) check(c *checker) { c.use(namePeer, "reconnect", a.ID) }

func (a *reconnectAction) run(r *runner) error {
	p := r.peers[a.ID]
	if last := p.events.last(); last.kind == eventOpen {
		return fmt.Errorf("%s cannot connect again: it is open", a.ID)
	}
	return r.opens(p)
}

// opens connects p and waits until it is open: that comes before any refusal.
func (r *runner) opens(p *peer) error {
	p.link.open(r.life, p)
	return r.opened(p, 0)
}

// opened waits until p is open and the broker has decided about its claim. What
// it decided is for later steps.
func (r *runner) opened(p *peer, within span) error {
	err := r.nextEvent(p.id, &p.events, within, string(eventOpen), func(e event) bool { return e.kind == eventOpen })
	if err != nil || !p.link.answersPings() {
		return err
	}
	ctx, cancel := r.within(0)
	defer cancel()
	if err := p.settle(ctx); err != nil {
		return missed(ctx, p.id+": a decision of the broker")
	}
	return nil
}

type expectPing struct {
	ID     string `step:"expect_ping,required"`
	Within span   `step:"within"`
}

func (a *expectPing) check(c *checker) { c.use(namePeer, "expect_ping", a.ID) }

func (a *expectPing) run(r *runner) error {
	arrived := r.peers[a.ID].valve.arrived()
	if arrived == nil {
		return fmt.Errorf("%s is not silent, so it answers every ping", a.ID)
	}
	ctx, cancel := r.within(a.Within)
	defer cancel()
	select {
	case <-arrived:
		return nil
	case <-ctx.Done():
		return missed(ctx, "a ping for "+a.ID)
	}
}

type sendAction struct {
	ID    string `step:"send,required"`
	Frame string `step:"frame,required"`
}

func (a *sendAction) check(c *checker) { c.use(namePeer, "send", a.ID) }

func (a *sendAction) run(r *runner) error {
	ctx, cancel := r.within(0)
	defer cancel()
	return r.peers[a.ID].link.send(ctx, []byte(a.Frame))
}

type receiveAction struct {
	ID       string `step:"receive,required"`
	Method   string `step:"method"`
	Frame    string `step:"frame"`
	Contains words  `step:"contains"`
	As       string `step:"as"`
	Within   span   `step:"within"`
}

func (a *receiveAction) check(c *checker) {
	c.use(namePeer, "receive", a.ID)
	if a.As != "" {
		c.declare(nameRequest, a.As)
	}
}

func (a *receiveAction) run(r *runner) error {
	ctx, cancel := r.within(a.Within)
	defer cancel()
	p := r.peers[a.ID]
	f, err := p.frames.take(ctx)
	if err != nil {
		return missed(ctx, "a message for "+a.ID)
	}
	if err := judgeFrame(f, a.Method, a.Frame, a.Contains); err != nil {
		return err
	}
	if a.As != "" && (f.method == "" || len(f.id) == 0) {
		return unmet("a request", f.text)
	}
	if a.As != "" {
		r.requests[a.As] = &request{peer: p, frame: f}
	}
	return nil
}

type answerAction struct {
	Name   string         `step:"answer,required"`
	Text   string         `step:"text"`
	Result map[string]any `step:"result"`
}

func (a *answerAction) check(c *checker) {
	c.use(nameRequest, "answer", a.Name)
	if a.Text != "" && a.Result != nil {
		c.fail("result", `"text" is of the result of a tool and "result" is the whole of any: give one of them`)
	}
}

func (a *answerAction) run(r *runner) error {
	ctx, cancel := r.within(0)
	defer cancel()
	return r.requests[a.Name].answer(ctx, a.Result, a.Text)
}

type reportAction struct {
	Name string `step:"report,required"`
}

func (a *reportAction) check(c *checker) { c.use(nameRequest, "report", a.Name) }

func (a *reportAction) run(r *runner) error {
	ctx, cancel := r.within(0)
	defer cancel()
	return r.requests[a.Name].progress(ctx)
}
