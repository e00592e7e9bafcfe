package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// client is an MCP client session of one slot, over any transport.
type client struct {
	id    string
	link  clientLink
	valve *valve // of its socket; nil unless the transport is ws
	ids   atomic.Int64

	mu      sync.Mutex
	waiting map[string]*waiter // by raw id

	messages feed[frame] // of nobody's request
	events   feed[event] // of the connection, where there is one
	gone     chan struct{}
	leave    sync.Once
}

// waiter is a request in flight.
type waiter struct {
	answered chan outcome
	progress int
}

// clientLink is how a client reaches the broker. What comes in is given to
// client.take, from one goroutine at a time for each stream.
type clientLink interface {
	// open connects; the connection ends with life.
	open(ctx, life context.Context, c *client) error
	// send brings a message to the broker. id is that of a request, else empty.
	send(ctx context.Context, c *client, id string, message []byte) error
	// listen opens what carries messages nobody asked for, unless it is open.
	listen(ctx, life context.Context, c *client) error
	// close ends the session in order.
	close(ctx context.Context) error
	// cut ends everything without a word and waits for it.
	cut()
}

// outcome is what came of a call.
type outcome struct {
	err      error // no answer
	isError  bool  // a JSON-RPC error
	code     int
	text     string // of the error or of the result
	progress int    // notifications that came before
}

func (o outcome) String() string {
	switch {
	case o.err != nil:
		return fmt.Sprintf("no answer: %v", o.err)
	case o.isError:
		return fmt.Sprintf("error %d %q", o.code, o.text)
	}
	return fmt.Sprintf("the result %q", o.text)
}

// protocolVersion is the revision scripted clients speak.
const protocolVersion = "2025-11-25"

func newClient(id string, link clientLink) *client {
	return &client{id: id, link: link, waiting: map[string]*waiter{}, gone: make(chan struct{})}
}

// initialize opens the session. The broker opens one even if nobody holds the
// slot.
func (c *client) initialize(ctx context.Context) outcome {
	o := c.call(ctx, "initialize", map[string]any{
		"protocolVersion": protocolVersion, "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "scenario", "version": "1.0.0"},
	}, false)
	if o.err != nil || o.isError {
		return o
	}
	if err := c.link.send(ctx, c, "", []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); err != nil {
		return outcome{err: err}
	}
	return o
}

// Patience of a client whose provider is on its way.
const (
	unavailable   = -32000 // nobody serves the slot
	patiencePause = 20 * time.Millisecond
)

// patient repeats initialize while nobody serves the slot: nothing tells a client
// when a device that it did not start holds it.
func (c *client) patient(ctx context.Context) outcome {
	pause := time.NewTicker(patiencePause)
	defer pause.Stop()
	for {
		o := c.initialize(ctx)
		if !o.isError || o.code != unavailable {
			return o
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return o
		}
	}
}

// call sends a request and waits for the answer.
func (c *client) call(ctx context.Context, method string, params map[string]any, progress bool) outcome {
	number := c.ids.Add(1)
	sent := map[string]any{}
	for key, value := range params {
		sent[key] = value
	}
	if progress {
		sent["_meta"] = map[string]any{"progressToken": number}
	}
	message, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": number, "method": method, "params": sent})
	if err != nil {
		return outcome{err: err}
	}
	id := strconv.FormatInt(number, 10)
	w := c.expect(id)
	defer c.forget(id)
	if err := c.link.send(ctx, c, id, message); err != nil {
		return outcome{err: err}
	}
	select {
	case o := <-w.answered:
		return o
	case <-c.gone:
		return outcome{err: errors.New("the connection ended before the answer")}
	case <-ctx.Done():
		return outcome{err: context.Cause(ctx)}
	}
}

func (c *client) expect(id string) *waiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &waiter{answered: make(chan outcome, 1)}
	c.waiting[id] = w
	return w
}

func (c *client) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
}

// waits reports that the request has no answer yet.
func (c *client) waits(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting[id] != nil
}

// take sorts what came in: an answer and progress go to their request, anything
// else is for the script.
func (c *client) take(text []byte) {
	f := frameOf(text)
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.waiting[string(f.id)]; w != nil && f.method == "" {
		delete(c.waiting, string(f.id))
		o := answer(text)
		o.progress = w.progress
		w.answered <- o
		return
	}
	if w := c.waiting[string(f.about)]; w != nil && f.method == "notifications/progress" {
		w.progress++
		return
	}
	c.messages.add(f)
}

// ended reports the end of the connection; requests in flight get no answer.
func (c *client) ended() { c.leave.Do(func() { close(c.gone) }) }

// answer reads the answer to a request. The text of a result is that of its
// content; one without content is its own text.
func answer(text []byte) outcome {
	var m struct {
		Result json.RawMessage `json:"result"`
		Error  *struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return outcome{err: fmt.Errorf("the answer is not JSON-RPC: %w", err)}
	}
	if m.Error != nil {
		return outcome{isError: true, code: m.Error.Code, text: m.Error.Message}
	}
	var result struct {
		Content *[]struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if err := json.Unmarshal(m.Result, &result); err != nil || result.Content == nil {
		return outcome{text: string(m.Result)}
	}
	var parts []string
	for _, item := range *result.Content {
		parts = append(parts, item.Text)
	}
	return outcome{text: strings.Join(parts, "\n")}
}
