package scenarios

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"mcpbroker/actors/msg"
)

// stdioKey is the key of a broker that serves the process that started it.
const stdioKey = "stdioProvider"

type brokerAction struct {
	What     string         `step:"broker,required"`
	Config   map[string]any `step:"config"`
	Embedded bool           `step:"embedded"`
}

func (a *brokerAction) check(c *checker) {
	c.oneOf("broker", a.What, "start", "stop", "kill", "restart", "reload")
	if a.What == "reload" {
		a.checkReload(c)
		return
	}
	starts := a.What == "start" || a.What == "restart"
	switch {
	case a.What == "start" && c.running:
		c.fail("broker", `the broker runs already: use broker = "restart"`)
	case a.What == "restart" && !c.started:
		c.needBroker("broker")
	case !starts && !c.running:
		c.fail("broker", "no broker is running at this step")
	case a.What == "kill" && c.embedded:
		c.fail("broker", "a broker in the runner's process cannot be killed alone: use broker = \"stop\"")
	}
	if a.Embedded && a.What != "start" {
		c.fail("embedded", `"embedded" belongs to broker = "start"`)
	}
	if a.What == "start" {
		c.embedded = a.Embedded
	}
	c.started, c.running = c.started || starts, starts
	if starts && (a.Config != nil || a.What == "start") {
		c.hosted, _ = a.Config[stdioKey].(string)
	}
	a.checkConfig(c, starts)
}

// checkReload: the file of a running broker is written anew.
func (a *brokerAction) checkReload(c *checker) {
	switch {
	case !c.running:
		c.fail("broker", "no broker is running at this step")
	case c.embedded:
		c.fail("broker", "a broker in the runner's process has no file to reload")
	case a.Config == nil:
		c.fail("broker", `broker = "reload" needs "config"`)
	}
	if a.Embedded {
		c.fail("embedded", `"embedded" belongs to broker = "start"`)
	}
	a.checkConfig(c, true)
}

func (a *brokerAction) checkConfig(c *checker, starts bool) {
	if a.Config == nil {
		return
	}
	if !starts {
		c.fail("config", `"config" belongs to broker = "start" and broker = "restart"`)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(a.Config)) {
		switch {
		case slices.Contains(ownKeys(), key):
			c.fail("config", "configuration key %q is set by the runner; the variables port and heartbeat change what it sets", key)
		case c.embedded:
			a.checkEmbedded(c, key)
		}
	}
	c.upstreamsOf(a.Config)
	if !c.embedded {
		c.configs = append(c.configs, placedConfig{c.here.at("config"), a.Config})
	}
}

func (a *brokerAction) checkEmbedded(c *checker, key string) {
	_, known := embeddedKeys()[key]
	_, isText := a.Config[key].(string)
	n, isNumber := a.Config[key].(int64)
	switch {
	case !known:
		c.fail("config", "configuration key %q is not one an embedded broker takes (known: %s)",
			key, strings.Join(slices.Sorted(maps.Keys(embeddedKeys())), ", "))
	case strings.HasSuffix(key, "Ms") && (!isNumber || n < 0):
		c.fail("config", "configuration key %q must be a number of milliseconds", key)
	case !strings.HasSuffix(key, "Ms") && !isText:
		c.fail("config", "configuration key %q must be a string", key)
	}
}

func (a *brokerAction) run(r *runner) error {
	if a.What == "reload" {
		r.config = a.Config
		return r.writeConfig()
	}
	if a.What != "start" {
		kill := a.What == "kill"
		if err := r.endBroker(kill); err != nil || a.What != "restart" {
			return err
		}
	}
	if a.What == "start" {
		r.embed, r.config = a.Embedded, nil
	}
	if a.Config != nil {
		r.config = a.Config
	}
	return r.startBroker()
}

type waitAction struct {
	For span `step:"wait,required"`
}

func (a *waitAction) check(*checker) {}

func (a *waitAction) run(r *runner) error { return r.sleep(time.Duration(a.For)) }

type crashAction struct {
	Slot   string `step:"crash,required"`
	On     string `step:"on"`
	Method string `step:"method"`
}

func (a *crashAction) check(c *checker) {
	c.needEmbedded("crash")
	if a.On == "" {
		a.On = "call"
	}
	c.oneOf("on", a.On, "call", "answer")
	switch {
	case a.On == "answer" && a.Method != "":
		c.fail("method", `"method" belongs to on = "call": an answer has no method`)
	case a.On == "call" && a.Method == "":
		a.Method = "tools/call"
	}
}

func (a *crashAction) run(r *runner) error {
	e, err := r.inside()
	if err != nil {
		return err
	}
	e.wire.arm(trip{slot: a.Slot, answer: a.On == "answer", method: a.Method})
	return nil
}

type expectSlot struct {
	Name      string `step:"expect_slot,required"`
	Transport string `step:"transport,required"`
	Connected bool   `step:"connected,required"`
	Within    span   `step:"within"`
}

func (a *expectSlot) check(c *checker) { c.needEmbedded("expect_slot") }

// slotPoll is how often a slot is asked again. Nothing tells an embedder of a
// change.
const slotPoll = 10 * time.Millisecond

func (a *expectSlot) run(r *runner) error {
	e, err := r.inside()
	if err != nil {
		return err
	}
	ctx, cancel := r.within(a.Within)
	defer cancel()
	poll := time.NewTicker(slotPoll)
	defer poll.Stop()
	var seen msg.SlotInfo
	for {
		if seen, err = r.slot(e, a.Name); err != nil {
			return err
		}
		if string(seen.Transport) == a.Transport && seen.Connected == a.Connected {
			return nil
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("expected slot %q with transport %q and connected %t, got %q and %t",
				a.Name, a.Transport, a.Connected, seen.Transport, seen.Connected)
		}
	}
}

// slot describes a slot as it is now, however little time the script gives it to change.
func (r *runner) slot(e *embedded, name string) (msg.SlotInfo, error) {
	ctx, cancel := r.within(0)
	defer cancel()
	return e.Slot(ctx, name)
}
